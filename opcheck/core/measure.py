"""Compare a target's tensor with reference and golden, and keep only what the laws ask for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from opcheck.core.bias import bias_of
from opcheck.core.fibres import slices_of
from opcheck.core.floats import round_to, ulp, upcast_exact
from opcheck.core.formats import Format, format_of
from opcheck.core.grid import Misrounded, has_grid, misrounded, on_grid
from opcheck.core.measured import Disorder, Element, Measured, Misplaced
from opcheck.core.outcome import OracleError
from opcheck.core.policy import Existing, Overflow

WORST_KEPT = 64
DIGESTED_ON_DEVICE = 1 << 22  # bytes


def measure(
    tensor: str,
    target: Tensor,
    reference: Tensor,
    golden: Tensor,
    *,
    gradient: bool = False,
    inputs_finite: bool = True,
    overflow: Overflow = "ieee",
    existing: Existing | None = None,
    quantized: bool = False,
    steady: Tensor | None = None,
) -> Measured:
    """Measure how far `target` and `reference` are from `golden`.

    Args:
        tensor: Name of the tensor in reports.
        target: The kernel's answer, shape `[*S]`, any element type.
        reference: Eager answer in the same element type, shape `[*S]`.
        golden: The same quantity in float64 (or exactly, for integers and booleans), shape `[*S]`.
        gradient: Whether it is a gradient; a NaN of golden is void there when `inputs_finite`.
        overflow: What the op promises for results beyond the largest value of the element type.
        existing: A tolerance declared beside the gate.
        quantized: Whether golden is not rounded to the grid of the element type, of which target is the nearest number.
        steady: Golden with every inexact step off by a rounding of float32: which ties are ties in float32 too.

    Source:
        Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 1.2 and 2.1, for errors and ulps.
    """
    gridded = quantized and golden.dtype.is_floating_point and has_grid(target.dtype)
    if gridded and not target.dtype.is_floating_point:
        return _measure_integers(tensor, target, reference, golden, steady)
    if not target.dtype.is_floating_point:
        return _measure_exact(tensor, target, reference, golden)
    fmt = format_of(target.dtype)
    shape = tuple(target.shape)
    t, f, g = (upcast_exact(item.detach()).reshape(-1) for item in (target, reference, golden))
    trio = _Trio(t, f, g, round_to(g, fmt), shape)
    judged = trio.g.isfinite() & trio.r.isfinite() & f.isfinite()
    compared = judged & t.isfinite()
    plain = Measured(
        tensor=tensor, dtype=dtype_name(target.dtype), shape=shape, judged=int(judged.sum()), digest=digest_of(target)
    )
    if not t.numel():
        return plain
    plain = _with_disorder(plain, trio, fmt, overflow, void_allowed=gradient and inputs_finite)
    if gridded:
        found = misrounded(t, f, on_grid(f, g, target.dtype, overflow=overflow, steady=_flat(steady)))
        plain = replace(plain, **_off_grid(found, trio))
    if not plain.judged:
        return plain
    error_t, error_f = _where(compared, (t - g).abs()), _where(judged, (f - g).abs())
    step = ulp(g, fmt)
    scale = float(_where(judged, g.abs()).max())
    ulps = _where(compared, error_t / step)
    top = error_t.topk(min(WORST_KEPT, error_t.numel()))
    return replace(
        plain,
        scale=scale,
        reference_error=float(error_f.max()),
        target_error=float(error_t.max()),
        rounding_floor=float(_where(judged, (trio.r - g).abs()).max()),
        max_ulp=float(ulps.max()),
        max_ulp_at=trio.element(int(ulps.argmax())) if float(ulps.max()) > 0 else None,
        reference_max_ulp=float(_where(judged, error_f / step).max()),
        existing_excess=_excess(error_t, g, compared, existing),
        slices=slices_of(error_t, error_f, _where(judged, g.abs()), shape, fmt, scale),
        bias=bias_of(t, g, trio.r, step, compared, fmt, shape[-1] if shape else 1),
        reference_bias=bias_of(f, g, trio.r, step, judged, fmt),
        worst=plain.worst
        or tuple(trio.element(int(at)) for at, error in zip(top.indices, top.values, strict=True) if error > 0),
    )


def measure_oracle(tensor: str, reference: Tensor, golden: Tensor) -> OracleError | None:
    """Measure how far `reference` is from `golden`, both of shape `[*S]`; None for integers and booleans."""
    if not reference.dtype.is_floating_point or reference.shape != golden.shape:
        return None
    fmt = format_of(reference.dtype)
    f, g = upcast_exact(reference.detach()).reshape(-1), upcast_exact(golden.detach()).reshape(-1)
    r = round_to(g, fmt)
    judged = g.isfinite() & r.isfinite() & f.isfinite()
    count = int(judged.sum())
    if not count:
        return OracleError(tensor=tensor, reference_error=0.0, rounding_floor=0.0, scale=0.0, judged=0)
    error, magnitude = _where(judged, (f - g).abs()), _where(judged, g.abs())
    scale = float(magnitude.max())
    return OracleError(
        tensor=tensor,
        reference_error=float(error.max()),
        rounding_floor=float(_where(judged, (r - g).abs()).max()),
        scale=scale,
        judged=count,
        slices={
            axis.axis: axis.reference_quotient
            for axis in slices_of(error, error, magnitude, tuple(reference.shape), fmt, scale)
        },
    )


def digest_of(tensor: Tensor) -> str:
    """Digest the bit pattern of `tensor` in logical order: equal digests mean equal bits, NaN payloads included.

    What is large and on a GPU is digested there, by two sums of its words times odd numbers that depend on the place,
    modulo 2^64: not proof against an adversary, but against chance.
    """
    data = tensor.detach().contiguous().reshape(-1)
    raw = data.view(torch.uint8) if data.numel() else data
    if raw.device.type != "cpu" and raw.numel() > DIGESTED_ON_DEVICE and raw.numel() % 4 == 0:
        words = raw.view(torch.int32).to(torch.int64)
        places = torch.arange(words.numel(), device=raw.device)
        sums = (int((words * ((places * odd) | 1)).sum()) for odd in (-0x61C8864680B583EB, 0x2545F4914F6CDD1D))
        return "".join(f"{value & (1 << 64) - 1:016x}" for value in sums)
    return hashlib.blake2b(raw.cpu().numpy().tobytes() if raw.numel() else b"", digest_size=16).hexdigest()


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype's name without its package: `"bfloat16"`."""
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True, slots=True)
class _Trio:
    """Target, reference, golden and rounded golden of one tensor, flat and in float64."""

    t: Tensor
    f: Tensor
    g: Tensor
    r: Tensor
    shape: tuple[int, ...]

    def element(self, flat: int) -> Element:
        index = []
        rest = flat
        for size in reversed(self.shape):
            rest, position = divmod(rest, size)
            index.append(position)
        return Element(
            index=tuple(reversed(index)),
            golden=float(self.g[flat]),
            reference=float(self.f[flat]),
            target=float(self.t[flat]),
        )

    def misplaced(self, kind: Disorder, mask: Tensor) -> Misplaced | None:
        count = int(mask.sum())
        if not count:
            return None
        return Misplaced(kind=kind, count=count, first=self.element(int(mask.nonzero()[0])))


def _with_disorder(plain: Measured, trio: _Trio, fmt: Format, overflow: Overflow, *, void_allowed: bool) -> Measured:
    """Add what the law of structure needs: NaN and Inf places, overflow, and elements that only the target can answer.

    Where the rounded golden overflows, the op's promise says what is expected there: Inf, the largest value, or NaN.
    Next to the overflow bound either side of it is right within the threshold, which is not known here, so the largest
    distance to the bound is kept.
    """
    t, f, g, r = trio.t, trio.f, trio.g, trio.r
    policy = "nan" if overflow == "ieee" and not fmt.has_inf else overflow
    nan_g, inf_g, nan_t, inf_t = g.isnan(), g.isinf(), t.isnan(), t.isinf()
    void = nan_g if void_allowed else torch.zeros_like(nan_g)
    over = r.isinf()  # golden is Inf, or rounds to it
    beyond = over & ~inf_g
    same_sign = torch.sign(t) == torch.sign(g)
    inside = ~nan_g & ~over  # an ordinary number is expected
    odd_f = inside & ~f.isfinite()
    alike = odd_f & ~t.isfinite() & ((t == f) | (nan_t & f.isnan()))
    if policy == "ieee":
        alike = alike | (beyond & nan_t & f.isnan())  # on the way to golden both met Inf - Inf
    settled = alike | void
    short, excess = fmt.max - t.abs(), g.abs() - fmt.overflow_bound
    if policy == "saturate":
        done, early = same_sign & t.isfinite() & (short <= 0), torch.zeros_like(over)
        excess = torch.zeros_like(excess)
    elif policy == "nan":
        # NaN says nothing of overflow unless golden is large.
        done, early = nan_t, nan_t & (g.abs() > fmt.max / 2)
    else:
        done, early = inf_t, inf_t & same_sign
    early = early & inside & ~odd_f
    near = beyond & ~done & t.isfinite() & same_sign
    gap = torch.where(near, torch.maximum(short, excess), torch.zeros_like(g))
    gap = torch.where(early, fmt.overflow_bound - g.abs(), gap)
    turned = over & inf_t & ~same_sign
    found = (
        trio.misplaced("NaN missing", nan_g & ~void & ~nan_t),
        trio.misplaced("NaN where golden is finite", inside & ~settled & nan_t & ~early),
        trio.misplaced("Inf missing", over & ~done & ~near & ~turned & ~alike),
        trio.misplaced("Inf of the wrong sign", turned),
        trio.misplaced("Inf where golden is finite", inside & ~settled & inf_t & ~early),
    )
    held = odd_f & t.isfinite()
    return replace(
        plain,
        misplaced=tuple(item for item in found if item is not None),
        overflow_gap=float(gap.max()),
        overflow_at=trio.element(int(gap.argmax())) if float(gap.max()) > 0 else None,
        held_error=float(_where(held, (t - g).abs()).max()),
        held_floor=float(_where(held, ulp(g, fmt)).max()),
        held=int(held.sum()),
        void=int(void.sum()),
        alike=int(alike.sum()),
    )


def _measure_exact(tensor: str, target: Tensor, reference: Tensor, golden: Tensor) -> Measured:
    """Compare integers and booleans as integers: int64 does not fit into float64."""
    wrong = (target.to(torch.int64) != golden.to(torch.int64)).reshape(-1)
    flat_t, flat_f, flat_g = (item.reshape(-1) for item in (target, reference, golden))
    trio = _Trio(flat_t, flat_f, flat_g, flat_g, tuple(target.shape))
    places = wrong.nonzero().reshape(-1)[:WORST_KEPT]
    return Measured(
        tensor=tensor,
        dtype=dtype_name(target.dtype),
        shape=tuple(target.shape),
        judged=target.numel(),
        unequal=int(wrong.sum()),
        worst=tuple(trio.element(int(at)) for at in places),
        digest=digest_of(target),
    )


def _measure_integers(
    tensor: str, target: Tensor, reference: Tensor, golden: Tensor, steady: Tensor | None
) -> Measured:
    """Hold integers to the value that golden has before it is rounded; where golden is NaN there is no answer."""
    t, f, g = (upcast_exact(item.detach()).reshape(-1) for item in (target, reference, golden))
    plain = Measured(
        tensor=tensor, dtype=dtype_name(target.dtype), shape=tuple(target.shape), judged=int((~g.isnan()).sum()),
        digest=digest_of(target),
    )  # fmt: skip
    found = misrounded(t, f, on_grid(f, g, target.dtype, overflow="saturate", steady=_flat(steady)))
    return replace(plain, **_off_grid(found, _Trio(t, f, g, g, plain.shape)))


def _off_grid(found: Misrounded, trio: _Trio) -> dict[str, Any]:
    """Return what `Measured` says of a grid: how many elements are wrong, and which come first."""
    places = found.wrong.nonzero().reshape(-1)[:WORST_KEPT]
    worst = tuple(trio.element(int(at)) for at in places)
    return {"grid": True, "unequal": int(found.wrong.sum()), "ties": int(found.tied.sum()), "worst": worst}


def _flat(steady: Tensor | None) -> Tensor | None:
    return None if steady is None else upcast_exact(steady.detach()).reshape(-1)


def _where(mask: Tensor, values: Tensor) -> Tensor:
    return torch.where(mask, values, torch.zeros_like(values))


def _excess(error: Tensor, g: Tensor, compared: Tensor, existing: Existing | None) -> float:
    if existing is None:
        return 0.0
    allowed = existing.atol + existing.rtol * g.abs()
    ratio = torch.where(error > 0, error / allowed, torch.zeros_like(error))
    return float(_where(compared, ratio).max())
