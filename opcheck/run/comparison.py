"""Hold runs of the target in unusual surroundings against the ordinary run: by bits, else by golden."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from opcheck.core.behaviour import Behaviour, Different, Problem
from opcheck.core.case import Case
from opcheck.core.laws import siblings_needed
from opcheck.core.measure import digest_of, dtype_name, measure_oracle
from opcheck.core.measured import Measured
from opcheck.core.outcome import OracleError, Role
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.run.graphs import Graph
from opcheck.run.inputs import Call
from opcheck.run.measuring import Nudged, measured_as
from opcheck.run.pooling import pooled
from opcheck.run.roles import RoleFailed, Run, answer, live_outputs, prepared, run_role, setting
from opcheck.run.seeds import generators_kept, seeded

STRIDE = 7919  # between the seeds of siblings
LONGEST = 300  # characters of a message that are kept

Announce = Callable[[Case, str, Role], None]
Found = Mapping[str, Tensor | None]


class Comparison:
    """Collect how runs of one op differ from its ordinary run on the same inputs.

    Args:
        label: The surroundings, as they are announced.
        announce: Called before each role starts.
    """

    def __init__(
        self, spec: OpSpec, contract: Contract, case: Case, device: torch.device, label: str, announce: Announce
    ) -> None:
        # An input for which no gradient is promised may have none in one of the surroundings and an error in another.
        self.spec = replace(spec, no_grad=frozenset(contract.no_grad))
        self.contract, self.case, self.device = contract, case, device
        self._label, self._announce = label, announce
        self._usual: dict[str, dict[str, Tensor | None]] = {}
        self._problems: list[Problem] = []
        self._different: list[Different] = []
        self._notes: list[str] = []
        self._equal = 0

    def tell(self, role: Role = "target") -> None:
        """Say that a role is about to run, which also says that the worker is alive."""
        self._announce(self.case, self._label, role)

    def sibling(self, step: int = 1) -> Case:
        """Return the same case with other values."""
        return self.case.with_seed(self.case.seed + step * STRIDE)

    def digests(self, case: Case) -> dict[str, str]:
        """Run the target as usual and keep the digest of each tensor.

        Raises:
            RoleFailed: It raised.
        """
        return {name: digest_of(value) for name, value in self.run(self.spec, case).items() if value is not None}

    def usual(self, case: Case) -> Found:
        """Return what the target gives in an ordinary run.

        Raises:
            RoleFailed: It raised.
        """
        if case.id not in self._usual:
            self.tell()
            self._usual[case.id] = self.run(self.spec, case)
        return self._usual[case.id]

    def run(self, spec: OpSpec, case: Case) -> dict[str, Tensor | None]:
        """Run a target once on a case, with its gradients; an op that draws random numbers starts from one seed.

        Raises:
            RoleFailed: It raised, forward or backward.
        """
        with self.seeded():
            return given_by(run_role(spec, case, "target", self.device))

    @contextlib.contextmanager
    def seeded(self) -> Iterator[None]:
        """Let every run of an op that draws random numbers start from one seed; leave the others alone."""
        if not self.contract.random:
            yield
            return
        with generators_kept(self.device):
            seeded(0)
            yield

    def problem(self, tensor: str, when: str, detail: str) -> None:
        """Keep something that is wrong whatever the numbers are."""
        self._problems.append(Problem(tensor=tensor, when=when, detail=detail))

    @property
    def unlike(self) -> bool:
        """Whether anything was not as in the ordinary run so far."""
        return bool(self._problems or self._different)

    def note(self, text: str) -> None:
        """Keep what a reader should know."""
        self._notes.append(text)

    def add(self, when: str, found: Found, case: Case) -> None:
        """Compare a run with the ordinary one on the same case: its bits, and where they differ its values."""
        usual = self.usual(case)
        unlike = {}
        for name in {**usual, **found}:
            value, before = found.get(name), usual.get(name)
            if self._formed(when, name, value, before) and value is not None and before is not None:
                if digest_of(value) == digest_of(before):
                    self._equal += 1
                else:
                    unlike[name] = value
        if unlike:
            self.judge(when, unlike, case)

    def same(self, when: str, found: Found, before: Mapping[str, str], case: Case) -> None:
        """Compare a run with the digests of an earlier one, and its values with golden whether they differ or not."""
        present = {name: value for name, value in found.items() if value is not None}
        for name in {**before, **present}:
            value = present.get(name)
            if value is not None and digest_of(value) == before.get(name):
                self._equal += 1
            elif self.exact(name):
                self.problem(name, when, "its bits are not those of the first run on the same values")
        if not self.contract.random:
            self.judge(when, present, case)

    def exact(self, name: str) -> bool:
        """Say whether a tensor has the same bits in every run, as the contract declares."""
        contract = self.contract
        return contract.deterministic_backward if name.startswith("grad ") else contract.deterministic_forward

    def judge(self, when: str, values: Mapping[str, Tensor], case: Case) -> None:
        """Measure tensors against golden, with the reference's errors over as many siblings as they need."""
        if self.contract.random:
            for name in values:
                self.problem(name, when, "its bits are not those of the ordinary run under the same seed")
            return
        golden, reference = self._oracle(case, "golden"), self._oracle(case, "reference")

        def steady(name: str) -> Tensor | None:
            return run_role(self.spec, case, "golden", self.device, memory=Nudged()).tensors.get(name)

        measured = {
            name: measured_as(self.contract, name, value, reference[name], golden[name], steady=partial(steady, name))
            for name, value in values.items()
            if name in golden and name in reference and golden[name].shape == value.shape
        }
        # What is no further off than the reference is right whatever the reference's other draws are.
        doubtful = {name: item for name, item in measured.items() if item.target_error > _near(item)}
        seeds = max((siblings_needed(item) for item in doubtful.values()), default=0)
        errors = {item.tensor: item for item in pooled(self._draws(case, seeds, doubtful))}
        self._different += (
            Different(when=when, measured=item, errors=errors.get(name)) for name, item in measured.items()
        )

    def behaviour(self, *uncovered: str) -> Behaviour:
        """Return what was found."""
        return Behaviour(
            problems=tuple(self._problems), different=tuple(self._different), equal=self._equal,
            notes=tuple(dict.fromkeys(self._notes)), uncovered=uncovered,
        )  # fmt: skip

    def _formed(self, when: str, name: str, value: Tensor | None, usual: Tensor | None) -> bool:
        """Say whether a tensor has the form that it has otherwise; that it has not is a problem."""
        if value is None or usual is None:
            if value is not usual:
                gone = "is None, and is a tensor" if value is None else "is a tensor, and is None"
                self.problem(name, when, f"{gone} in an ordinary run")
            return False
        if value.shape == usual.shape and value.dtype == usual.dtype:
            return True
        forms = [f"{dtype_name(item.dtype)} {list(item.shape)}" for item in (value, usual)]
        self.problem(name, when, f"is {forms[0]}, and {forms[1]} in an ordinary run")
        return False

    def _draws(self, case: Case, seeds: int, wanted: Iterable[str]) -> Iterator[OracleError]:
        for step in range(1, seeds + 1):
            sibling = case.with_seed(case.seed + step * STRIDE)
            golden, reference = self._oracle(sibling, "golden"), self._oracle(sibling, "reference")
            for name in wanted:
                if name in golden and name in reference:
                    error = measure_oracle(name, reference[name], golden[name])
                    if error is not None:
                        yield error

    def _oracle(self, case: Case, role: Role) -> dict[str, Tensor]:
        self.tell(role)
        return run_role(self.spec, case, role, self.device).tensors


def _near(measured: Measured) -> float:
    return measured.reference_error + measured.rounding_floor


def given_by(run: Run) -> dict[str, Tensor | None]:
    """Return every tensor of a run with its gradients, None where there is none.

    Raises:
        RoleFailed: Its backward raised.
    """
    if run.backward is not None:
        raise RoleFailed(run.backward)
    return {**{name: value.detach() for name, value in run.outputs.items()}, **run.mutated, **run.gradients}


def forward(spec: OpSpec, case: Case, call: Call) -> Graph:
    """Call the target with given arguments, and keep its graph.

    Raises:
        RoleFailed: It raised.
    """
    with setting("target", spec.dispatched):
        outputs, _ = answer(spec, "target", call)
    leaves = {} if spec.mutated else {name: value for name, value in call.tensors() if value.requires_grad}
    live = live_outputs(outputs, case) if leaves else {}
    return Graph(spec=spec, case=case, role="target", outputs=outputs, leaves=leaves, live=live)


def both_ways(spec: OpSpec, case: Case, call: Call) -> dict[str, Tensor | None]:
    """Call the target with given arguments, and go backward.

    Raises:
        RoleFailed: It raised.
    """
    graph = forward(spec, case, call)
    mutated = {name: value for name, value in call.tensors() if name.partition("[")[0] in spec.mutated}
    return {**graph.tensors, **mutated, **graph.gradients()}


def arguments(spec: OpSpec, case: Case, device: torch.device) -> Call:
    """Return the arguments of a case as the target receives them.

    Raises:
        RoleFailed: `samples` raised.
        SampleError, BadCase: The case does not fit the op.
    """
    return prepared(spec, case, "target", device)


def shortened(message: str) -> str:
    """Return the beginning of a message in one line."""
    text = " ".join(message.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def through(spec: OpSpec, target: Callable[..., object]) -> OpSpec:
    """Return the op with another target, for example the same one in other surroundings."""
    return replace(spec, target=target)
