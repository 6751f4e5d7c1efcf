"""Look at golden and reference of a case themselves: the same formula, the right gradient, the right digits?"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any, cast

import torch
from mpmath import mp
from torch import Tensor

from opcheck.core.case import Case, Dims
from opcheck.core.formats import format_of, ulp_scalar
from opcheck.core.measure import digest_of
from opcheck.core.oracle import SHARE, Examined, Gap, Gradient, Point
from opcheck.core.outcome import Role
from opcheck.core.policy import Contract
from opcheck.core.shapes import legal
from opcheck.core.spec import OpSpec
from opcheck.errors import OpcheckError
from opcheck.run.exact import DIGITS, Exact, NotCovered, to_float
from opcheck.run.inputs import Call
from opcheck.run.oracle import promote
from opcheck.run.orders import golden_orders
from opcheck.run.roles import RoleFailed, Run, answer, live_outputs, prepared, run_role, setting

Announce = Callable[[Case, str, Role], None]

SMALL = 7  # of each dimension, for gradcheck: its cost hardly grows with it
LARGEST = 32.0  # of an input of gradcheck
SEEDS = 3  # a kink that lies within a finite difference of an element is met under one of them at most
NONDETERMINISM = 1e-9  # atomics of golden on a GPU
SAMPLED = 16  # elements of each input
MAGNITUDES = (2.0**-60, 1e-10, 1e-8, 1e-4, 0.01, 0.5, 1.0, 3.0, 8.0, 20.0, 50.0, 88.0, 1e3, 1e5)


def examined(spec: OpSpec, contract: Contract, case: Case, device: torch.device, announce: Announce) -> Examined:
    """Return what is seen of golden and reference of one case, and whether the target is the reference."""
    looking = _Looking(spec, contract, case, device)
    announce(case, "oracle", "golden")
    formulas, orders = tuple(looking.formulas()), tuple(looking.orders())
    gradient, complaint = looking.gradient()
    evaluated, points = looking.points()
    announce(case, "oracle", "reference")
    reference = run_role(spec, case, "reference", device)
    digests = tuple((name, digest_of(value)) for name, value in reference.tensors.items())
    announce(case, "oracle", "target")
    return Examined(
        formulas=formulas, orders=orders, points=points, evaluated=evaluated, gradient=gradient, complaint=complaint,
        itself=_itself(spec, case, device), digests=digests,
        skipped=tuple(looking.skipped), not_covered=tuple(looking.not_covered),
    )  # fmt: skip


@dataclass(slots=True)
class _Looking:
    """One case's look at golden, and what was left out on the way."""

    spec: OpSpec
    contract: Contract
    case: Case
    device: torch.device
    skipped: list[str] = field(default_factory=list)
    not_covered: list[str] = field(default_factory=list)

    def formulas(self) -> Iterator[Gap]:
        """Compare golden with the reference in FP64, its casts turned into FP64 too."""
        if self.spec.promoted:
            self.skipped.append("golden is the promoted reference")
            return
        if self.contract.kind == "quantize":
            self.skipped.append("golden of a quantize op is not rounded, its reference is")
            return
        try:
            other = run_role(replace(self.spec, golden=promote(self.spec.reference)), self.case, "golden", self.device)
        except (RoleFailed, OpcheckError) as error:
            self.not_covered.append(f"golden against the reference in FP64, in which the reference fails: {error}")
            return
        golden = self._golden()
        for name, value in golden.tensors.items():
            gap = _gap(name, value, other.tensors.get(name))
            if gap is not None:
                yield gap

    def orders(self) -> Iterator[Gap]:
        """Compare golden with itself in another order of the declared reductions."""
        if self.spec.mutated or not self.contract.reduces:
            self.skipped.append("no other order of golden: the op mutates or reduces nothing")
            return
        try:
            found = golden_orders(self.spec, self.contract, self.case, self.device)
        except (RoleFailed, RuntimeError, IndexError) as error:
            # `samples` may have turned a tensor after it was drawn: its dimensions are then not where they were.
            self.not_covered.append(f"golden in another order of its reductions, in which it fails: {error}")
            return
        for name, (value, other) in found.items():
            if other is None:
                self.not_covered.append(f"{name} of golden in another order of its reductions, which changes it")
            elif (gap := _gap(name, value, other)) is not None:
                yield gap

    def gradient(self) -> tuple[Gradient, str]:
        """Check golden's gradient against finite differences, under another seed where one is against it."""
        if self.spec.mutated or self.contract.kind == "quantize":
            kind = "mutates its arguments" if self.spec.mutated else "rounds, and its gradient is a convention"
            self.skipped.append(f"no gradcheck: the op {kind}")
            return "skipped", ""
        complaint = ""
        for step in range(SEEDS):
            try:
                found = self._gradcheck(self._small().with_seed(self.case.seed + step))
            except (RoleFailed, OpcheckError) as error:
                self.not_covered.append(f"gradcheck of golden at a small shape, at which it fails: {error}")
                return "skipped", ""
            if found is None:
                self.skipped.append("no gradcheck: no finite output of golden depends differentiably on an input")
                return "skipped", ""
            if not found:
                return "holds", ""
            complaint = complaint or found
        return "fails", complaint

    def points(self) -> tuple[int, tuple[Point, ...]]:
        """Compare golden of an elementwise op with mpmath at elements of the case and at extremes."""
        if self.contract.kind != "elementwise" or self.case.dtype == "float64":
            return 0, ()
        try:
            return self._points()
        except NotCovered as missing:
            self.not_covered.append(f"golden against mpmath, for which it uses {missing}")
        except (RoleFailed, OpcheckError) as error:
            self.not_covered.append(f"golden against mpmath, for which it takes no vectors: {error}")
        return 0, ()

    def _golden(self) -> Run:
        return run_role(self.spec, self.case, "golden", self.device)

    def _small(self) -> Case:
        sizes = {
            name: size if name.startswith("...") else legal(self.contract, name, min(size, SMALL))
            for name, size in self.case.dims.items()
        }
        return replace(self.case, dims=Dims(sizes), values="normal", layout="", grads="")

    def _gradcheck(self, case: Case) -> str | None:
        """Return what `gradcheck` complains of, empty where it does not, None where there is nothing to check."""
        call = prepared(self.spec, case, "golden", self.device)
        leaves = {
            name: _moderate(value.detach()).clone().contiguous().requires_grad_(True)
            for name, value in call.tensors()
            if value.requires_grad and value.numel() and name.partition("[")[0] not in self.contract.no_grad
        }

        def function(*given: Tensor) -> tuple[Tensor, ...]:
            changed = dict(zip(leaves, given, strict=True))
            moved = call.map(lambda name, value: changed.get(name, value.detach()))
            with setting("golden", self.spec.dispatched):
                outputs, _ = answer(self.spec, "golden", moved)
            return tuple(live_outputs(outputs, case).values())

        outputs = function(*leaves.values()) if leaves else ()
        if not outputs or not all(bool(value.isfinite().all()) for value in outputs):
            return None
        try:
            torch.autograd.gradcheck(
                function, tuple(leaves.values()), fast_mode=True, check_undefined_grad=False,
                nondet_tol=NONDETERMINISM,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return " ".join(lines[:3])[:300] or type(error).__name__
        return ""

    def _points(self) -> tuple[int, tuple[Point, ...]]:
        call = prepared(self.spec, self.case, "golden", self.device)
        if self.spec.mutated:
            raise NotCovered("arguments that it writes into")
        if any(not value.dtype.is_floating_point for _, value in call.tensors()):
            raise NotCovered("tensors that are not floating-point")
        chosen = _chosen(call, self.case)
        vectors = call.map(lambda name, value: torch.tensor(chosen[name], dtype=torch.float64, device=value.device))
        with setting("golden", self.spec.dispatched), torch.no_grad():
            outputs, _ = answer(self.spec, "golden", vectors)
        count = len(next(iter(chosen.values()), ()))
        if any(tuple(value.shape) != (count,) for value in outputs.values()):
            raise NotCovered("the shapes of its inputs")
        fmt = format_of(self.case.dtype)
        worst: dict[str, Point] = {}
        evaluated = 0
        for at in range(count):
            exact = self._exact(call, {name: values[at] for name, values in chosen.items()})
            for name, value in outputs.items():
                golden, true = float(value[at]), exact.get(name, math.nan)
                if not (math.isfinite(golden) and math.isfinite(true)) or true == 0 or abs(true) > fmt.max:
                    continue
                evaluated += 1
                error, allowed = abs(golden - true), SHARE * ulp_scalar(true, fmt)
                if error > allowed and (name not in worst or error * worst[name].allowed > worst[name].error * allowed):
                    said = ", ".join(f"{key} = {values[at]:.6g}" for key, values in chosen.items())
                    worst[name] = Point(
                        tensor=name, at=said, golden=golden, exact=true, error=error, allowed=allowed
                    )  # fmt: skip
        return evaluated, tuple(worst.values())

    def _exact(self, call: Call, values: dict[str, float]) -> dict[str, float]:
        scalars: dict[str, Any] = {name: Exact(mp.mpf(value)) for name, value in values.items()}
        given = call.map(lambda name, value: cast(Tensor, scalars[name]))
        with mp.workdps(DIGITS):
            try:
                found = self.spec.golden(*given.args, **given.kwargs)
            except NotCovered:
                raise
            except Exception as error:
                raise NotCovered(f"what is not known of scalars ({type(error).__name__}: {error})") from error
            if not isinstance(found, tuple | list):
                return {"out": to_float(found)}
            return {f"out {at}": to_float(item) for at, item in enumerate(found)}


def _moderate(value: Tensor) -> Tensor:
    """Return `[*S]`, moved to mean 0 and variance 1 where finite differences of 1e-6 would drown in its size."""
    if not value.numel() or float(value.abs().max()) <= LARGEST:
        return value
    return (value - value.mean()) / (float(value.std(correction=0)) or 1.0)


def _chosen(call: Call, case: Case) -> dict[str, list[float]]:
    """Return for each input elements of the case, then extremes as its element type has them, all of one length."""
    found = {}
    extremes = [sign * size for size in MAGNITUDES for sign in (1.0, -1.0)]
    for step, (name, value) in enumerate(call.tensors()):
        flat = value.detach().reshape(-1)
        inside = [float(flat[at * 31 % flat.numel()]) for at in range(SAMPLED)] if flat.numel() else []
        turned = extremes[3 * step :] + extremes[: 3 * step]
        dtype = getattr(torch, case.dtype_of(name))
        rounded = torch.tensor(turned, dtype=torch.float64).to(dtype).double()
        found[name] = inside + [item if math.isfinite(item) else 1.0 for item in rounded.tolist()]
    if len({len(values) for values in found.values()}) > 1:
        raise NotCovered("an empty input")
    return found


def _gap(name: str, golden: Tensor, other: Tensor | None) -> Gap | None:
    """Return where two tensors `[*S]` differ most among elements that are finite in both, None where none is."""
    if other is None or other.shape != golden.shape or not golden.dtype.is_floating_point:
        return None
    if other.dtype != torch.float64 or golden.dtype != torch.float64:
        return None
    left, right = golden.detach().reshape(-1), other.detach().reshape(-1)
    finite = left.isfinite() & right.isfinite()
    if not bool(finite.any()):
        return None
    distance = torch.where(finite, (left - right).abs(), 0.0)
    at = int(distance.argmax())
    index = tuple(int(item) for item in torch.unravel_index(torch.tensor(at), golden.shape)) if golden.dim() else ()
    scale = float(torch.where(finite, left.abs(), 0.0).max())
    return Gap(
        tensor=name, index=index, golden=float(left[at]), other=float(right[at]), error=float(distance[at]), scale=scale
    )


def _itself(spec: OpSpec, case: Case, device: torch.device) -> str:
    """Say how the target is the reference: the same function, or one that calls it in this very case."""
    code = getattr(spec.reference, "__code__", None)
    body = inspect.unwrap(getattr(spec.op, "_init_fn", None) or spec.target)
    if spec.target is spec.reference or body is spec.reference:
        return "they are the same function"
    if code is None or not isinstance(own := getattr(body, "__code__", None), CodeType):
        return ""
    if own is code:
        return "they have the same code"
    if spec.reference in _named(body) and _runs(code, spec, case, device):
        return "the target calls it"
    return ""


def _named(function: Any) -> list[Any]:
    """Return what a function's body refers to by name, outside of it."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell is not None]
    found = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    attributes = [getattr(item, name, None) for item in found for name in function.__code__.co_names
                  if type(item).__name__ == "module"]  # fmt: skip
    return [*cells, *found, *attributes]


def _runs(code: CodeType, spec: OpSpec, case: Case, device: torch.device) -> bool:
    """Say whether the forward of the target runs this code: a fallback for other devices may only name it."""
    ran = False

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal ran
        ran = ran or (event == "call" and frame.f_code is code)

    call = prepared(spec, case, "target", device)
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        answer(spec, "target", call)
    except RoleFailed:
        return False
    finally:
        sys.setprofile(before)
    return ran
