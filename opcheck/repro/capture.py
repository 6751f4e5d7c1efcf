"""The child's side: run a failing case once more and take it apart for a script."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from opcheck.backends.configs import configured
from opcheck.checks import limits_by_check
from opcheck.core.behaviour import REFUSAL
from opcheck.core.case import Case
from opcheck.core.measure import digest_of, dtype_name
from opcheck.core.policy import limits_for
from opcheck.core.report import to_json
from opcheck.core.spec import OpSpec
from opcheck.declared import load_all
from opcheck.errors import OpcheckError
from opcheck.registry import spec as spec_of
from opcheck.repro.captured import Captured, Question, Stored
from opcheck.repro.expected import Expected, Oracle, expected
from opcheck.run.elements import input_conditions
from opcheck.run.inputs import Call
from opcheck.run.modules import import_modules, put_on_path
from opcheck.run.refusal import refusal
from opcheck.run.roles import RoleFailed, Run, cotangent, prepared, run_role
from opcheck.run.surroundings import kept
from opcheck.run.tensorfile import NAMES, write_tensors
from opcheck.worker import prepare

INLINE = 256  # elements of all tensors together that the script itself holds
NARROW = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})  # Triton's own interpreter computes nonsense in them
#: What the script's own names are, which no tensor may take.
_TAKEN = frozenset({"torch", "os", "sys", "op", "inf", "nan", "answer", "gradients", "judge", "tensor", "memory"})


def serve(channel: Any, payload: Mapping[str, Any]) -> None:
    """Answer items `{"case", "check", "tensor", "numbers", "data"}` by what a script of it is made of, or why not."""
    prepare(payload["backend"])
    for item in channel.items():
        channel.send(_capture(payload, item))


def serve_plain(channel: Any, payload: Mapping[str, Any]) -> None:
    """Answer the same items by what the target gives on Triton's own interpreter, without the repair."""
    torch.set_num_threads(1)
    for item in channel.items():
        spec, case = _imported(payload, item)
        with kept():
            channel.send({"mark": _mark(spec, case, item, payload)})


def _imported(payload: Mapping[str, Any], item: Mapping[str, Any]) -> tuple[OpSpec, Case]:
    put_on_path(payload["root"])
    import_modules(payload["modules"], skip=item["skip"])
    case = Case.parse(item["case"])
    return spec_of(case.op), case


def _capture(payload: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, Any]:
    spec, case = _imported(payload, item)
    if spec.op is None:
        return {"not": "the target is no torch.library op"}
    try:
        with kept():
            capture = _Capture(spec, case, item, payload)
            if capture.random:
                return {"not": "the op is declared random, so no stored values are the right ones"}
            captured = capture.captured()
    except (RoleFailed, OpcheckError) as error:
        return {"not": str(error)}
    return {"captured": to_json(captured)}


def _mark(spec: OpSpec, case: Case, item: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """Say what the target gives, so that two runs can be told from each other."""
    device = torch.device(payload["backend"])
    with configured(case.variant):
        if item["check"] == REFUSAL:
            contract = load_all(list(map(Path, payload["registries"])), limits_by_check()).ops[spec.name]
            found = refusal(spec, contract, case, device)
            return found.error or found.returned
        try:
            run = run_role(spec, case, "target", device)
        except RoleFailed as failed:
            return str(failed.raised)
    value = run.tensors.get(item["tensor"])
    return str(run.backward or "") if value is None else digest_of(value)


@dataclass(slots=True)
class _Names:
    """Python names for tensors, each once."""

    given: dict[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        if name not in self.given:
            text = re.sub(r"\W+", "_", name).strip("_") or "value"
            while keyword.iskeyword(text) or text in _TAKEN or text in self.given.values():
                text += "_"
            self.given[name] = text
        return self.given[name]


class _Capture:
    """Takes one case apart: arguments and upstream gradients as the target gets them, and what must come out."""

    def __init__(self, spec: OpSpec, case: Case, item: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        self._spec, self._case, self._item, self._payload = spec, case, item, payload
        self._device = torch.device(payload["backend"])
        policy = load_all(list(map(Path, payload["registries"])), limits_by_check())
        self._policy, self._contract = policy, policy.ops[spec.name]
        self._names = _Names()
        self._stored: list[Stored] = []
        self._owners: dict[tuple[int, torch.dtype], str] = {}
        self._memory: dict[str, Tensor] = {}
        self._keep: list[Tensor] = []

    @property
    def random(self) -> bool:
        """Whether no values can be stored to compare with."""
        return self._contract.random and self._question() == "values"

    def captured(self) -> Captured:
        """Return all that the script needs; what is large goes into the file."""
        call = prepared(self._spec, self._case, "target", self._device)
        arguments = self._arguments(call)
        leaves = {f"grad {name}": self._names.of(name) for name, value in call.tensors() if value.requires_grad}
        narrow = any(dtype_name(value.dtype) in NARROW for _, value in call.tensors())
        tensor, question = self._item["tensor"], self._question()
        if question == "refuses":
            return self._finish(question, arguments=arguments, narrow=narrow)
        reference = run_role(self._spec, self._case, "reference", self._device)
        backward = tensor in leaves or tensor == "gradients" or question == "returns"
        upstream = self._upstream(reference) if backward and leaves else {}
        narrow |= any(dtype_name(value.dtype) in NARROW for value in reference.outputs.values())
        more: dict[str, Any] = {"leaves": leaves if upstream else {}, "upstream": upstream}
        written = [name for name, _ in call.tensors() if name.partition("[")[0] in self._spec.mutated]
        more["mutated"] = {name: self._names.of(name) for name in written}
        if question != "returns":
            more |= self._expect(reference, question)
        return self._finish(question, arguments=arguments, narrow=narrow, **more)

    def _question(self) -> Question:
        check, tensor = self._item["check"], self._item["tensor"]
        if check == REFUSAL:
            return "refuses"
        if tensor in ("the case", "gradients"):
            return "returns"
        return "mean" if check == "bias" else "values"

    def _arguments(self, call: Call) -> str:
        count = len(call.args)
        parts = []
        for at, (name, value) in enumerate(zip(call.names, (*call.args, *call.kwargs.values()), strict=True)):
            text = self._source(name, value)
            parts.append(text if at < count else f"{name}={text}")
        return ", ".join(parts)

    def _source(self, name: str, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._store(name, value, leaf=value.requires_grad)
        if isinstance(value, list | tuple):
            return f"[{', '.join(self._source(f'{name}[{at}]', item) for at, item in enumerate(value))}]"
        return f"torch.{value!r}" if isinstance(value, torch.device) else repr(value)

    def _upstream(self, reference: Run) -> dict[str, str]:
        used = self._case.used or frozenset(reference.outputs)
        live = {
            name: value
            for name, value in reference.outputs.items()
            if value.dtype.is_floating_point and name in used and name not in reference.detached
        }
        return {
            name: self._store(f"grad {name}", cotangent(self._case, "target", name, value))
            for name, value in live.items()
        }

    def _expect(self, reference: Run, question: Question) -> dict[str, Any]:
        tensor, check = self._item["tensor"], self._item["check"]
        golden = run_role(self._spec, self._case, "golden", self._device)
        pair = reference.tensors.get(tensor), golden.tensors.get(tensor)
        if pair[0] is None or pair[1] is None:
            raise OpcheckError(f"reference or golden gives no {tensor}")
        dtype = dtype_name(pair[0].dtype)
        oracle = Oracle(
            reference=pair[0],
            golden=pair[1],
            contract=self._contract,
            numbers={name: float(value) for name, value in self._item["numbers"].items()},
            limits=limits_for(limits_by_check()[check], check, self._policy, self._spec.name, dtype),
            void=tensor.startswith("grad ") and golden.finite,
        )
        conditions = input_conditions(self._spec, self._case, self._device) if check == "ulp" else {}
        wanted = expected(check, oracle, conditions, tensor)
        self._store("expected", wanted.values.contiguous())
        return {
            "form": (f"torch.{dtype}", repr(tuple(pair[0].shape))),
            "allowed": self._allowed(wanted, question),
            "clip": wanted.clip,
        }

    def _allowed(self, wanted: Expected, question: Question) -> str:
        if question == "mean" and wanted.step is not None:
            self._store("step", wanted.step)
            return repr(wanted.limits)
        if not wanted.allowed.dim():
            return repr(float(wanted.allowed))
        return self._store("allowed", wanted.allowed.contiguous())

    def _store(self, name: str, value: Tensor, *, leaf: bool = False) -> str:
        """Add a tensor with the memory that it is a view of, and return its variable."""
        variable = self._names.of(name)
        value = value.detach()
        if value.dtype not in NAMES:
            raise OpcheckError(f"{name} is {dtype_name(value.dtype)}, which the file cannot hold")
        address = value.untyped_storage().data_ptr()
        owner = self._owners.get((address, value.dtype), "") if address else ""
        if not owner:
            self._owners[address, value.dtype] = variable
            whole = value.untyped_storage().nbytes() // value.element_size()
            self._memory[variable] = value.as_strided((whole,), (1,), 0)
        self._stored.append(
            Stored(
                variable=variable, dtype=f"torch.{dtype_name(value.dtype)}", size=tuple(value.shape),
                stride=value.stride(), offset=int(value.storage_offset()), of=owner, leaf=leaf,
            )
        )  # fmt: skip
        self._keep.append(value)
        return variable

    def _finish(self, question: Question, **fields: Any) -> Captured:
        small = sum(memory.numel() for memory in self._memory.values()) <= INLINE
        if not small:
            write_tensors(Path(self._item["data"]), self._memory)
        stored = tuple(self._with_values(item, small=small) for item in self._stored)
        # Last of all: a target that ends the process must not take what was found with it.
        mark = "" if self._item["fatal"] else _mark(self._spec, self._case, self._item, self._payload)
        return Captured(question=question, module=self._spec.module, stored=stored, mark=mark, **fields)

    def _with_values(self, item: Stored, *, small: bool) -> Stored:
        return replace(item, values=_literal(self._memory[item.variable])) if small and not item.of else item


def _literal(memory: Tensor) -> str:
    """Write memory `[n]` as a Python list; a float's shortest text as a double is exact for every narrower type."""
    exact = memory.double() if memory.dtype.is_floating_point else memory
    return repr(exact.tolist())
