"""Build a role's graph and go backward through it, as often and by whatever as is wanted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from opcheck.core.case import Case
from opcheck.core.outcome import Role
from opcheck.core.spec import OpSpec
from opcheck.run.failure import describe
from opcheck.run.roles import RoleFailed, answer, cotangent, live_outputs, prepared, setting, upstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """One forward of a role, ready to be differentiated.

    Attributes:
        leaves: The inputs that require a gradient, by name.
        live: The outputs through which it flows.
    """

    spec: OpSpec
    case: Case
    role: Role
    outputs: Mapping[str, Tensor]
    leaves: Mapping[str, Tensor] = field(default_factory=dict)
    live: Mapping[str, Tensor] = field(default_factory=dict)
    rounded: torch.dtype | None = None

    def cotangents(self) -> dict[str, Tensor]:
        """Return the upstream gradients, drawn anew, rounded to `rounded` so that all roles receive the same."""
        if self.rounded is None:
            return {name: cotangent(self.case, self.role, name, value) for name, value in self.live.items()}
        return {
            name: upstream(self.case, name, value.detach().to(self.rounded)).to(value.dtype)
            for name, value in self.live.items()
        }

    def gradients(self) -> dict[str, Tensor | None]:
        """Go backward once more, and return each leaf's gradient by `"grad <input>"`.

        Raises:
            RoleFailed: The backward raised.
        """
        if not self.live:
            return {f"grad {name}": None for name in self.leaves}
        found = self.differentiate(self.cotangents(), keep=True)
        return {f"grad {name}": value for name, value in found.items()}

    def differentiate(self, cotangents: Mapping[str, Tensor], *, keep: bool) -> dict[str, Tensor | None]:
        """Return each leaf's gradient under given upstream gradients; differentiable where one requires a gradient.

        Raises:
            RoleFailed: The backward raised.
        """
        create = any(value.requires_grad for value in cotangents.values())
        try:
            with setting(self.role, self.spec.dispatched):
                found = torch.autograd.grad(
                    list(self.live.values()), list(self.leaves.values()), list(cotangents.values()),
                    allow_unused=True, retain_graph=keep, create_graph=create,
                )  # fmt: skip
        except (Exception, SystemExit) as error:
            raise RoleFailed(describe(error, self.role, "backward")) from error
        return dict(zip(self.leaves, found, strict=True))

    def run(self, cotangent: Tensor) -> None:
        """Go backward from the first live output to whatever leaves there are, as `Tensor.backward` does.

        Raises:
            RoleFailed: The backward raised.
        """
        try:
            with setting(self.role, self.spec.dispatched):
                torch.autograd.backward([next(iter(self.live.values()))], [cotangent], retain_graph=True)
        except (Exception, SystemExit) as error:
            raise RoleFailed(describe(error, self.role, "backward")) from error

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Outputs without their history."""
        return {name: value.detach() for name, value in self.outputs.items()}


def build(
    spec: OpSpec,
    case: Case,
    role: Role,
    device: torch.device,
    *,
    precision: torch.dtype | None = None,
    autocast: torch.dtype | None = None,
    rounded: torch.dtype | None = None,
) -> Graph:
    """Call a role and keep its graph.

    Args:
        precision: Element type to which floating-point inputs are converted.
        autocast: Element type of the autocast under which the forward runs.
        rounded: Element type to which upstream gradients are rounded.

    Raises:
        RoleFailed: `samples` or the role raised.
        SampleError, BadCase: The case does not fit the op.
    """
    call = prepared(spec, case, role, device, precision=precision)
    with setting(role, spec.dispatched), _autocast(device, autocast):
        outputs, _ = answer(spec, role, call)
    leaves = {name: value for name, value in call.tensors() if value.requires_grad}
    live = live_outputs(outputs, case) if leaves else {}
    return Graph(spec=spec, case=case, role=role, outputs=outputs, leaves=leaves, live=live, rounded=rounded)


@contextlib.contextmanager
def _autocast(device: torch.device, dtype: torch.dtype | None) -> Iterator[None]:
    if dtype is None:
        yield
        return
    with torch.autocast(device.type, dtype=dtype, cache_enabled=False):
        yield
