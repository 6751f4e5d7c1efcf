"""CUDA C++ kernels behind ctypes, built by nvcc when first launched."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import torch

import opcheck
from opcheck import Case, Sample

SOURCE = Path(__file__).with_name("kernels.cu")
KERNELS = ("out_of_bounds", "race", "unwritten")
BLOCK = 128


def build() -> Path:
    """Compile the kernels for this machine's GPU, once, and return the library."""
    name = f"opcheck-cuda-broken-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    library = Path(tempfile.gettempdir()) / name
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        command = ["nvcc", "-O2", "-lineinfo", "-arch=native", "-shared", "-Xcompiler", "-fPIC"]
        subprocess.run([*command, "-o", str(part), str(SOURCE)], check=True)
        part.replace(library)
    return library


@functools.cache
def _library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(build()))
    found.launch.argtypes = [
        *(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
    ]
    return found


def _launch(kernel: str, x: torch.Tensor, y: torch.Tensor, wrong: bool) -> None:
    stream = torch.cuda.current_stream().cuda_stream
    status = _library().launch(KERNELS.index(kernel), x.data_ptr(), y.data_ptr(), x.numel(), wrong, stream)
    if status:
        raise RuntimeError(f"the launch of {kernel} gave CUDA error {status}")


def scaled(x):
    """Return `3 * x` for x `[rows, cols]`."""
    return 3.0 * x


def reversed_blocks(x):
    """Return `3 * x` for x `[rows, cols]` with every block of 128 elements reversed."""
    return 3.0 * x.reshape(-1, BLOCK).flip(1).reshape(x.shape)


def samples(case: Case) -> Sample:
    """Draw x `[rows, cols]`."""
    return Sample(case.tensor("rows", "cols", name="x"))


def _declare(kernel: str, namespace: str, wrong: bool) -> None:
    reference = reversed_blocks if kernel == "race" else scaled

    @opcheck.register(f"{namespace}::cuda_{kernel}", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        y = torch.empty_like(x)
        _launch(kernel, x, y, wrong)
        return y

    op.register_fake(lambda x: torch.empty_like(x, memory_format=torch.contiguous_format))
    op.register_autograd(lambda ctx, grad: reference(grad))


for _kernel in KERNELS:
    _declare(_kernel, "right", False)
    _declare(_kernel, "wrong", True)
