"""What a kernel must not leave changed for the next one in the same process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def kept() -> Iterator[None]:
    """Put back the working directory and torch's default dtype.

    Else a target that changes them changes what the next op's golden and reference compute.
    """
    directory, dtype = os.open(".", os.O_RDONLY), torch.get_default_dtype()
    try:
        yield
    finally:
        os.fchdir(directory)
        os.close(directory)
        torch.set_default_dtype(dtype)
