"""Collect what a diagnosis needs, run the case again with one thing changed, and let the hypotheses judge."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from opcheck.core.case import Case, Dims
from opcheck.core.diagnosis import Hypothesis, Rerun, Scene, diagnoses
from opcheck.core.diagnosis.casts import TF32, truncated
from opcheck.core.diagnosis.programs import Launched, tiles
from opcheck.core.floats import FORMATS, round_to, ulp, upcast_exact
from opcheck.core.layouts import GRADIENT
from opcheck.core.measure import dtype_name
from opcheck.core.outcome import Role
from opcheck.core.policy import Contract
from opcheck.core.shapes import legal
from opcheck.core.spec import OpSpec
from opcheck.errors import OpcheckError
from opcheck.run.poison import poisoned
from opcheck.run.roles import RoleFailed, Run, run_role, upstream

MOST_ELEMENTS = 1 << 20  # of a tensor whose case is run again
SHORTER = (16, 4, 1)  # the reduction length is divided by these to see the error grow
SHORTEST = 4
ALLOWED = 4.0  # times the reference's error, of a run under another element type or family, as the gate for float32


@dataclass(frozen=True, slots=True)
class Changed:
    """Memory of a run in which each tensor that the op gets is replaced."""

    change: Callable[[str, Tensor], Tensor]

    def given(self, name: str, tensor: Tensor) -> Tensor:
        """Return what the op gets in place of a tensor `[*S]`."""
        return self.change(name, tensor.detach()).requires_grad_(tensor.requires_grad)

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Leave the op's own allocations alone."""
        return contextlib.nullcontext()


@dataclass(frozen=True, slots=True)
class Diagnosing:
    """Diagnose tensors of one op.

    Attributes:
        announce: Called before each role starts.
    """

    spec: OpSpec
    contract: Contract
    device: torch.device
    announce: Callable[[Case, str, Role], None]

    def found(self, case: Case, scene: Scene, golden: Run, threshold: float) -> tuple[Hypothesis, ...]:
        """Return the hypotheses of the stated score; the case runs again only where the values tell nothing."""
        scene = replace(scene, named=named(case, golden))
        if case.layouts and scene.golden.numel() <= MOST_ELEMENTS:
            scene = self._relaid(case, scene, threshold)
        found = diagnoses(scene)
        if found or scene.golden.numel() > MOST_ELEMENTS or not scene.wrong.any():
            return found
        for more in (self._narrowed, self._rerun, self._grown):
            try:
                found = diagnoses(more(case, scene, threshold))
            except (RoleFailed, OpcheckError):  # a size or type that the op does not take: no evidence
                continue
            if found:
                return found
        return ()

    def _narrowed(self, case: Case, scene: Scene, threshold: float) -> Scene:
        """Run golden with inputs and upstream gradients in narrower types: all of them, then each."""
        own = FORMATS.get(scene.dtype)
        formats = [item for item in (TF32, FORMATS["float16"], FORMATS["bfloat16"], FORMATS["float8_e4m3fn"])
                   if own and item.precision < own.precision]  # fmt: skip
        floats = [name for name, value in self._run(case, "golden").inputs.items() if value.is_floating_point()]
        changes = [(f" rounded to {item.name}", partial(round_to, fmt=item)) for item in formats]
        if formats[:1] == [TF32]:
            changes.append((" truncated to tf32", partial(truncated, fmt=TF32)))
        found = {}
        for which in ("", *(floats if len(floats) > 1 else ())):
            for how, change in changes:
                run = self._run(case, "golden", partial(_only, which, change))
                if scene.tensor in run.tensors:
                    found[f"{which or 'inputs'}{how}"] = upcast_exact(run.tensors[scene.tensor])
        return replace(scene, narrowed=found)

    def _relaid(self, case: Case, scene: Scene, threshold: float) -> Scene:
        """Run the target on the same values with contiguous memory: of each tensor, then of all."""
        return _until_right(scene, self._layouts(case, scene, threshold))

    def _rerun(self, case: Case, scene: Scene, threshold: float) -> Scene:
        """Run the target on ordinary values, then in float32, until it is right."""
        return _until_right(scene, self._kinds(case, scene))

    def _layouts(self, case: Case, scene: Scene, threshold: float) -> Iterator[tuple[str, float]]:
        for name, layout in case.layouts.items():
            run = self._run(case, "target", partial(_contiguous, name))
            about = f"the upstream gradient of {name.removeprefix(GRADIENT)}" if name.startswith(GRADIENT) else name
            text = f"strides of {about} that are taken for granted: right when it is contiguous and not {layout}"
            yield text, _far(run.tensors.get(scene.tensor), scene.golden, threshold)
        if len(case.layouts) > 1:
            run = self._run(case, "target", partial(_contiguous, ""))
            text = "strides that are taken for granted: right when everything is contiguous"
            yield text, _far(run.tensors.get(scene.tensor), scene.golden, threshold)

    def _kinds(self, case: Case, scene: Scene) -> Iterator[tuple[str, float]]:
        if case.values != "normal":
            text = f"the values of {case.values}: right on normal ones; the range, a tie or a missing stabilisation"
            yield text, self._excess(replace(case, values="normal"), scene.tensor)
        if case.dtype in ("float16", "bfloat16") and "float32" in self.contract.dtypes:
            text = f"the element type: right in float32, wrong in {case.dtype}"
            yield text, self._excess(replace(case, dtype="float32"), scene.tensor)

    def _excess(self, case: Case, tensor: str) -> float:
        """Return the target's error of a case over what its reference allows."""
        target, reference, golden = (
            self._run(case, role).tensors.get(tensor) for role in ("target", "reference", "golden")
        )
        if target is None or reference is None or golden is None or not target.is_floating_point():
            return math.inf
        g, fmt = upcast_exact(golden), FORMATS[dtype_name(target.dtype)]
        floor = _largest(round_to(g, fmt) - g) + 2.0 * float(ulp(_largest_of(g), fmt))
        allowed = ALLOWED * _largest(upcast_exact(reference) - g) + floor
        return _far(target, g, allowed)

    def _grown(self, case: Case, scene: Scene, threshold: float) -> Scene:
        """Measure the target's error at shorter lengths of the reduction, on two seeds each."""
        along = [name for name in self.contract.reduces if case.dims.get(name, 0) >= SHORTEST * SHORTER[0]]
        if len(along) != 1:
            return scene
        points = []
        for part in SHORTER:
            length = legal(self.contract, along[0], case.dims[along[0]] // part)
            errors = [self._relative(_sized(case, along[0], length).with_seed(case.seed + at), scene.tensor)
                      for at in range(2)]  # fmt: skip
            points.append((length, math.sqrt(sum(item * item for item in errors) / len(errors))))
        return replace(scene, growth=tuple(dict(points).items()))

    def _relative(self, case: Case, tensor: str) -> float:
        target, golden = (self._run(case, role).tensors[tensor] for role in ("target", "golden"))
        t, g = upcast_exact(target), upcast_exact(golden)
        return float((t - g).square().mean().sqrt() / g.square().mean().sqrt().clamp(min=1e-300))

    def _run(self, case: Case, role: Role, change: Callable[[str, Tensor], Tensor] | None = None) -> Run:
        self.announce(case, "locate", role)
        memory = Changed(change) if change else None
        with poisoned() if role == "target" else contextlib.nullcontext():
            return run_role(self.spec, case, role, self.device, memory=memory)


def named(case: Case, golden: Run) -> dict[str, Tensor]:
    """Return in float64 the inputs, the results and the upstream gradients of golden, by what a reader calls them."""
    found = {name: upcast_exact(value) for name, value in golden.inputs.items() if not value.is_complex()}
    for name, value in golden.tensors.items():
        if not value.is_complex():
            found[name] = upcast_exact(value)
    if golden.gradients:
        used = case.used or frozenset(golden.outputs)
        for name, value in golden.outputs.items():
            if name in used and value.is_floating_point():
                several = f" of {name}" if len(golden.outputs) > 1 else ""
                found[f"grad_output{several}"] = upcast_exact(upstream(case, name, value))
    return found


@contextlib.contextmanager
def launches() -> Iterator[Callable[[Tensor], Launched | None]]:
    """Record the launches in the block; yield what tells the last one that was given a tensor's memory."""
    if "triton" not in sys.modules:  # then no kernel of Triton's runs
        yield lambda _: None
        return
    from opcheck.backends.launches import recorded

    with recorded() as recording:

        def last(tensor: Tensor) -> Launched | None:
            for item in reversed(recording.launches):
                given = (*item.args, *item.kwargs.values())
                if any(isinstance(value, Tensor) and value.data_ptr() == tensor.data_ptr() for value in given):
                    kernel = item.kernel.rpartition(".")[2]
                    return Launched(kernel=kernel, grid=item.grid, constants=item.constants)
            return None

        yield last


def known_tiles(
    contract: Contract, launch: Launched | None, axes: tuple[str, ...], shape: tuple[int, ...]
) -> Mapping[str, tuple[int, ...]]:
    """Return the tile sizes of each named axis: the declared ones and those of the launch."""
    return {**contract.tiles, **(tiles(launch, axes, shape) if launch else {})}


def _until_right(scene: Scene, changes: Iterator[tuple[str, float]]) -> Scene:
    for change, error in changes:
        if error <= 1.0:
            return replace(scene, reruns=(Rerun(change=change, error=error),))
    return scene


def _only(which: str, change: Callable[[Tensor], Tensor], name: str, value: Tensor) -> Tensor:
    return change(value) if value.is_floating_point() and which in ("", name) else value


def _contiguous(which: str, name: str, value: Tensor) -> Tensor:
    return value.contiguous().clone() if which in ("", name) else value


def _sized(case: Case, name: str, size: int) -> Case:
    return replace(case, dims=Dims({**case.dims, name: size}))


def _far(target: Tensor | None, golden: Tensor, threshold: float) -> float:
    if target is None or target.shape != golden.shape or threshold <= 0:
        return math.inf
    error = (upcast_exact(target) - golden)[golden.isfinite()].abs()
    return float(error.max()) / threshold if len(error) and bool(error.isfinite().all()) else math.inf


def _largest(value: Tensor) -> float:
    return float(_largest_of(value))


def _largest_of(value: Tensor) -> Tensor:
    return value.abs().nan_to_num(0.0, 0.0, 0.0).max()
