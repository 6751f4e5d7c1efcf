"""Run a target on a case that its contract forbids."""

from __future__ import annotations

import torch

from opcheck.core.behaviour import Refused
from opcheck.core.case import Case
from opcheck.core.measure import dtype_name
from opcheck.core.policy import Contract
from opcheck.core.spec import OpSpec
from opcheck.errors import OpcheckError
from opcheck.run.roles import RoleFailed, answer, prepared, setting, settle


def refusal(spec: OpSpec, contract: Contract, case: Case, device: torch.device) -> Refused:
    """Say whether the target raises; `vacuous` where the case cannot be put to it, or is legal after all."""
    try:
        call = prepared(spec, case, "target", device)
    except (RoleFailed, OpcheckError) as error:
        return Refused(vacuous=f"samples cannot draw it ({error})")
    strided = [name for name, _ in call.tensors() if name in contract.contiguous and name in case.layouts]
    if strided and all(value.is_contiguous() for name, value in call.tensors() if name in strided):
        return Refused(vacuous=f"{', '.join(strided)} is contiguous all the same at these sizes")
    try:
        with setting("target", spec.dispatched):
            outputs, odd = answer(spec, "target", call)
            settle(device)
    except RoleFailed as failed:
        if failed.raised.error == "SystemExit":
            return Refused(returned="a SystemExit, which ends the process")
        return Refused(error=str(failed.raised))
    except RuntimeError as error:
        return Refused(returned=f"a fault of the device ({' '.join(str(error).split())[:120]})")
    given = [f"{name} {dtype_name(value.dtype)} {list(value.shape)}" for name, value in outputs.items()]
    return Refused(returned="; ".join((*given, *odd)) or "nothing")
