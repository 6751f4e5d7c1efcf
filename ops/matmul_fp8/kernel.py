"""Scaled matmul of float8_e4m3fn: one tiled Triton kernel that accumulates in float32, and its launch.

The scales are constant along k, so that they are applied once, after the sum (Micikevicius et al., FP8 Formats for Deep
Learning, 2022).
"""

import torch
import triton
import triton.language as tl

OUTPUTS = {"bfloat16": torch.bfloat16, "float32": torch.float32}
SCALINGS = ("rowwise", "tensorwise")


def _config(m: int, n: int, k: int, warps: int, stages: int) -> triton.Config:
    return triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=warps, num_stages=stages)


@triton.autotune(configs=[_config(64, 64, 64, 4, 3), _config(128, 128, 128, 8, 3)], key=["m", "n", "k"])
@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    scale_a_ptr,
    scale_b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_stride_m,
    a_stride_k,
    b_stride_k,
    b_stride_n,
    scale_a_stride,
    scale_b_stride,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    at_m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    at_n = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    lanes = tl.arange(0, BLOCK_K).to(tl.int64)
    total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
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
        # Hopper's tensor cores keep about 14 bits of sums of fp8 products unless told to move them to float32.
        total = tl.dot(a, b, total, max_num_imprecise_acc=0)
    scale_a = tl.load(scale_a_ptr + at_m * scale_a_stride, mask=at_m < m, other=0.0)
    scale_b = tl.load(scale_b_ptr + at_n * scale_b_stride, mask=at_n < n, other=0.0)
    mask = (at_m < m)[:, None] & (at_n < n)[None, :]
    tl.store(c_ptr + at_m[:, None] * n + at_n[None, :], total * scale_a[:, None] * scale_b[None, :], mask=mask)


def forward(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, scaling: str, out_dtype: str
) -> torch.Tensor:
    """Compute `(a @ b) * scale_a * scale_b` for a `[m, k]` and b `[k, n]` of any strides: `[m, n]`.

    Raises:
        TypeError: A matrix is not float8_e4m3fn, or a scale is not float32.
        ValueError: Shapes, devices, `scaling` or `out_dtype` do not fit.
    """
    _check(a, b, scale_a, scale_b, scaling, out_dtype)
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=OUTPUTS[out_dtype], device=a.device)
    if not m:
        return c
    by_row = scaling == "rowwise"

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(m, meta["BLOCK_M"]), triton.cdiv(n, meta["BLOCK_N"])

    with torch.cuda.device_of(a):
        _matmul_kernel[grid](
            a,
            b,
            scale_a,
            scale_b,
            c,
            m,
            n,
            k,
            *a.stride(),
            *b.stride(),
            scale_a.stride(0) if by_row else 0,
            scale_b.stride(1) if by_row else 0,
        )
    return c


def _check(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, scaling: str, out_dtype: str
) -> None:
    for name, tensor, wanted in (
        ("a", a, torch.float8_e4m3fn),
        ("b", b, torch.float8_e4m3fn),
        ("scale_a", scale_a, torch.float32),
        ("scale_b", scale_b, torch.float32),
    ):
        if tensor.dtype != wanted:
            raise TypeError(f"matmul_fp8: {name} is {tensor.dtype}, it should be {wanted}")
        if tensor.device != a.device:
            raise ValueError(f"matmul_fp8: {name} is on {tensor.device}, it should be on {a.device} as a is")
    if scaling not in SCALINGS or out_dtype not in OUTPUTS:
        raise ValueError(
            f"matmul_fp8: scaling is {scaling!r} and out_dtype {out_dtype!r}, they should be one of "
            f"{', '.join(SCALINGS)} and one of {', '.join(OUTPUTS)}"
        )
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0] or 0 in b.shape:
        raise ValueError(
            f"matmul_fp8: a {list(a.shape)} and b {list(b.shape)} should be [m, k] and [k, n], k and n at least 1"
        )
    rows, cols = (a.shape[0], b.shape[1]) if scaling == "rowwise" else (1, 1)
    if scale_a.shape != (rows, 1) or scale_b.shape != (1, cols):
        raise ValueError(
            f"matmul_fp8: scale_a {list(scale_a.shape)} and scale_b {list(scale_b.shape)} should be [{rows}, 1] and "
            f"[1, {cols}] under scaling {scaling!r}"
        )
