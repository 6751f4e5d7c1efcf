"""What every host function needs for a launch: legal dtypes, a view as rows, a program for each, strips of rows."""

from typing import Any

import torch
import triton

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def check_inputs(op: str, **tensors: torch.Tensor) -> None:
    """Raise TypeError for a dtype that the kernels would narrow, ValueError where tensors live on several devices."""
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{op}: {name} is {tensor.dtype}, it should be float32, float16 or bfloat16")
    devices = {tensor.device for tensor in tensors.values()}
    if len(devices) > 1:
        raise ValueError(
            f"{op}: {', '.join(tensors)} should live on one device, they are on {sorted(map(str, devices))}"
        )


def check_last_dimension(op: str, x: torch.Tensor, **parameters: torch.Tensor) -> None:
    """Raise ValueError unless x is `[..., cols]` with cols >= 1 and every parameter is `[cols]`."""
    if x.dim() == 0 or x.shape[-1] == 0:
        raise ValueError(f"{op}: x is {list(x.shape)}, it should have a last dimension of at least 1")
    for name, parameter in parameters.items():
        if parameter.shape != x.shape[-1:]:
            raise ValueError(f"{op}: {name} is {list(parameter.shape)}, it should be {list(x.shape[-1:])} as x's last")


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """View `[..., cols]` as `[rows, cols]` with adjacent columns; copy only where no such view exists.

    The row stride stays free: a slice of columns and an expanded (stride 0) batch are read in place.
    """
    rows = x.reshape(x.numel() // x.shape[-1], x.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()


def over_rows(
    kernel: Any,
    x: torch.Tensor,
    out: torch.Tensor,
    *values: float,
    grad: torch.Tensor | None = None,
    most: int,
    **options: bool,
) -> torch.Tensor:
    """Launch a program for each row of x `[..., cols]`, and return out; nothing where x is empty.

    The kernel takes the rows of grad, where it is given, and of x, then out, the strides of those rows, cols, values.
    `grad` is `[..., cols]`, or `[...]` with one number a row.

    Args:
        most: The largest block of columns.
        options: For the launch.
    """
    if x.numel() == 0:
        return out
    rows = [as_rows(x)]
    if grad is not None:
        rows.insert(0, as_rows(grad) if grad.dim() == x.dim() else grad.reshape(-1))
    count, cols = rows[-1].shape
    strides = (item.stride(0) for item in rows)
    block = min(triton.next_power_of_2(cols), most)
    with torch.cuda.device_of(x):
        kernel[(count,)](*rows, out, *strides, cols, *values, BLOCK=block, **options)
    return out


def strips(rows: int, block_rows: int, limit: int = 128) -> tuple[int, int]:
    """Cut rows into at most `limit` strips of whole blocks; return (strips, rows per strip).

    The cut depends on the shape only, so that a sum over strips has the same order on every device.
    """
    blocks = triton.cdiv(rows, block_rows)
    rows_per_strip = triton.cdiv(blocks, limit) * block_rows
    return triton.cdiv(rows, rows_per_strip), rows_per_strip
