"""What autograd may do with an op beside one plain backward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from opcheck.core.behaviour import Autocast, Behaviour, Different, Problem
from opcheck.core.case import Case
from opcheck.core.measure import digest_of, dtype_name, measure, measure_oracle
from opcheck.core.outcome import OracleError, Role
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.graphs import Graph, build
from opcheck.run.measuring import measured_as
from opcheck.run.pooling import pooled
from opcheck.run.roles import RoleFailed, Run, run_role, upstream

SEEDS = 8  # of the reference's errors, where the case's own siblings do not tell them
STRIDE = 7919

Announce = Callable[[Case, str, Role], None]


class Autograd:
    """Run one case of an op in the ways in which autograd uses it.

    Args:
        announce: Called before each role starts.
    """

    def __init__(self, spec: OpSpec, contract: Contract, case: Case, device: torch.device, announce: Announce) -> None:
        self.spec, self.contract, self.case, self.device, self._announce = spec, contract, case, device, announce

    def backwards(self) -> Behaviour:
        """Go backward twice through one graph, and with subsets of the inputs requiring a gradient."""
        graph = self._target(self.case, "backward")
        first = graph.gradients()
        problems: list[Problem] = []
        different: list[Different] = []
        equal = 0
        for when, run in self._again(graph):
            again = run()
            if isinstance(again, str):
                problems.append(Problem(tensor="gradients", when=when, detail=again))
                continue
            for name, value in again.items():
                before = first.get(name, graph.tensors.get(name))
                if value is None or before is None:
                    if (value is None) != (before is None):
                        gone = "is None, and is a tensor" if value is None else "is a tensor, and is None"
                        detail = f"{gone} when all inputs require a gradient"
                        problems.append(Problem(tensor=name, when=when, detail=detail))
                elif digest_of(value) == digest_of(before):
                    equal += 1
                elif when == _TWICE and self.contract.deterministic_backward:
                    detail = f"its bits are not those of the first backward; {_apart(before, value)}"
                    problems.append(Problem(tensor=name, when=when, detail=detail))
                else:
                    different += self._against_oracles(when, name, value)
        return Behaviour(problems=tuple(problems), different=tuple(different), equal=equal)

    def double_backward(self) -> Behaviour:
        """Differentiate each gradient by inputs and upstream gradients."""
        self._announce(self.case, "double backward", "target")
        found, raised = _second(build(self.spec, self.case, "target", self.device))
        notes = tuple(_said(raised))
        if not found:
            return Behaviour(notes=notes)
        draws: list[OracleError] = []
        own: tuple[dict[str, Tensor | None], dict[str, Tensor | None]] | None = None
        try:
            for step in range(SEEDS):
                case = self.case.with_seed(self.case.seed + step * STRIDE)
                pair = self._second_of(case, "golden"), self._second_of(case, "reference")
                own = own or pair
                draws += _errors(pair[1], pair[0], found)
        except RoleFailed as failed:
            return Behaviour(notes=(*notes, f"double backward is not judged: {failed}"))
        if own is None:
            return Behaviour(notes=notes)
        errors = {item.tensor: item for item in pooled(draws)}
        different = []
        for name, value in found.items():
            golden, reference = own[0].get(name), own[1].get(name)
            like = next((item for item in (value, reference, golden) if item is not None), None)
            if like is None or (golden is None and value is None):
                continue
            when = "double backward" if value is not None else "double backward, where the target's is None"
            dtype = value.dtype if value is not None else reference.dtype if reference is not None else like.dtype
            t, f, g = (
                torch.zeros_like(like, dtype=kind) if item is None else item
                for item, kind in ((value, dtype), (reference, dtype), (golden, torch.float64))
            )
            if t.shape != g.shape:
                continue
            measured = measure(name, t.detach(), f.detach(), g.detach(), gradient=True)
            different.append(Different(when=when, measured=measured, errors=errors.get(name)))
        return Behaviour(different=tuple(different), notes=notes)

    def autocast(self, trial: Autocast) -> Behaviour:
        """Run the forward under autocast, and the backward outside of it."""
        dtype: torch.dtype = getattr(torch, trial.dtype)
        when = f"autocast to {trial.dtype}"
        self._announce(self.case, when, "target")
        plain = build(self.spec, self.case, "target", self.device, rounded=dtype)
        usual = {**plain.tensors, **plain.gradients()}
        try:
            graph = build(self.spec, self.case, "target", self.device, autocast=dtype, rounded=dtype)
        except RoleFailed as failed:
            return Behaviour(notes=(f"{when}: raises: {failed}",))
        try:
            found = {**graph.tensors, **graph.gradients()}
        except RoleFailed as failed:
            detail = f"the forward works and its backward does not: {failed}"
            return Behaviour(problems=(Problem(tensor="gradients", when=when, detail=detail),))
        problems, unlike = [], {}
        for name, value in found.items():
            before = usual.get(name)
            if value is None or before is None:
                if (value is None) != (before is None):
                    detail = "is None in one of the runs with and without autocast"
                    problems.append(Problem(tensor=name, when=when, detail=detail))
            elif value.shape != before.shape or value.dtype not in (before.dtype, dtype):
                detail = f"is {_form(value)}, and {_form(before)} without autocast"
                problems.append(Problem(tensor=name, when=when, detail=detail))
            elif value.dtype != before.dtype or digest_of(value) != digest_of(before):
                unlike[name] = value
        different = tuple(self._under_autocast(when, dtype, unlike)) if unlike else ()
        return Behaviour(problems=tuple(problems), different=different, equal=len(found) - len(unlike) - len(problems))

    def _again(self, graph: Graph) -> Iterator[tuple[str, Callable[[], dict[str, Tensor | None] | str]]]:
        def twice() -> dict[str, Tensor | None] | str:
            try:
                return graph.gradients()
            except RoleFailed as failed:
                return str(failed)

        def only(names: tuple[str, ...]) -> Callable[[], dict[str, Tensor | None] | str]:
            def run() -> dict[str, Tensor | None] | str:
                used = f">{'+'.join(sorted(self.case.used))}" if self.case.used else ""
                try:
                    part = self._target(replace(self.case, grads="+".join(names) + used), "subset of gradients")
                    return {**part.tensors, **part.gradients()}
                except RoleFailed as failed:
                    return str(failed)

            return run

        if graph.live:
            yield _TWICE, twice
        excused = self.contract.no_grad
        names = tuple(name for name in graph.leaves if name.partition("[")[0] not in excused)
        for chosen in _subsets(names):
            yield f"only {' and '.join(chosen)} require{'s' if len(chosen) == 1 else ''} a gradient", only(chosen)

    def _target(self, case: Case, label: str) -> Graph:
        self._announce(case, label, "target")
        return build(self.spec, case, "target", self.device)

    @cached_property
    def _oracles(self) -> tuple[Run, Run]:
        self._announce(self.case, "backward", "golden")
        golden = run_role(self.spec, self.case, "golden", self.device)
        self._announce(self.case, "backward", "reference")
        return golden, run_role(self.spec, self.case, "reference", self.device)

    def _against_oracles(self, when: str, name: str, value: Tensor) -> Iterable[Different]:
        golden, reference = (run.tensors.get(name) for run in self._oracles)
        if golden is not None and reference is not None and golden.shape == value.shape:
            yield Different(when=when, measured=measured_as(self.contract, name, value, reference, golden))

    def _second_of(self, case: Case, role: Role) -> dict[str, Tensor | None]:
        self._announce(case, "siblings", role)
        return _second(build(self.spec, case, role, self.device))[0]

    def _under_autocast(self, when: str, dtype: torch.dtype, unlike: dict[str, Tensor]) -> Iterator[Different]:
        """Judge by the reference, too, under autocast, and on inputs rounded to its element type: both are right."""
        draws: list[OracleError] = []
        own: tuple[dict[str, Tensor | None], dict[str, Tensor | None]] | None = None
        for step in range(SEEDS):
            case = self.case.with_seed(self.case.seed + step * STRIDE)
            golden = self._all(case, "golden", rounded=dtype)
            for settings in ({"autocast": dtype}, {"precision": dtype}):
                try:
                    reference = self._all(case, "reference", rounded=dtype, **settings)
                except RoleFailed:
                    continue
                own = own or (golden, reference)
                draws += _errors(reference, golden, unlike)
        errors = {item.tensor: item for item in pooled(draws)}
        for name, value in unlike.items():
            g, f = (own[0].get(name), own[1].get(name)) if own is not None else (None, None)
            if g is not None and f is not None and g.shape == f.shape == value.shape:
                measured = measured_as(self.contract, name, value, f, g)
                yield Different(when=when, measured=measured, errors=errors.get(name))

    def _all(self, case: Case, role: Role, **settings: torch.dtype) -> dict[str, Tensor | None]:
        self._announce(case, "siblings", role)
        graph = build(self.spec, case, role, self.device, **settings)
        return {**graph.tensors, **graph.gradients()}


_TWICE = "a second backward through one graph"


def _second(graph: Graph) -> tuple[dict[str, Tensor | None], dict[str, str]]:
    """Return every second derivative by its name, and for each gradient that has none the exception's message."""
    cotangents = {name: value.requires_grad_() for name, value in graph.cotangents().items()}
    if not cotangents:
        return {}, {}
    try:
        gradients = graph.differentiate(cotangents, keep=True)
    except RoleFailed as failed:
        return {}, {"every gradient": failed.raised.message}
    by = {**graph.leaves, **{f"upstream {name}": value for name, value in cotangents.items()}}
    found: dict[str, Tensor | None] = {}
    raised: dict[str, str] = {}
    for name, value in gradients.items():
        if value is None:
            continue
        label = f"grad {name}"
        if not value.requires_grad:
            raised[label] = "it does not require grad"
            continue
        again = replace(graph, live={label: value}, leaves=by)
        weights = upstream(graph.case, f"second {name}", value.detach())
        try:
            second = again.differentiate({label: weights}, keep=True)
            if all(item is None for item in second.values()):
                # torch's once_differentiable cuts the graph where nobody asks, and raises where somebody does.
                again.run(weights)
        except RoleFailed as failed:
            raised[label] = failed.raised.message
            continue
        found |= {f"grad {key} of {label}": item for key, item in second.items()}
    return found, raised


def _said(raised: dict[str, str]) -> Iterator[str]:
    """Say once for all gradients that raise alike that they do."""
    for why in dict.fromkeys(raised.values()):
        names = ", ".join(name for name, other in raised.items() if other == why)
        yield f"double backward of {names} raises: {why}"


def _errors(
    reference: dict[str, Tensor | None], golden: dict[str, Tensor | None], wanted: Iterable[str]
) -> Iterator[OracleError]:
    for name in wanted:
        f, g = reference.get(name), golden.get(name)
        if f is not None and g is not None and (error := measure_oracle(name, f.detach(), g.detach())) is not None:
            yield error


def _subsets(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return each name alone and all but each, none twice, and not all of them."""
    alone = [(name,) for name in names]
    rest = [tuple(other for other in names if other != name) for name in names]
    return tuple(dict.fromkeys(item for item in (*alone, *rest) if 0 < len(item) < len(names)))


def _apart(before: Tensor, after: Tensor) -> str:
    if before.shape != after.shape:
        return f"shape {list(after.shape)}, before {list(before.shape)}"
    return f"largest difference {float((before.double() - after.double()).abs().max()):.1e}"


def _form(value: Tensor) -> str:
    return f"{dtype_name(value.dtype)} {list(value.shape)}"
