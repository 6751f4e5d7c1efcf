"""Ops that a process of its own registers by importing this module."""

import os
import sys

import torch

import opcheck
from opcheck import Sample


def samples(case):
    return Sample(case.tensor("n", name="x"))


def reference(x):
    return 3.0 * x


def _declare(name, compute):
    @opcheck.register(f"alone::{name}", reference=reference, samples=samples)
    def op(x: torch.Tensor) -> torch.Tensor:
        return compute(x)

    op.register_fake(torch.empty_like)
    op.register_autograd(lambda ctx, grad: 3.0 * grad)


def _exit(x):
    print("these are its last words", flush=True)
    os._exit(7)


def _raise(x):
    raise ArithmeticError("no")


def _assert(x):
    print("kernel.py:7: kernel: block: [0,0,0], thread: [0,0,0] Assertion `Buffer being accessed has outstanding "
          "writes` failed.", file=sys.stderr)  # fmt: skip
    raise RuntimeError("CUDA error: device-side assert triggered")


PLACE = f"tests/run/entry_ops.py:{_raise.__code__.co_firstlineno + 1}"
_declare("scale", reference)
_declare("exits", _exit)
_declare("raises", _raise)
_declare("asserts", _assert)
