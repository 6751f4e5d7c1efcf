"""Linear layer `x @ weight^T + bias`: one tiled Triton matmul for forward and backward, and its launches.

Narrow operands accumulate in float32. For float32 operands the sum over tiles of k is compensated (Kahan, 1965): one
chain of additions as long as k was 16 times as far off as cuBLAS at k = 65536.
Backward: `dx = grad @ weight`, `dweight = grad^T @ x`, `dbias = sum over rows of grad`.
"""

import torch
import triton
import triton.language as tl

from .._layout import check_inputs


def _config(m: int, n: int, k: int, warps: int, stages: int) -> triton.Config:
    return triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)


@triton.autotune(
    configs=[
        _config(64, 64, 32, 4, 3),
        _config(128, 64, 32, 4, 4),
        _config(128, 128, 64, 8, 3),
        _config(16, 64, 64, 4, 4),
    ],
    key=["m", "n", "k"],
)
@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride_m,
    a_stride_k,
    b_stride_k,
    b_stride_n,
    HAS_BIAS: tl.constexpr,
    COMPENSATE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr = 8,
):
    # Programs walk GROUP_M tiles of rows before the next tile of columns, so that tiles of b are still in L2.
    program = tl.program_id(0)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = program // (GROUP_M * tiles_n)
    group_rows = tl.minimum(tl.cdiv(m, BLOCK_M) - group * GROUP_M, GROUP_M)
    tile_m = group * GROUP_M + program % (GROUP_M * tiles_n) % group_rows
    tile_n = program % (GROUP_M * tiles_n) // group_rows

    at_m = tile_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    at_n = tile_n.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    lanes = tl.arange(0, BLOCK_K).to(tl.int64)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    lost = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in range(0, k, BLOCK_K):
        at_k = start + lanes
        a = tl.load(
            a_ptr + at_m[:, None] * a_stride_m + at_k[None, :] * a_stride_k,
            mask=(at_m < m)[:, None] & (at_k < k)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + at_k[:, None] * b_stride_k + at_n[None, :] * b_stride_n,
            mask=(at_k < k)[:, None] & (at_n < n)[None, :],
            other=0.0,
        )
        # ieee: the default tf32 would lose 13 bits of float32 operands.
        if COMPENSATE:
            part = tl.dot(a, b, -lost, input_precision="ieee")
            larger = total + part
            # Inf - Inf would turn an infinite sum into NaN at the next tile.
            lost = tl.where(tl.abs(larger) < float("inf"), (larger - total) - part, 0.0)
            total = larger
        else:
            total = tl.dot(a, b, total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias_ptr + at_n, mask=at_n < n, other=0.0).to(tl.float32)[None, :]
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total, mask=(at_m < m)[:, None] & (at_n < n)[None, :])


def _matmul(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return `a @ b + bias` for a `[m, k]`, b `[k, n]` of any strides and bias `[n]`, in a's dtype."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    with torch.cuda.device_of(a):
        # Without a bias its pointer is never read; any tensor keeps the signature.
        _matmul_kernel[grid](
            a,
            b,
            c if bias is None else bias,
            c,
            m,
            n,
            k,
            *a.stride(),
            *b.stride(),
            HAS_BIAS=bias is not None,
            COMPENSATE=a.dtype == torch.float32,
        )
    return c


def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Compute `x @ weight^T + bias` for x `[..., k]`, weight `[n, k]`, bias `[n]` of one dtype: `[..., n]`."""
    check_inputs("linear", x=x, weight=weight, bias=bias)
    if x.dim() == 0 or weight.dim() != 2 or x.shape[-1:] != weight.shape[1:] or bias.shape != weight.shape[:1]:
        raise ValueError(
            f"linear: x {list(x.shape)}, weight {list(weight.shape)} and bias {list(bias.shape)} "
            "should be [..., k], [n, k] and [n]"
        )
    if weight.numel() == 0:
        raise ValueError(f"linear: weight is {list(weight.shape)}, it should have n and k of at least 1")
    if not x.dtype == weight.dtype == bias.dtype:
        raise TypeError(f"linear: x {x.dtype}, weight {weight.dtype} and bias {bias.dtype} should have one dtype")
    n, k = weight.shape
    if x.numel() == 0:
        return x.new_empty(*x.shape[:-1], n)
    return _matmul(x.reshape(-1, k), weight.t(), bias.contiguous()).view(*x.shape[:-1], n)


def backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of x `[..., k]`, weight `[n, k]` and bias `[n]`, each accumulated in float32."""
    n, k = weight.shape
    if x.numel() == 0:
        return x.new_empty(x.shape), weight.new_zeros(n, k), weight.new_zeros(n)
    rows, rows_grad = x.reshape(-1, k), grad.reshape(-1, n)
    grad_x = _matmul(rows_grad, weight).view(x.shape)
    grad_bias = rows_grad.sum(0, dtype=torch.float32).to(weight.dtype)
    return grad_x, _matmul(rows_grad.t(), rows), grad_bias
