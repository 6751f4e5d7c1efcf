"""What the mechanisms of random ops share: a dropout that draws its seed from torch's generator, and its reference."""

import torch
import triton
import triton.language as tl

P = 0.25
SCALE = 1 / (1 - P)
THRESHOLD = round(P * 2**32)


@triton.jit
def _drop_kernel(x_ptr, y_ptr, mask_ptr, seed, threshold, scale, count, KEEPS_BELOW: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = (at.to(tl.int64) + seed) & 0xFFFFFFFF
    for _ in tl.static_range(3):  # a mixer of 32 bits in 64-bit arithmetic
        word = ((word ^ (word >> 16)) * 0x45D9F3B) & 0xFFFFFFFF
    word = word ^ (word >> 16)
    kept = word < threshold if KEEPS_BELOW else word >= threshold
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr + at, tl.where(kept, x * scale, 0.0), mask=at < count)
    tl.store(mask_ptr + at, kept.to(tl.uint8), mask=at < count)


@triton.jit
def _masked_kernel(x_ptr, mask_ptr, y_ptr, scale, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < count, other=0.0)
    kept = tl.load(mask_ptr + at, mask=at < count, other=0) != 0
    tl.store(y_ptr + at, tl.where(kept, x * scale, 0.0), mask=at < count)


def fresh_seed() -> int:
    """Draw a seed from torch's generator, as a kernel on a GPU takes its offset from there."""
    return int(torch.randint(0, 2**40, ()))


def dropped(
    x: torch.Tensor, seed: int, *, scale: float = SCALE, keeps_below: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Drop a quarter of x `[*S]` and scale the rest; return it and the mask of what is kept, `[*S]`."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    mask = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    _drop_kernel[(triton.cdiv(x.numel(), 256),)](
        x.contiguous(), y, mask, seed, THRESHOLD, scale, x.numel(), KEEPS_BELOW=keeps_below, BLOCK=256
    )
    return y, mask.bool()


def masked(x: torch.Tensor, mask: torch.Tensor, *, scale: float = SCALE) -> torch.Tensor:
    """Scale x `[*S]` where the mask `[*S]` keeps it; 0 elsewhere."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    _masked_kernel[(triton.cdiv(x.numel(), 256),)](
        x.contiguous(), mask.view(torch.uint8).contiguous(), y, scale, x.numel(), BLOCK=256
    )
    return y


def reference(x):
    y, mask = torch.native_dropout(x, P, True)
    return y, mask.bool()  # of an empty tensor it is not boolean


def fake(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(x.shape, dtype=torch.bool)


def save_mask(ctx, inputs, output):
    ctx.save_for_backward(output[1])


def differentiable(op, name: str, backward) -> None:
    """Register fakes and the backward of an op that returns `(y, mask)`; `backward` takes grad and mask, `[*S]`."""

    @torch.library.custom_op(f"{name}_backward", mutates_args=())
    def gradient(grad: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return backward(grad, mask)

    gradient.register_fake(lambda grad, mask: torch.empty_like(grad, memory_format=torch.contiguous_format))
    op.register_fake(fake)
    op.register_autograd(lambda ctx, grad, _: gradient(grad, *ctx.saved_tensors), setup_context=save_mask)
