"""What each probe of the self-test runs, and how far from the exact answer it may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import torch

from opcheck.backends.interpreter import probe_kernels as kernels
from opcheck.backends.interpreter.dtypes import Array, to_tf32

#: Elements of a block, and rows of the probes that reduce one block a program.
BLOCK = 64
ROWS = 16
#: Additions on the longest path of a sum over a block: log2(64), and a little for a thread that holds some itself.
DEPTH = 8
#: Elements of an elementwise probe.
LONG = 256
#: A product `[M, K] @ [K, N]` that Hopper computes with its warp-group instruction (M of 64, fp8 K of 32).
M, N, K = 64, 16, 32

#: NumPy's dtype for each torch name: only the self-test's own.
NUMPY: dict[str, np.dtype[Any]] = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    **{name: np.dtype(name) for name in ("float16", "float32", "int32")},
}
#: Unit roundoff: half the distance from 1 to the next number.
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Bound(NamedTuple):
    """The exact answer in FP64 and how far from it each element may be, both of the output's length."""

    exact: Array
    allowed: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One probe.

    Attributes:
        name: Its name, unique: `dtype.what`.
        dtype: The dtype whose verdicts depend on it.
        inputs: The torch dtype of each input; lengths come with the stored bits.
        output: The torch dtype of the output.
        size: Elements of the output.
        launch: Runs the kernel on flat input tensors and a flat output tensor.
        bound: From the inputs as FP64, the exact answer and its allowance; None where the bits must be a GPU's.
        inexact: The share of elements that must differ from the exact answer rounded once: a reduction in the
            operand's own dtype cannot be better than that.
    """

    name: str
    dtype: str
    inputs: tuple[str, ...]
    output: str
    size: int
    launch: Callable[[list[torch.Tensor], torch.Tensor], None]
    bound: Callable[[list[Array]], Bound] | None = None
    inexact: float = 0.0


def _one_block(kernel: Any, **constants: Any) -> Callable[[list[torch.Tensor], torch.Tensor], None]:
    def launch(inputs: list[torch.Tensor], output: torch.Tensor) -> None:
        kernel[(1,)](*inputs, output, BLOCK=output.numel(), **constants)

    return launch


def _rows(kernel: Any) -> Callable[[list[torch.Tensor], torch.Tensor], None]:
    def launch(inputs: list[torch.Tensor], output: torch.Tensor) -> None:
        kernel[(ROWS,)](*inputs, output, BLOCK=BLOCK)

    return launch


def _product(kernel: Any, **constants: Any) -> Callable[[list[torch.Tensor], torch.Tensor], None]:
    def launch(inputs: list[torch.Tensor], output: torch.Tensor) -> None:
        kernel[(1,)](*inputs, output, M=M, N=N, K=K, **constants)

    return launch


def _masked(inputs: list[torch.Tensor], output: torch.Tensor) -> None:
    kernels.masked_kernel[(1,)](*inputs, output, output.numel() - 11, BLOCK=output.numel())


def _scaled(inputs: list[torch.Tensor], output: torch.Tensor) -> None:
    kernels.scale_kernel[(1,)](*inputs, output, 0.1, BLOCK=output.numel())


def _sum_bound(unit: float) -> Callable[[list[Array]], Bound]:
    """A tree of additions: `depth u sum|x|` to first order (Higham 2002, section 4.2)."""

    def bound(inputs: list[Array]) -> Bound:
        rows = inputs[0].reshape(ROWS, BLOCK)
        return Bound(rows.sum(1), DEPTH * unit * np.abs(rows).sum(1))

    return bound


def _cumsum_bound(unit: float) -> Callable[[list[Array]], Bound]:
    def bound(inputs: list[Array]) -> Bound:
        rows = inputs[0].reshape(ROWS, BLOCK)
        return Bound(rows.cumsum(1).ravel(), 2 * DEPTH * unit * np.abs(rows).cumsum(1).ravel())

    return bound


def _dot_bound(unit: float, operands: Callable[[Array], Array] = lambda x: x) -> Callable[[list[Array]], Bound]:
    """Exact products; each of n additions loses at most `unit` of `sum|a||b|`."""

    def bound(inputs: list[Array]) -> Bound:
        a, b = operands(inputs[0]).reshape(M, K), operands(inputs[1]).reshape(K, N)
        return Bound((a @ b).ravel(), unit * K * (np.abs(a) @ np.abs(b)).ravel())

    return bound


def _tf32(x: Array) -> Array:
    return to_tf32(x.astype(np.float32)).astype(np.float64)


def _unary_bound(
    function: Callable[[Array], Array], relative: float, growth: float = 0.0, absolute: float = 0.0
) -> Callable[[list[Array]], Bound]:
    def bound(inputs: list[Array]) -> Bound:
        (x,) = inputs
        exact = function(x)
        return Bound(exact, (relative + growth * np.abs(x)) * np.abs(exact) + absolute)

    return bound


_erf = np.vectorize(math.erf, otypes=[np.float64])
_ULP = 2.0**-23

#: Name, function, relative bound, growth with |x|, absolute bound. CUDA's programming guide gives 1 to 2 ulp for these
#: libdevice functions; PTX gives 2^-22 for `ex2.approx` and `lg2.approx`, and `exp` scales its argument in FP32 first.
_UNARY: tuple[tuple[str, Callable[[Array], Array], float, float, float], ...] = (
    ("exp", np.exp, 4 * _ULP, 2 * _ULP, 2.0**-126),
    ("exp2", np.exp2, 4 * _ULP, 0.0, 2.0**-126),
    ("log", np.log, 4 * _ULP, 0.0, 4 * _ULP),
    ("sqrt", np.sqrt, 4 * _ULP, 0.0, 0.0),
    ("rsqrt", lambda x: 1.0 / np.sqrt(x), 4 * _ULP, 0.0, 0.0),
    ("erf", _erf, 4 * _ULP, 0.0, 0.0),
    ("libdevice.tanh", np.tanh, 4 * _ULP, 0.0, 0.0),
    ("libdevice.erf", _erf, 4 * _ULP, 0.0, 0.0),
    ("libdevice.exp", np.exp, 4 * _ULP, 0.0, 2.0**-126),
    ("libdevice.log1p", np.log1p, 4 * _ULP, 0.0, 0.0),
    ("libdevice.rint", np.rint, 0.0, 0.0, 0.0),
)


def _cast_specs(dtype: str) -> list[Spec]:
    def spec(what: str, source: str, target: str, kernel: Any = kernels.cast_kernel, size: int = LONG) -> Spec:
        return Spec(
            name=f"{dtype}.{what}", dtype=dtype, inputs=(source,), output=target, size=size, launch=_one_block(kernel)
        )

    specs = [spec("from_float32", "float32", dtype), spec("to_float32", dtype, "float32", size=256)]
    if dtype in UNIT:
        specs.append(spec("implicit_store", "float32", dtype, kernels.implicit_store_kernel))
    if dtype.startswith("float8"):
        specs.append(spec("from_float16", "float16", dtype))
        specs.append(spec("from_bfloat16", "bfloat16", dtype))
    return specs


def _arithmetic_specs(dtype: str) -> list[Spec]:
    binary = {
        "add": kernels.add_kernel,
        "sub": kernels.sub_kernel,
        "mul": kernels.mul_kernel,
        "maximum": kernels.maximum_kernel,
        "maximum_nan": kernels.maximum_nan_kernel,
        "select": kernels.select_kernel,
        "atomic_add": kernels.atomic_kernel,
    }
    common: dict[str, Any] = {"dtype": dtype, "output": dtype}
    specs = [
        Spec(name=f"{dtype}.{what}", inputs=(dtype, dtype), size=LONG, launch=_one_block(kernel), **common)
        for what, kernel in binary.items()
    ]
    inexact = 0.25 if dtype != "float32" else 0.0
    specs += [
        Spec(name=f"{dtype}.masked_load", inputs=(dtype,), size=BLOCK, launch=_masked, **common),
        Spec(name=f"{dtype}.max", inputs=(dtype,), size=ROWS, launch=_rows(kernels.max_kernel), **common),
        Spec(
            name=f"{dtype}.argmax",
            dtype=dtype,
            inputs=(dtype,),
            output="int32",
            size=ROWS,
            launch=_rows(kernels.argmax_kernel),
        ),
        Spec(
            name=f"{dtype}.sum",
            inputs=(dtype,),
            size=ROWS,
            launch=_rows(kernels.sum_kernel),
            bound=_sum_bound(UNIT[dtype]),
            inexact=inexact,
            **common,
        ),
        Spec(
            name=f"{dtype}.cumsum",
            inputs=(dtype,),
            size=ROWS * BLOCK,
            launch=_rows(kernels.cumsum_kernel),
            bound=_cumsum_bound(UNIT[dtype]),
            # Triton 3.6 scans bf16 in fp32 (seen on an H200), 3.9 in bf16: its own library code decides, so that a
            # scan of bf16 may be better than bf16 arithmetic.
            inexact=0.0 if dtype == "bfloat16" else inexact,
            **common,
        ),
    ]
    return specs


def _dot_specs() -> list[Spec]:
    def spec(name: str, dtype: str, unit: float, operands: Callable[[Array], Array] = lambda x: x) -> Spec:
        precision = "tf32" if name == "float32.dot_tf32" else "ieee"
        return Spec(
            name=name,
            dtype=dtype,
            inputs=(dtype, dtype),
            output="float32",
            size=M * N,
            launch=_product(kernels.dot_kernel, PRECISION=precision),
            bound=_dot_bound(unit, operands),
        )

    return [
        spec("float32.dot_tf32", "float32", _ULP, _tf32),
        spec("float32.dot_ieee", "float32", UNIT["float32"]),
        spec("float16.dot", "float16", _ULP),
        spec("bfloat16.dot", "bfloat16", _ULP),
        # Hopper's fp8 products keep about 14 bits of the running sum.
        spec("float8_e4m3fn.dot", "float8_e4m3fn", 2.0**-13 / K),
        spec("float8_e5m2.dot", "float8_e5m2", 2.0**-13 / K),
        Spec(
            name="float16.dot_half",
            dtype="float16",
            inputs=("float16", "float16"),
            output="float16",
            size=M * N,
            launch=_product(kernels.dot_half_kernel),
            bound=_dot_bound(4 * UNIT["float16"] / K),
        ),
    ]


def _other_specs() -> list[Spec]:
    integer: dict[str, Any] = {"dtype": "int32", "output": "int32", "size": LONG}
    wide: dict[str, Any] = {"dtype": "float32", "inputs": ("float32",), "output": "float32", "size": LONG}
    return [
        Spec(name="int32.mul", inputs=("int32", "int32"), launch=_one_block(kernels.mul_kernel), **integer),
        Spec(name="int32.add", inputs=("int32", "int32"), launch=_one_block(kernels.add_kernel), **integer),
        Spec(name="int32.from_float32", inputs=("float32",), launch=_one_block(kernels.cast_kernel), **integer),
        Spec(name="float32.scale", launch=_scaled, **wide),
        *(
            Spec(
                name=f"float32.{name}",
                launch=_one_block(kernels.unary_kernel, NAME=name),
                bound=_unary_bound(function, relative, growth, absolute),
                **wide,
            )
            for name, function, relative, growth, absolute in _UNARY
        ),
    ]


#: Every probe, by name.
SPECS: dict[str, Spec] = {
    spec.name: spec
    for spec in (
        *(s for dtype in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2") for s in _cast_specs(dtype)),
        *(s for dtype in ("bfloat16", "float16", "float32") for s in _arithmetic_specs(dtype)),
        *_dot_specs(),
        *_other_specs(),
    )
}
