"""K078: nothing restores the argument that each timed configuration updates in place."""

import torch
import triton
import triton.language as tl

import opcheck

from .twins import draw_x, twins

CONFIGS = [triton.Config({"BLOCK": 128}), triton.Config({"BLOCK": 64})]


@triton.jit
def _kernel(x_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(x_ptr + at, 3.0 * x, mask=at < count)


def reference(x):
    x.mul_(3.0)


@twins
def declare(namespace, wrong):
    restored = {} if wrong else {"restore_value": ["x_ptr"]}
    kernel = triton.autotune(CONFIGS, key=["count"], **restored)(_kernel)

    @opcheck.register(f"{namespace}::tuned_in_place", reference=reference, samples=draw_x, mutates_args=("x",))
    def op(x: torch.Tensor) -> None:
        """Multiply x `[rows, cols]` by 3 in place."""
        whole = x.contiguous()
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](whole, x.numel())
        if whole is not x:
            x.copy_(whole)

    op.register_fake(lambda x: None)
