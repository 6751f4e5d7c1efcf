"""Targets that raise, answer with something else than a tensor, or take their process with them."""

import ctypes
import os
import signal
import sys
import time

import torch

import opcheck

from ._double import golden, reference, register, samples


@register("bad::gives_text")
def gives_text(x: torch.Tensor) -> torch.Tensor:
    return "2 * x"


@register("bad::gives_none")
def gives_none(x: torch.Tensor) -> torch.Tensor:
    return None


@opcheck.register("bad::gives_two", reference=reference, golden=golden, samples=samples)
def gives_two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x * 2, x * 3


@gives_two.register_fake
def _(x):
    return torch.empty_like(x), torch.empty_like(x)


@register("bad::gives_input")
def gives_input(x: torch.Tensor) -> torch.Tensor:
    return x


@register("bad::raises")
def raises(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("cols must be a multiple of 16")


@opcheck.register("bad::raises_backward", reference=reference, golden=golden, samples=samples)
def raises_backward(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@raises_backward.register_fake
def _(x):
    return torch.empty_like(x)


def _backward(ctx, grad):
    raise ValueError("this backward is not written yet")


raises_backward.register_autograd(_backward)


@register("bad::exits")
def exits(x: torch.Tensor) -> torch.Tensor:
    sys.exit("no GPU here")


@register("bad::leaves")
def leaves(x: torch.Tensor) -> torch.Tensor:
    os._exit(3)


@register("bad::leaves_quietly")
def leaves_quietly(x: torch.Tensor) -> torch.Tensor:
    os._exit(0)


@register("bad::reads_null")
def reads_null(x: torch.Tensor) -> torch.Tensor:
    ctypes.string_at(0)
    return x * 2


@register("bad::is_killed")
def is_killed(x: torch.Tensor) -> torch.Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    return x * 2


@register("bad::dies_on_zeros")
def dies_on_zeros(x: torch.Tensor) -> torch.Tensor:
    if not x.any():
        os.kill(os.getpid(), signal.SIGSEGV)
    return x * 2


@register("bad::hangs")
def hangs(x: torch.Tensor) -> torch.Tensor:
    while True:
        time.sleep(1)


@register("bad::prints")
def prints(x: torch.Tensor) -> torch.Tensor:
    print("NOISE " * (1 << 18))
    print("NOISE " * (1 << 18), file=sys.stderr)
    os.write(1, b"NOISE\n")
    return x * 2


@register("bad::moves")
def moves(x: torch.Tensor) -> torch.Tensor:
    os.chdir("/")
    return x * 2


@register("bad::moves_and_raises")
def moves_and_raises(x: torch.Tensor) -> torch.Tensor:
    os.chdir("/")
    raise FileNotFoundError("no tuned.json here")


@register("bad::leaves_state")
def leaves_state(x: torch.Tensor) -> torch.Tensor:
    torch.set_default_dtype(torch.float64)
    return x * 2


@register("bad::needs_state", reference=lambda x: x * torch.full(x.shape, 2.0))
def needs_state(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@register("bad::right")
def right(x: torch.Tensor) -> torch.Tensor:
    return x * 2
