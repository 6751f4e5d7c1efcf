"""Install the repair: put the faithful functions in the place of Triton's, or say in one sentence why not."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: The first release whose interpreter has the parts that are replaced.
OLDEST = (3, 9)

_BUILDER = (
    *("create_masked_load", "create_masked_store", "create_atomic_rmw", "create_atomic_cas"),
    *("cast_impl", "create_fp_to_fp", "create_dot", "create_fma", "create_erf", "create_rsqrt"),
    "create_extern_elementwise",
)
#: Operations after which a pointer still comes from the same argument.
_KEEP_ORIGIN = (
    *("create_addptr", "create_splat", "create_broadcast", "create_expand_dims", "create_trans", "create_reshape"),
    *("create_bitcast", "create_unsplat"),
)
_COMPARISONS = tuple(
    f"create_{kind}{name}"
    for kind, names in {
        "icmp": ("SLE", "SLT", "SGE", "SGT", "ULE", "ULT", "UGE", "UGT", "EQ", "NE"),
        "fcmp": ("OLT", "OGT", "OLE", "OGE", "OEQ", "ONE", "ULT", "UGT", "ULE", "UGE", "UEQ", "UNE"),
    }.items()
    for name in names
)

#: Operations through which the observer follows integers that wrap, beside those that keep an origin.
_FOLLOWED = (
    *("create_add", "create_sub", "create_mul", "create_sdiv", "create_srem", "create_and", "create_minsi"),
    *("create_maxsi", "create_select", "create_int_cast"),
)

#: What must exist, as `module:attribute.attribute`.
EXPECTED = (
    *(
        f"triton.runtime.interpreter:InterpreterBuilder.{name}"
        for name in (*_BUILDER, *_COMPARISONS, *_KEEP_ORIGIN, *_FOLLOWED)
    ),
    *(
        f"triton.runtime.interpreter:{name}"
        for name in (
            *("_get_np_dtype", "_implicit_cvt", "_patch_lang", "_patch_lang_core", "_mxfp_value_handle_to_float32"),
            *("_dot_scaled_scale_to_f32", "TensorHandle", "interpreter_semantic"),
            "interpreter_builder.options.sanitize_overflow",
            *("InterpreterBuilder.create_int_to_ptr", "TensorDescHandle.materialize_pointers"),
            "InterpreterBuilder.set_grid_dim",
            *("ReduceOps.apply_impl", "ReduceOps.generic_reduce", "ReduceOps.to_tensor"),
            *("ScanOps.apply_impl", "ScanOps.generic_scan", "GridExecutor.__call__"),
            *("InterpretedFunction.run", "InterpretedFunction.__call__", "FunctionRewriter.ast_transformer"),
            *("InterpreterBuilder.ir_sem_to_interpreter_sem", "InterpreterBuilder.ir_rmw_op_to_interpreter_rmw_op"),
        )
    ),
    *(
        f"triton._C.libtriton:interpreter.{name}"
        for name in ("load", "store", "atomic_rmw", "atomic_cas", "fma_fp32", "fma_fp64", "RMW_OP.FADD")
    ),
    *(f"triton._C.libtriton:ir.{name}" for name in ("ROUNDING_MODE.RTZ", "INPUT_PRECISION.TF32")),
    *(
        f"triton.language.standard:{name}"
        for name in (
            *("_sum_combine", "_prod_combine", "_elementwise_max", "_elementwise_min"),
            *("_argmax_combine_tie_break_left", "_argmax_combine_tie_break_fast"),
            *("_argmin_combine_tie_break_left", "_argmin_combine_tie_break_fast"),
        )
    ),
    *("triton.runtime.autotuner:Autotuner.run", "triton.runtime.autotuner:Autotuner.prune_configs"),
    *("triton.language.extra.libdevice:tanh", "triton.language.extra.cuda.libdevice:tanh"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The state of the repair in this process.

    Attributes:
        active: Whether interpreted kernels now compute as on a GPU.
        reason: Why not, in one sentence; empty when active.
        triton: The version found; empty where Triton is missing.
    """

    active: bool
    reason: str
    triton: str


_state: Repair | None = None


def state() -> Repair | None:
    """Return what `install` last answered, or None before the first call."""
    return _state


def install() -> Repair:
    """Make Triton's interpreter compute as an H200 does, or say why it cannot be done; never raises.

    Call it before the kernels' modules are imported: they may bind libdevice functions by name. A second call changes
    nothing.
    """
    global _state
    if _state is None or not _state.active:
        _state = _install()
    return _state


def _install() -> Repair:
    version = ""
    try:
        triton = importlib.import_module("triton")
        version = str(triton.__version__)
        reason = _obstacle(version, triton)
        if not reason:
            for place, name, value in tuple(_replacements()):
                setattr(place, name, value)
    except Exception as error:  # every surprise means the same: the interpreter stays as it was, and says so
        reason = f"Triton's interpreter could not be repaired: {type(error).__name__}: {error}"
    return Repair(active=not reason, reason=reason, triton=version)


def _obstacle(version: str, triton: Any) -> str:
    if not triton.knobs.runtime.interpret:
        return "TRITON_INTERPRET was not 1 when Triton was imported, so kernels are not interpreted."
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < OLDEST:
        return f"Triton {version} is older than {OLDEST[0]}.{OLDEST[1]}, the first whose interpreter can be repaired."
    missing = [path for path in EXPECTED if not _exists(path)]
    if missing:
        return f"Triton {version} lacks what the repair replaces: {', '.join(missing)}."
    return ""


def _exists(path: str) -> bool:
    module, _, attributes = path.partition(":")
    try:
        functools.reduce(getattr, attributes.split("."), importlib.import_module(module))
    except (ImportError, AttributeError):
        return False
    return True


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """Yield every place, attribute and new value; nothing is changed until all are known."""
    from triton.language.extra import libdevice as generic
    from triton.language.extra.cuda import libdevice as cuda
    from triton.runtime import interpreter
    from triton.runtime.autotuner import Autotuner

    from opcheck.backends.interpreter import arithmetic, autotune, guard, launch, libdevice, memory, origins, reductions

    builder = interpreter.InterpreterBuilder
    for name in _BUILDER:
        source = next(m for m in (memory, arithmetic, libdevice) if hasattr(m, name))
        yield builder, name, getattr(source, name)
    for name in _COMPARISONS:
        yield builder, name, arithmetic.comparison(name)
    for name in ("si_to_fp", "ui_to_fp", "fp_to_si", "fp_to_ui", "fp_ext", "fp_trunc"):
        yield builder, f"create_{name}", arithmetic.cast_impl
    yield interpreter, "_get_np_dtype", arithmetic.np_dtype
    yield interpreter, "_mxfp_value_handle_to_float32", arithmetic.mxfp_value
    yield interpreter, "_dot_scaled_scale_to_f32", arithmetic.mxfp_scale
    yield interpreter.ReduceOps, "apply_impl", reductions.reduce_impl
    yield interpreter.ScanOps, "apply_impl", reductions.scan_impl
    yield interpreter, "_implicit_cvt", launch.implicit_cvt
    yield interpreter, "_patch_lang_core", launch.patch_lang_core
    yield interpreter, launch.LOOP_NAME, launch.loop
    yield interpreter.FunctionRewriter, "ast_transformer", launch.Rewriter()
    yield interpreter.InterpretedFunction, "run", launch.run
    yield interpreter.InterpretedFunction, "__call__", launch.call
    yield interpreter.GridExecutor, "__call__", launch.launch
    yield builder, "set_grid_dim", launch.set_grid_dim
    yield Autotuner, "run", autotune.run
    yield from origins.replacements(_KEEP_ORIGIN)
    yield memory, "_observer", guard.see
    yield launch, "_watcher", guard.launched
    options = interpreter.interpreter_builder.options
    precisions = (*options.allowed_dot_input_precisions, "bf16x3", "bf16x6")
    yield (
        interpreter.interpreter_builder,
        "options",
        # Triton's own test for overflow ends in an assertion that only debugging makes: eight operations for nothing.
        dataclasses.replace(
            options, allowed_dot_input_precisions=tuple(dict.fromkeys(precisions)), sanitize_overflow=False
        ),
    )
    for name, function in vars(cuda).items():
        if callable(function) and getattr(function, "__module__", "").endswith("libdevice"):
            bound = libdevice.bind(function, interpreter.interpreter_semantic)
            yield cuda, name, bound
            if hasattr(generic, name):
                yield generic, name, bound
