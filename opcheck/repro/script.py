"""Write the script that shows a failure: values in, Python source out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opcheck.core.case import Case
from opcheck.core.finding import Finding
from opcheck.core.version import VERSION
from opcheck.repro import parts
from opcheck.repro.captured import Captured, Stored

UNJUDGED = 2
UNJUDGED_BY_GIT = 125  # `git bisect run` skips a revision on it
STARTUP = 120.0  # seconds that a process may need to import torch, triton and the module on a busy machine
WIDTH = 110  # of the lines of the header


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a script says of itself, whatever it asks.

    Attributes:
        original: The case that was shrunk.
        finding: The failure of `case`.
        registry: The registry's file.
        fatal: Whether the failure ends or hangs the process.
        bisect: Whether the script is for `git bisect run`.
        timeout: Seconds that a run may take.
        level: The level of the audit, for a script that calls one.
        environment: Versions and device.
    """

    case: Case
    original: Case
    finding: Finding
    registry: Path
    fatal: bool
    bisect: bool
    timeout: float
    level: str
    environment: str

    @property
    def unjudged(self) -> int:
        """The exit status where it cannot be told whether the bug is there."""
        return UNJUDGED_BY_GIT if self.bisect else UNJUDGED


def standalone(captured: Captured, about: About, file: Path, *, repaired: bool, why: str) -> str:
    """Return a script that needs torch, triton and the user's module.

    Args:
        file: Where the script will stand; its data beside it.
        repaired: Whether it calls opcheck's repair of the interpreter.
        why: What the header says of that.
    """
    interpreted = about.case.backend == "cpu"
    needs = f"It needs torch, triton and the module {captured.module}, which imports opcheck to register the op. {why}"
    in_file = any(not item.values and not item.of for item in captured.stored)
    data = file.with_suffix(".safetensors").name
    blocks = []
    if about.bisect or about.fatal:
        lost = "1" if about.fatal else "UNJUDGED"
        blocks.append(parts.CONTAINED.format(timeout=about.timeout + STARTUP, lost=lost))
    blocks.append(parts.load(captured.module, about.case.op, about.case.backend, repaired=repaired))
    if captured.stored:
        blocks.append(parts.READ_FILE.format(data=data) if in_file else parts.TENSOR)
        blocks.append("\n".join(_tensor(item) for item in captured.stored))
    raises = about.finding.check == "structure" and " raised " in about.finding.detail
    blocks += _question(captured, about, raises=raises)
    body = "\n\n".join(_spaced(block) for block in blocks) + "\n"
    interpret, root = "1" if interpreted else "0", root_of(about.registry, file)
    start = parts.start(body, unjudged=about.unjudged, interpret=interpret, root=root).strip("\n")
    header = _header(about, needs + (f" Its tensors lie in {data} beside it." if in_file else ""))
    return f"{header}\n\n{start}\n\n{body}"


def through_opcheck(about: About, file: Path, checks: tuple[str, ...], why: str) -> str:
    """Return a script that has opcheck audit the case, for laws that no few lines of torch can see broken."""
    needs = f"It needs opcheck: {why}. It audits the one case and reads what {about.finding.check} says of it."
    flags = [f"--check={name}" for name in checks]
    return (
        "\n\n".join(
            (
                _header(about, needs).strip("\n"),
                parts.AUDIT.format(
                    root=root_of(about.registry, file),
                    registry=about.registry.name,
                    unjudged=about.unjudged,
                    case=about.case.id,
                    check=about.finding.check,
                    tensor=about.finding.tensor,
                    backend=about.case.backend,
                    level=about.level,
                    timeout=about.timeout,
                    checks=flags,
                ).strip("\n"),
            )
        )
        + "\n"
    )


def _spaced(block: str) -> str:
    """Return a block of source with the empty lines around it that it is to have."""
    text = block.strip("\n")
    return f"\n{text}\n" if text.startswith("def ") else text


def root_of(registry: Path, file: Path) -> str:
    """Return the registry's folder as source: relative to the script where that stands below it."""
    root = registry.parent
    if file.is_relative_to(root):
        return f"Path(__file__).resolve().parents[{len(file.relative_to(root).parts) - 1}]"
    return f"Path({str(root)!r})"


def _header(about: About, needs: str) -> str:
    finding, case = about.finding, about.case
    lines = [f"{finding.check} of {case.op}: {finding.tensor} is wrong.", ""]
    lines += _wrapped(finding.law, finding.detail, *filter(None, [finding.looks_like]))
    lines += ["", f"case: {case.id}"]
    if case != about.original:
        lines.append(f"shrunk from: {about.original.id}")
    lines += [f"written by opcheck {VERSION} on {about.environment}", ""]
    lines += _wrapped(needs)
    lines += [
        "",
        f"Exit status: 1 while the bug is there, 0 when it is gone, {about.unjudged} when that cannot be told.",
    ]
    if about.bisect:
        lines += ["", "git bisect start BAD GOOD && git bisect run python THIS_FILE"]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def _wrapped(*texts: str) -> list[str]:
    return [line for text in texts for line in textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False)]


def _tensor(item: Stored) -> str:
    view = f"{item.size}, {item.stride}, {item.offset}"
    if item.of:
        text = f"{item.of}.detach().as_strided({view})"
    elif len(item.values) > WIDTH:
        values = textwrap.indent(textwrap.fill(item.values, WIDTH), "    ")
        text = f"tensor(\n{values},\n    {item.dtype}, {view},\n)"
    else:
        text = f"tensor({item.values or repr(item.variable)}, {item.dtype}, {view})"
    return f"{item.variable} = {text}{'.requires_grad_()' if item.leaf else ''}"


def _question(captured: Captured, about: About, *, raises: bool) -> Iterator[str]:
    if captured.question == "refuses":
        yield parts.REFUSES.format(arguments=captured.arguments)
        return
    yield parts.NAMED
    yield _call(captured, failed="1" if raises or captured.question == "returns" else "UNJUDGED")
    if captured.question == "returns":
        yield parts.RETURNED
        return
    dtype, shape = captured.form
    unfit = "1" if about.finding.check == "structure" else "UNJUDGED"
    form = {
        "check": about.finding.check,
        "tensor": about.finding.tensor,
        "dtype": dtype,
        "shape": shape,
        "unfit": unfit,
    }
    got = _got(captured, about.finding.tensor)
    if captured.question == "mean":
        yield parts.MEAN.format(got=got, allowed=captured.allowed, clip=captured.clip, **form)
    else:
        # A quantization's integers are held to numbers that are none.
        wanted = next((item.dtype for item in captured.stored if item.variable == "expected"), dtype)
        exact = not wanted.startswith(("torch.float", "torch.bfloat"))
        near = parts.EXACT if exact else parts.NEAR.format(allowed=captured.allowed)
        yield parts.VALUES.format(got=got, near=near.strip("\n"), **form)


def _call(captured: Captured, *, failed: str) -> str:
    lines = ["try:"]
    if captured.mutated:
        lines += ["    with torch.no_grad():", f"        answer = named(op({captured.arguments}))"]
    else:
        lines.append(f"    answer = named(op({captured.arguments}))")
    if captured.upstream:
        outputs = ", ".join(f"answer[{name!r}]" for name in captured.upstream)
        inputs, given = ", ".join(captured.leaves.values()), ", ".join(captured.upstream.values())
        lines.append(f"    gradients = torch.autograd.grad([{outputs}], [{inputs}], [{given}], allow_unused=True)")
    lines += ["except BaseException as error:", *parts.FAILED.format(failed=failed).strip("\n").splitlines()]
    return "\n".join(lines)


def _got(captured: Captured, tensor: str) -> str:
    if tensor in captured.mutated:
        return captured.mutated[tensor]
    if tensor in captured.leaves:
        return f"gradients[{list(captured.leaves).index(tensor)}]"
    return f"answer.get({tensor!r})"
