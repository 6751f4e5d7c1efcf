"""Carry out trials: the one place where kernels run, and where tensors become evidence."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import assert_never

import torch
from torch import Tensor

from opcheck.backends.configs import configured, tuning
from opcheck.backends.interpreter.order import ORDERS, program_order
from opcheck.core.behaviour import REFUSAL, Autocast, Backwards, DoubleBackward, Refuse, SavedTensors, Watched
from opcheck.core.building import Build
from opcheck.core.case import Case
from opcheck.core.composition import Captured, Checkpointed, Compiled, Packed, Transformed
from opcheck.core.conditioning import Condition, Conditioned
from opcheck.core.depicted import Depict
from opcheck.core.draws import Draws
from opcheck.core.forms import FakeRun
from opcheck.core.guards import Guarded
from opcheck.core.measure import digest_of
from opcheck.core.memory import Observe, Observed
from opcheck.core.oracle import Examine
from opcheck.core.outcome import (
    Compare,
    Compared,
    Digests,
    ElementErrors,
    Elementwise,
    Locate,
    Located,
    OracleErrors,
    Orders,
    Outcome,
    Raised,
    Redraw,
    Redrawn,
    Registration,
    Repeat,
    Returned,
    Role,
    Siblings,
    Trial,
)  # fmt: skip
from opcheck.core.policy import Contract
from opcheck.core.sanitizer import Sanitize
from opcheck.core.spec import OpSpec
from opcheck.core.stress import Endure, Large, Reshape, SecondDevice, Streams
from opcheck.core.variants import programs_of
from opcheck.errors import OpcheckError, OracleError
from opcheck.run.autograd import Autograd
from opcheck.run.building import built
from opcheck.run.composition import composed
from opcheck.run.decoys import nearest_decoy
from opcheck.run.depicting import depicted
from opcheck.run.diagnosing import Diagnosing
from opcheck.run.draws import drawn
from opcheck.run.elements import element_errors, input_conditions
from opcheck.run.envelope import conditioned
from opcheck.run.examine import examined
from opcheck.run.failure import place_of
from opcheck.run.fakes import fake_forms, forms_of, symbolic_forms
from opcheck.run.guarded import GuardedRuns
from opcheck.run.intact import Watch, saved_into
from opcheck.run.library import registration
from opcheck.run.locating import located
from opcheck.run.measuring import Nudged, measured_as
from opcheck.run.misfits import misfits_of_oracles, misfits_of_target
from opcheck.run.observe import Observation
from opcheck.run.orders import two_orders
from opcheck.run.poison import LARGE, NAN, poisoned
from opcheck.run.refusal import refusal
from opcheck.run.roles import RoleFailed, Run, run_role
from opcheck.run.sample import SampledRun
from opcheck.run.sanitize import sanitized
from opcheck.run.siblings import oracle_errors, siblings
from opcheck.run.stress import stressed

Announce = Callable[[Case, str, Role], None]


class Executor:
    """Run the trials of one op on one device.

    Args:
        announce: Called before each role starts, so that the parent knows whose death it was.
    """

    def __init__(self, spec: OpSpec, contract: Contract, device: torch.device, announce: Announce) -> None:
        self.spec, self.contract, self.device, self._announce = spec, contract, device, announce
        self._observation: Observation | None = None
        self._sampled: SampledRun | None = None

    def execute(self, case: Case, trials: Iterable[Trial]) -> dict[Trial, Outcome]:
        """Run each trial of a case; what a role raises is an outcome, and misuse is raised.

        Where the target is to be observed and repeated, the first repeat is the observed run.
        """
        wanted = sorted(trials, key=lambda trial: isinstance(trial, Observe))
        observe = self.device.type == "cpu" and any(isinstance(trial, Observe) for trial in wanted)
        self._observation = Observation(self.spec, self.contract, case, self.device) if observe else None
        with configured(case.variant):
            return {trial: self._outcome(case, trial) for trial in wanted}

    def _outcome(self, case: Case, trial: Trial) -> Outcome:
        about = (self.spec, self.contract, case, self.device)
        try:
            match trial:
                case Compare():
                    return Returned(evidence=self._compare(case))
                case Siblings():
                    return Returned(evidence=self._siblings(case, trial))
                case Redraw():
                    return Returned(evidence=self._redrawn(case, trial.count))
                case Repeat():
                    return Returned(evidence=self._repeat(case, trial.count))
                case Registration():
                    self._announce(case, trial.test, "target")
                    return Returned(evidence=registration(self.spec, self.contract, case, self.device, trial))
                case Orders():
                    self._announce(case, "reduction orders", "reference")
                    return Returned(evidence=two_orders(self.spec, self.contract, case, self.device))
                case Condition():
                    return Returned(evidence=self._conditioned(case, trial))
                case Elementwise():
                    return Returned(evidence=self._elementwise(case, trial.max_ulp))
                case Locate() if programs_of(case.variant) is not None:
                    return Returned(evidence=Located(wrong=0, total=0, where="numbered among the elements compared"))
                case Examine():
                    return Returned(evidence=examined(*about, self._announce))
                case Locate():
                    diagnosing = Diagnosing(self.spec, self.contract, self.device, self._announce)
                    return Returned(evidence=located(self._run, case, trial, diagnosing))
                case Depict():
                    return Returned(evidence=depicted(self._run, case, trial, self.contract))
                case FakeRun():
                    self._announce(case, "fake", "target")
                    if trial.symbolic:
                        return Returned(evidence=symbolic_forms(self.spec, case, self.device))
                    return Returned(evidence=fake_forms(self.spec, case, self.device, self.contract.no_grad))
                case Refuse():
                    self._announce(case, REFUSAL, "target")
                    return Returned(evidence=refusal(self.spec, self.contract, case, self.device))
                case Draws():
                    return Returned(evidence=drawn(self.spec, case, self.device, trial, self._announce))
                case Observe():
                    return Returned(evidence=self._observed(case))
                case Guarded():
                    self._announce(case, "guard bands", "target")
                    return Returned(evidence=GuardedRuns(self.spec, self.contract, case, self.device).banded())
                case Sanitize():
                    self._announce(case, trial.tool, "target")
                    return Returned(evidence=sanitized(self.spec, case, trial))
                case Build():
                    return Returned(evidence=built(self.spec, self.contract, case, self.device, trial, self._announce))
                case SavedTensors():
                    return Returned(evidence=self._saved(case))
                case Backwards():
                    return Returned(evidence=self._autograd(case).backwards())
                case DoubleBackward():
                    return Returned(evidence=self._autograd(case).double_backward())
                case Autocast():
                    return Returned(evidence=self._autograd(case).autocast(trial))
                case Compiled() | Checkpointed() | Packed() | Transformed() | Captured():
                    return Returned(evidence=composed(*about, trial, self._announce))
                case Endure() | Reshape() | Streams() | SecondDevice() | Large():
                    return Returned(evidence=stressed(*about, trial, self._announce))
                case _:
                    assert_never(trial)
        except RoleFailed as failed:
            return failed.raised
        except OracleError as error:
            return Raised(role="golden", phase="forward", error="", message=str(error))
        except OpcheckError as error:
            where = place_of(self.spec.samples)
            return Raised(role="samples", phase="forward", error="", message=str(error), where=where)

    def _run(self, case: Case, label: str, role: Role) -> Run:
        self._announce(case, label, role)
        return run_role(self.spec, case, role, self.device)

    def _compare(self, case: Case) -> Compared:
        if programs_of(case.variant) is not None:
            return self._compare_sampled(case)
        # Golden and reference stay alive while the target runs: their freed memory would hold the right answer.
        golden = self._run(case, "compare", "golden")
        reference = self._run(case, "compare", "reference")
        if misfits := misfits_of_oracles(reference, golden):
            return Compared(tensors=(), misfits=misfits)
        watch = Watch()
        self._announce(case, "compare", "target")
        target = run_role(self.spec, case, "target", self.device, watch=watch)
        changed, untouched = watch.changed(), watch.untouched()
        misfits = (*misfits_of_target(target, reference, golden, self.contract),)
        unfit = {item.tensor for item in misfits}

        def steady(name: str) -> Tensor | None:
            return self._nudged(case).tensors.get(name)

        tensors = []
        for name, value in target.tensors.items():
            pair = reference.tensors.get(name), golden.tensors.get(name)
            if name in unfit or pair[0] is None or pair[1] is None:
                continue
            decoy, distance = nearest_decoy(name, golden)
            found = measured_as(
                self.contract, name, value, pair[0], pair[1], inputs_finite=golden.finite,
                steady=partial(steady, name),
            )  # fmt: skip
            tensors.append(replace(found, decoy=decoy, decoy_distance=distance))
        return Compared(
            tensors=tuple(tensors), misfits=misfits, changed=changed, untouched=untouched, watched=watch.count,
            forms=forms_of({name: value for name, value in target.tensors.items() if name not in target.mutated}),
        )  # fmt: skip

    def _compare_sampled(self, case: Case) -> Compared:
        golden = self._run(case, "compare", "golden")
        reference = self._run(case, "compare", "reference")
        if misfits := misfits_of_oracles(reference, golden):
            return Compared(tensors=(), misfits=misfits)
        self._sampled = sampled = SampledRun(self.spec, self.contract, case, self.device)
        self._announce(case, "compare", "target")
        target = sampled.target()
        if target.outputs or target.mutated:
            reached = replace(golden, gradients=golden.gradients if target.gradients else {})
            misfits = (*misfits_of_target(target, reference, reached, self.contract),)

        def steady(name: str) -> Tensor | None:
            found = sampled.comparable(target, reference, self._nudged(case))
            return next((truth for other, _, _, truth in found if other == name), None)

        tensors = tuple(
            measured_as(
                self.contract, name, value, expected, truth, inputs_finite=golden.finite, steady=partial(steady, name)
            )
            for name, value, expected, truth in sampled.comparable(target, reference, golden)
        )
        return Compared(tensors=tensors, misfits=misfits)

    def _saved(self, case: Case) -> Watched:
        self._announce(case, "saved tensors", "target")
        named, saved = Watch(), Watch()
        with saved_into(saved):
            run_role(self.spec, case, "target", self.device, watch=named)
        saved.drop(named)
        return Watched(count=saved.count, changed=saved.changed())

    def _autograd(self, case: Case) -> Autograd:
        return Autograd(self.spec, self.contract, case, self.device, self._announce)

    def _nudged(self, case: Case) -> Run:
        self._announce(case, "ties", "golden")
        return run_role(self.spec, case, "golden", self.device, memory=Nudged())

    def _redrawn(self, case: Case, count: int) -> Redrawn:
        return Redrawn(draws=tuple(self._compare(other).tensors for other in siblings(case, count)))

    def _siblings(self, case: Case, trial: Siblings) -> OracleErrors:
        if programs_of(case.variant) is not None and self._sampled is not None:
            return self._sampled.oracle()
        return oracle_errors(self._run, case, trial, self.contract)

    def _conditioned(self, case: Case, trial: Condition) -> Conditioned:
        def runs(of: Case, role: Role) -> Run:
            return self._run(of, "conditioning", role)

        return conditioned(self.spec, self.contract, [case, *siblings(case, trial.seeds - 1)], self.device, trial, runs)

    def _repeat(self, case: Case, count: int) -> Digests:
        """Repeat the target: in another program order where it is interpreted, and with poisoned allocations.

        The last of several runs launches every configuration first, as the first call of an autotuned kernel does.
        """
        interpreted = self.device.type == "cpu"
        runs, tuned = [], set[str]()
        for at in range(count):
            order = ORDERS[at % len(ORDERS)] if interpreted else "launch"
            byte = LARGE if at % 2 else NAN
            self._announce(case, f"repeat {at + 2}", "target")
            with program_order(order, seed=zlib.crc32(case.id.encode()) + at):
                if interpreted and not at and self._observation is not None:
                    run = self._observation.run()
                elif at and at == count - 1:
                    with poisoned(byte), tuning() as tuned:
                        run = run_role(self.spec, case, "target", self.device)
                elif interpreted or at < 2:
                    with poisoned(byte):
                        run = run_role(self.spec, case, "target", self.device)
                else:
                    run = run_role(self.spec, case, "target", self.device)
            runs.append(tuple((name, digest_of(value)) for name, value in run.tensors.items()))
        order_text = "in reversed and shuffled program order, " if interpreted else ""
        tuned_text = ", once after autotuning on the live arguments" if tuned else ""
        return Digests(runs=tuple(runs), varied=f"{order_text}with poisoned allocations{tuned_text}")

    def _observed(self, case: Case) -> Observed:
        if programs_of(case.variant) is not None and self._sampled is not None:
            return self._sampled.found()
        if self._observation is None:
            return Observed(blind="kernels are observed on the interpreter only")
        self._announce(case, "observe", "target")
        return self._observation.found()

    def _elementwise(self, case: Case, max_ulp: float) -> ElementErrors:
        reference = self._run(case, "elementwise", "reference")
        self._announce(case, "elementwise", "golden")
        conditioned = input_conditions(self.spec, case, self.device)
        target = self._run(case, "elementwise", "target")
        return ElementErrors(
            tensors=tuple(
                element_errors(name, target.tensors[name], reference.tensors[name], golden, condition, max_ulp)
                for name, (golden, condition) in conditioned.items()
                if name in target.tensors and name in reference.tensors
            )
        )
