"""Build one recorded launch for one target, as a first launch on such a GPU would."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from opcheck.backends.builds import listing
from opcheck.backends.builds.resources import registers_and_spills
from opcheck.backends.builds.tools import gpu
from opcheck.backends.configs import unbuildable
from opcheck.backends.launches import Seen
from opcheck.core.building import TARGETS, Binary

LONGEST = 400  # characters of a compiler's message
_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class _Driver:
    """What Triton asks of a driver before it compiles: for what."""

    name: str

    def get_current_target(self) -> Any:
        return gpu(self.name)

    def get_current_device(self) -> str:
        return self.name  # under this name a kernel keeps what was built

    def get_current_stream(self, device: Any = None) -> int:
        return 0


def build(launch: Seen, target: str, *, config: int = -1, turn: int = 0) -> Binary:
    """Compile a launch's kernel for a target; the arguments decide types, alignment and constants as in a launch.

    Nothing is run and no device is asked. What Triton has built before, in this process or in its cache on disk, is
    not built again.
    """
    code = launch.function.__code__
    binary = Binary(
        kernel=launch.function.__name__,
        where=f"{code.co_filename}:{code.co_firstlineno}",
        target=target,
        config=config if launch.tuned else -1,
        turn=turn if launch.tuned else 0,
        constants=", ".join(f"{name}={value}" for name, value in {**launch.constants, **_options(launch)}.items()),
    )
    with _driver(target):
        printed = _Printed()
        try:
            built = launch.jit.run(*launch.args, grid=launch.grid, warmup=True, **launch.kwargs)
        except Exception as error:
            problem = _message(error, printed.since())
            return replace(binary, problem=problem, line=_line(error), tolerated=isinstance(error, unbuildable()))
    ttir = built.asm.get("ttir", "")
    registers, spills = registers_and_spills(built.asm)
    return replace(
        binary,
        registers=registers,
        spills=spills,
        shared=built.metadata.shared or 0,
        columns=getattr(built.metadata, "tmem_size", None) or 0,
        threads=built.metadata.num_warps * TARGETS[target].warp,
        double=listing.double(ttir),
        tf32=listing.tf32(ttir),
        atomics=listing.atomics(ttir),
    )


@contextlib.contextmanager
def _driver(target: str) -> Iterator[None]:
    from triton.runtime.driver import driver

    before = driver._active
    driver.set_active(_Driver(target))
    try:
        yield
    finally:
        driver._active = before


def _options(launch: Seen) -> dict[str, Any]:
    return {name: launch.kwargs[name] for name in ("num_warps", "num_stages") if launch.kwargs.get(name)}


def _line(error: BaseException) -> str:
    """Return the author's line that Triton was compiling: of the innermost function that it was in."""
    found = ""
    trace = error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        generator = frame.f_locals.get("self")
        node = getattr(generator, "cur_node", None)
        if os.path.basename(frame.f_code.co_filename) == "code_generator.py" and hasattr(node, "lineno"):
            found = f"{generator.file_name}:{generator.begin_line + node.lineno}"  # type: ignore[union-attr]
    return found


def _message(error: Exception, printed: str) -> str:
    """Return Triton's own words; where a pass failed, they were printed and the exception has none."""
    said = printed or str(error)
    text = re.sub(r"\s+", " ", f"{type(error).__name__}: {said}").strip()
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


class _Printed:
    """The lines with an error that LLVM and MLIR print meanwhile, where this process prints into a file."""

    def __init__(self) -> None:
        self._start = self._size()

    def since(self) -> str:
        """Return what was printed since this was made, empty where nothing can be read."""
        if self._start < 0:
            return ""
        with contextlib.suppress(OSError):
            text = os.pread(2, _READ, self._start).decode(errors="replace")
            return " ".join(line for line in text.splitlines() if "error:" in line)
        return ""

    def _size(self) -> int:
        with contextlib.suppress(OSError):
            found = os.fstat(2)
            return found.st_size if stat.S_ISREG(found.st_mode) else -1
        return -1
