"""Run the target with a sample of its programs, and compare what those wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.measure import measure_oracle
from opcheck.core.memory import Observed, Sample
from opcheck.core.outcome import OracleErrors, Raised
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.core.variants import programs_of
from opcheck.errors import BadCase
from opcheck.run.observe import readable, sight
from opcheck.run.poison import NAN, poisoned
from opcheck.run.roles import RoleFailed, Run, run_role

SPREAD = 1 << 16  # elements, evenly spread, at which the reference's error is measured beside those of the sample
_NOT_STORED = "its programs read what programs that were left out write, or no kernel stores it"


def _own(raised: Raised) -> bool:
    """Say whether a failure is the op's whatever was left out: the size of a grid follows from shapes."""
    return raised.error == "GridTooLarge"


class SampledRun:
    """The run of one case with a few programs of each launch."""

    def __init__(self, spec: OpSpec, contract: Contract, case: Case, device: torch.device) -> None:
        self._spec, self._contract, self.case, self._device = spec, contract, case, device
        self._chosen: dict[str, Tensor] = {}
        self._oracle: OracleErrors = OracleErrors(tensors=(), draws=1)
        self._found = Observed()

    def target(self) -> Run:
        """Run the target; a result is there as far as it can be compared.

        Raises:
            RoleFailed: The target raised, though no program had been left out yet.
            SampleError, BadCase: The case does not fit the op, or nothing is interpreted here.
        """
        sighted, why = sight()
        if not sighted or self._device.type != "cpu":
            raise BadCase(f"{self.case.id}: programs are left out of interpreted launches only; {why}")
        from opcheck.backends.interpreter.sampling import sampled

        count = programs_of(self.case.variant) or 1
        failed = ""
        with sampled(frozenset(self._contract.extent), count, self.case.seed) as (sampler, observer):
            try:
                with poisoned(NAN, allocated=sampler.allocated):
                    run = run_role(self._spec, self.case, "target", self._device, watch=sampler)
            except RoleFailed as error:
                if _own(error.raised) or not (sampler.skipped or sampler.stopped):
                    raise
                run, failed = Run(outputs={}), str(error)
        if run.backward is not None and not _own(run.backward) and (sampler.skipped or sampler.stopped):
            run, failed = replace(run, backward=None, gradients={}), str(run.backward)
        left = []
        for name, value in run.tensors.items():
            covered = torch.from_numpy(sampler.covered(value))
            if covered.any() or not covered.numel():
                self._chosen[name] = covered.nonzero().reshape(-1)
            else:
                left.append((name, _NOT_STORED))
        if failed:
            left.append(("the rest", f"with most programs left out, {failed}"))
        sample = Sample(
            launches=tuple(sampler.launches), dependent=tuple(sampler.dependent), left=tuple(left),
            compared=tuple((name, int(at.numel()), run.tensors[name].numel()) for name, at in self._chosen.items()),
        )  # fmt: skip
        self._found = replace(readable(observer.found()), sample=sample)
        return run

    def comparable(self, target: Run, reference: Run, golden: Run) -> Iterator[tuple[str, Tensor, Tensor, Tensor]]:
        """Yield the name of each result, and `[n]` of target, reference and golden: the elements of the sample."""
        errors = []
        for name, chosen in self._chosen.items():
            value, expected, truth = target.tensors[name], reference.tensors.get(name), golden.tensors.get(name)
            if expected is None or truth is None or not value.shape == expected.shape == truth.shape:
                continue
            value, expected, truth = (item.detach().reshape(-1) for item in (value, expected, truth))
            more = torch.cat((chosen, torch.arange(0, truth.numel(), max(1, truth.numel() // SPREAD))))
            errors.append(measure_oracle(name, expected[more], truth[more]))
            yield name, value[chosen], expected[chosen], truth[chosen]
        self._oracle = OracleErrors(tensors=tuple(item for item in errors if item is not None), draws=1)

    def oracle(self) -> OracleErrors:
        """Return how far the reference is from golden, in more elements than the sample's."""
        return self._oracle

    def found(self) -> Observed:
        """Return what was seen of the programs that ran."""
        return self._found
