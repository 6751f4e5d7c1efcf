"""Write tensors as safetensors, a format that a dozen lines read: no library is needed on either side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

#: The format's names of the element types, https://github.com/huggingface/safetensors ("Format").
NAMES: Mapping[torch.dtype, str] = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
_ALIGNMENT = 8  # bytes: where the header ends


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write contiguous tensors `[*S]` under their names.

    Raises:
        KeyError: The format has no name for an element type.
        OSError: The file cannot be written.
    """
    header, parts, end = {}, [], 0
    for name, tensor in tensors.items():
        data = tensor.detach().cpu().contiguous().reshape(-1)
        raw = data.view(torch.uint8).numpy().tobytes() if data.numel() else b""
        offsets = [end, end := end + len(raw)]
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        parts.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
