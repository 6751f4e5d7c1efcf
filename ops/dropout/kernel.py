"""Dropout whose mask is a pure function of a seed: one Triton kernel for forward and backward, and its launch.

`y = x / (1 - p)` where kept, 0 elsewhere (Srivastava et al., 2014, section 10). The random word of element i is word
`i % 4` of Philox 4x32-10 (Salmon et al., 2011) at counter `i // 4` with the seed as key: what `tl.randint4x(seed, i //
4)` gives. The element is kept where its word is at least `p * 2^32`: an integer comparison, so that 0 keeps all and 1
keeps none. The backward draws the same words again; no mask is stored.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs

WORDS = 2**32
MAX_BLOCK = 1024


@triton.jit(do_not_specialize=["seed", "threshold"])
def _dropout_kernel(x_ptr, y_ptr, size, seed, threshold, scale, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    w0, w1, w2, w3 = tl.randint4x(seed, first // 4 + tl.arange(0, BLOCK // 4))
    words = tl.interleave(tl.interleave(w0, w2), tl.interleave(w1, w3))
    at = first + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < size, other=0.0).to(tl.float32)
    kept = words.to(tl.uint32, bitcast=True).to(tl.int64) >= threshold
    tl.store(y_ptr + at, tl.where(kept, x * scale, 0.0), mask=at < size)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Drop each element of x `[...]` with probability p and scale the rest; contiguous, in x's dtype.

    The elements are counted in the logical order of x, so that the mask does not depend on its strides. The map is
    linear and its own backward.
    """
    check_inputs("dropout", x=x)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: p is {p}, it should be from 0 to 1")
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    size = x.numel()
    if size:
        block = max(4, min(triton.next_power_of_2(size), MAX_BLOCK))
        with torch.cuda.device_of(x):
            _dropout_kernel[(triton.cdiv(size, block),)](
                x.contiguous(), y, size, seed, threshold(p), 1.0 / (1.0 - p) if p < 1.0 else 0.0, BLOCK=block
            )
    return y


def threshold(p: float) -> int:
    """Return the smallest random word, of `2^32`, that keeps its element; `2^32` where none does."""
    return round(p * WORDS)
