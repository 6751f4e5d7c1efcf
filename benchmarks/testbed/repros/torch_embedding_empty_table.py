"""torch 2.11.0: on a GPU an index into a table without rows ends in an illegal memory access, and is not refused."""

import torch
from _setup import DEVICE, report

try:
    torch.nn.functional.embedding(torch.zeros(129, dtype=torch.int64, device=DEVICE), torch.zeros(0, 5, device=DEVICE))
    torch.cuda.synchronize() if DEVICE == "cuda" else None
    seen = "nothing was raised"
except (IndexError, RuntimeError) as error:
    seen = f"{type(error).__name__}: {str(error).splitlines()[0]}"
report("IndexError" not in seen, seen)
