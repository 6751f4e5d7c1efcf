"""Dropout in eager PyTorch: the mask, the reference, the FP64 golden, and the samples."""

import torch

from opcheck import Case, Sample

WORD = 0xFFFFFFFF
ROUNDS = 10


def philox(seed: int, counter: torch.Tensor) -> torch.Tensor:
    """Return the four words `[n, 4]`, as int64, of Philox 4x32-10 at counters `[n]` with a 64-bit key.

    Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3 and table 2. A product of two words
    may wrap in int64: its upper word is right after the mask.
    """
    c0, c1 = counter & WORD, counter >> 32 & WORD
    c2 = c3 = torch.zeros_like(counter)
    k0, k1 = seed & WORD, seed >> 32 & WORD
    for _ in range(ROUNDS):
        even, odd = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (odd >> 32 & WORD) ^ c1 ^ k0, odd & WORD, (even >> 32 & WORD) ^ c3 ^ k1, even & WORD
        k0, k1 = k0 + 0x9E3779B9 & WORD, k1 + 0xBB67AE85 & WORD
    return torch.stack((c0, c1, c2, c3), -1)


def keep_mask(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Return where x `[...]` is kept: element i where word `i % 4` of counter `i // 4` is at least `p * 2^32`."""
    counter = torch.arange((x.numel() + 3) // 4, device=x.device)
    return (philox(seed, counter).flatten()[: x.numel()] >= round(p * 2**32)).view(x.shape)


def reference(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Scale in float32 what the mask keeps and round once to x's dtype; what is dropped is 0, whatever it was."""
    scale = 1 / (1 - p) if p < 1 else 0.0
    return (x.float() * scale).masked_fill(~keep_mask(x, p, seed), 0.0).to(x.dtype)


def golden(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Compute `x / (1 - p)` where kept, 0 elsewhere."""
    return torch.where(keep_mask(x, p, seed), x / max(1 - p, 2.0**-60), 0.0)


def samples(case: Case) -> Sample:
    """Draw x `[..., rows, cols]`; the seed has bits in both words of the key."""
    return Sample(case.tensor("...", "rows", "cols", name="x"), 0.25, 0x0123456789ABCDEF)
