"""Rows of a table by index: read them, and add to them. What moves rows about shares these kernels."""

import torch
import triton
import triton.language as tl

MAX_BLOCK = 512
BLOCK_INDICES = 8
NO_ROW = -1


@triton.jit
def _gather_kernel(
    table_ptr,
    indices_ptr,
    out_ptr,
    table_stride_row,
    table_stride_dim,
    count,
    rows,
    dim,
    missing,
    BLOCK: tl.constexpr,
    BLOCK_INDICES: tl.constexpr,
):
    number = (tl.program_id(0).to(tl.int64) * BLOCK_INDICES + tl.arange(0, BLOCK_INDICES))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    index = tl.load(indices_ptr + number, mask=number < count, other=-1).to(tl.int64)
    legal = (index >= 0) & (index < rows)
    # An index that is no row reads nothing.
    row = tl.load(table_ptr + index * table_stride_row + at * table_stride_dim, mask=(at < dim) & legal, other=missing)
    tl.store(out_ptr + number * dim + at, row, mask=(at < dim) & (number < count))


@triton.jit
def _add_kernel(
    rows_ptr,
    indices_ptr,
    table_ptr,
    rows_stride_row,
    rows_stride_dim,
    count,
    rows,
    dim,
    skipped,
    BLOCK: tl.constexpr,
    BLOCK_INDICES: tl.constexpr,
):
    number = (tl.program_id(0).to(tl.int64) * BLOCK_INDICES + tl.arange(0, BLOCK_INDICES))[:, None]
    at = (tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    index = tl.load(indices_ptr + number, mask=number < count, other=-1).to(tl.int64)
    counted = (index >= 0) & (index < rows) & (index != skipped)
    mask = (at < dim) & counted
    row = tl.load(rows_ptr + number * rows_stride_row + at * rows_stride_dim, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(table_ptr + index * dim + at, row, mask=mask, sem="relaxed")


def gather(table: torch.Tensor, indices: torch.Tensor, *, missing: float) -> torch.Tensor:
    """Return the rows of table `[rows, dim]` at indices `[*S]`: `[*S, dim]`; `missing` fills those that are no rows."""
    rows, dim = table.shape
    out = table.new_empty(*indices.shape, dim)
    if out.numel():
        grid, block = _cut(indices.numel(), dim)
        with torch.cuda.device_of(table):
            _gather_kernel[grid](
                table,
                indices.contiguous(),
                out,
                *table.stride(),
                indices.numel(),
                rows,
                dim,
                missing,
                BLOCK=block,
                BLOCK_INDICES=BLOCK_INDICES,
            )
    return out


def add(table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor, *, skipped: int = NO_ROW) -> None:
    """Add rows `[*S, dim]` to a contiguous float32 table `[rows, dim]` at indices `[*S]`, by atomics.

    The order of the additions varies from run to run. What is no row of the table, or is `skipped`, gets nothing.
    """
    dim = table.shape[1]
    if rows.numel():
        flat = rows.reshape(-1, dim)
        grid, block = _cut(indices.numel(), dim)
        with torch.cuda.device_of(table):
            _add_kernel[grid](
                flat,
                indices.contiguous(),
                table,
                *flat.stride(),
                indices.numel(),
                table.shape[0],
                dim,
                skipped,
                BLOCK=block,
                BLOCK_INDICES=BLOCK_INDICES,
            )


def check_indices(op: str, name: str, indices: torch.Tensor, device: torch.device) -> None:
    """Raise TypeError unless indices are int64 or int32, ValueError where they are on another device."""
    if indices.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{op}: {name} is {indices.dtype}, it should be int64 or int32")
    if indices.device != device:
        raise ValueError(f"{op}: {name} is on {indices.device}, it should be on {device} as the rows are")


def _cut(count: int, dim: int) -> tuple[tuple[int, int], int]:
    """Return the grid over `count` indices and `dim` columns, and the number of columns of a program."""
    block = min(triton.next_power_of_2(dim), MAX_BLOCK)
    return (triton.cdiv(count, BLOCK_INDICES), triton.cdiv(dim, block)), block
