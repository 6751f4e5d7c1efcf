"""Run golden and reference so that they can be believed: full precision, watched, nothing borrowed from the user."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from opcheck.errors import OracleError


def promote(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an eager reference into a golden: the same code, its narrowing casts turned into FP64.

    The function returned is to be called with FP64 inputs. Casts by `.float()`, `.to(torch.float32)`, `type_as` and
    `dtype=` arguments become FP64, forward and backward.
    """

    def golden(*args: Any, **kwargs: Any) -> Any:
        with _Widen():  # type: ignore[no-untyped-call]
            return reference(*args, **kwargs)

    golden.promoted_from = reference  # type: ignore[attr-defined]
    return golden


class Own(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raise where golden or reference of an op calls the op itself: whatever it gives would then be right."""

    def __init__(self, role: str, name: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.role, self.name = role, name

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.name() == self.name:
            raise OracleError(
                f"{self.role} of {self.name} calls {self.name} itself, which proves nothing; write its formula in "
                f"PyTorch's own operations"
            )
        return func(*args, **(kwargs or {}))


class Watch(Own):  # type: ignore[no-untyped-call]
    """Raise, too, where an operation takes an FP64 tensor and gives a narrower float: golden is no longer FP64."""

    def __init__(self, name: str) -> None:
        super().__init__("golden", name)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if _holds_double(args, kwargs):
            for item in tree_leaves(result):
                if isinstance(item, Tensor) and item.dtype.is_floating_point and item.dtype != torch.float64:
                    narrow = str(item.dtype).removeprefix("torch.")
                    raise OracleError(
                        f"golden of {self.name} narrows: {func} takes a float64 tensor and gives {narrow}; golden must "
                        f"stay in float64 (drop the cast, or pass golden=None to have opcheck promote the reference)"
                    )
        return result


class _Widen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Replace every narrow floating `dtype=` by FP64."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        wanted = (kwargs or {}).get("dtype")
        if isinstance(wanted, torch.dtype) and wanted.is_floating_point and wanted != torch.float64:
            kwargs = {**(kwargs or {}), "dtype": torch.float64}
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def exact_settings(*, double: bool) -> Iterator[None]:
    """Switch off what makes eager code less accurate than its dtype, around golden and reference only.

    TF32, reduced-precision reductions and fused attention are the user's choice for the target, never the oracle's.
    """
    matmul = torch.backends.cuda.matmul
    settings: list[tuple[Any, str, Any]] = [
        (matmul, "allow_tf32", False),
        (matmul, "allow_fp16_reduced_precision_reduction", False),
        (matmul, "allow_bf16_reduced_precision_reduction", False),
        (torch.backends.cudnn, "allow_tf32", False),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in settings]
    dtype = torch.get_default_dtype()
    backend = torch.nn.attention.SDPBackend.MATH
    try:
        for owner, name, value in settings:
            setattr(owner, name, value)
        if double:
            torch.set_default_dtype(torch.float64)
        with torch.nn.attention.sdpa_kernel(backend), torch.autocast("cpu", enabled=False):
            if torch.cuda.is_available():
                with torch.autocast("cuda", enabled=False):
                    yield
            else:
                yield
    finally:
        torch.set_default_dtype(dtype)
        for owner, name, value in before:
            setattr(owner, name, value)


def _holds_double(args: Any, kwargs: Any) -> bool:
    return any(isinstance(item, Tensor) and item.dtype == torch.float64 for item in tree_leaves((args, kwargs)))
