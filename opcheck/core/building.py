"""What building an op's kernels for a target tells without a device: do they build, what do they take, how they add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

COMPILE = "compile"  # the check
NO_KERNEL = "no Triton kernel was launched, so there was nothing to build"
BUILDING = "build "  # how the label of a build begins, by which its death is told from another's
MOST_THREADS = 1024  # of a block: CUDA Programming Guide, "Compute Capabilities"; ROCm, "HIP hardware features"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A GPU to build for.

    Attributes:
        backend, arch, warp: As Triton's `GPUTarget` takes them.
        shared: Bytes of shared memory that one block may have.
        columns: Columns of tensor memory that one block may have, 0 where there is none.
    """

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp: int
    shared: int
    columns: int = 0


def _cuda(arch: int, kilobytes: int, columns: int = 0) -> Target:
    return Target(backend="cuda", arch=arch, warp=32, shared=kilobytes * 1024, columns=columns)


def _cdna(arch: str, kilobytes: int) -> Target:
    return Target(backend="hip", arch=arch, warp=64, shared=kilobytes * 1024)


#: Shared memory of sm_*: CUDA Programming Guide, "Compute Capabilities", maximum amount of shared memory per thread
#: block. Tensor memory: PTX ISA, "Tensor Memory", 512 columns. LDS of gfx*: ROCm, "AMD GPU hardware specifications".
TARGETS: Mapping[str, Target] = {
    "sm_75": _cuda(75, 64),
    "sm_80": _cuda(80, 163),
    "sm_86": _cuda(86, 99),
    "sm_87": _cuda(87, 163),
    "sm_89": _cuda(89, 99),
    "sm_90": _cuda(90, 227),
    "sm_100": _cuda(100, 227, 512),
    "sm_103": _cuda(103, 227, 512),
    "sm_120": _cuda(120, 99),
    "gfx90a": _cdna("gfx90a", 64),
    "gfx942": _cdna("gfx942", 64),
    "gfx950": _cdna("gfx950", 160),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """Build the kernels that the target launches, for each of `targets`.

    Attributes:
        thorough: Every configuration of autotuned kernels and every variant of the contract, not only the first.
        every_shape: At the case's own odd shape too, not only at one as in earnest.
    """

    targets: tuple[str, ...]
    thorough: bool = False
    every_shape: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """One kernel, built for one target from the arguments of one launch.

    Attributes:
        where: Line of the kernel's definition.
        config: Index of the autotuner's configuration, -1 where the kernel is not autotuned.
        turn: Which of an autotuned kernel's launches in a run this was: for each one the tuner chooses apart.
        constants: Its `tl.constexpr` arguments and options, in words.
        problem: Why it does not build, empty where it does; `line` is the kernel's line at which that was found.
        tolerated: Whether the autotuner goes on to the next configuration after such a problem.
        registers: 32-bit registers of a thread, -1 where nothing told them.
        spills: 32-bit words of a thread in local memory, -1 where nothing told them.
        shared, columns, threads: Bytes of shared memory, columns of tensor memory, and threads of a block.
        double: Line of the first FP64 operation of a kernel without an FP64 argument.
        tf32: Line of the first dot of FP32 operands that rounds them to TF32.
        atomics: Line of the first atomic addition in FP16 or BF16, and of which.
    """

    kernel: str
    where: str
    target: str
    config: int = -1
    turn: int = 0
    constants: str = ""
    problem: str = ""
    line: str = ""
    tolerated: bool = False
    registers: int = -1
    spills: int = -1
    shared: int = 0
    columns: int = 0
    threads: int = 0
    double: str = ""
    tf32: str = ""
    atomics: str = ""

    @property
    def excess(self) -> str:
        """What a block needs more of than the target has, empty where it can be launched."""
        limits = TARGETS[self.target]
        for what, needs, has in (
            ("bytes of shared memory", self.shared, limits.shared),
            ("columns of tensor memory", self.columns, limits.columns),
            ("threads", self.threads, MOST_THREADS),
        ):
            if needs > has:
                return f"a block needs {needs} {what}, {self.target} has {has}: it cannot be launched"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Answer to `Build`.

    Attributes:
        offered: How many configurations each autotuned kernel has; not all need have been built.
        missing: What was not built, with why: a target, or what the op launches after a step that needs a device.
        blind: Why nothing could be built, empty where it could.
    """

    binaries: tuple[Binary, ...] = ()
    offered: Mapping[str, int] = field(default_factory=dict)
    missing: tuple[tuple[str, str], ...] = ()
    blind: str = ""
