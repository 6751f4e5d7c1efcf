"""Run on a GPU where there is one, else on Triton's interpreter, repaired; and say what was seen.

Each script here shows one mistake of one package, as it is installed, and exits with 1 while it is there. The package
itself is not touched: without a GPU only Triton's interpreter is mended, which otherwise cannot run most kernels.
"""

import os
import sys
from pathlib import Path
from typing import NoReturn

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from opcheck.backends import interpreter

    interpreter.install()

torch.manual_seed(0)


def report(there: bool, seen: str) -> NoReturn:
    """Print what was seen, and exit with 1 while the mistake is there."""
    print(f"{'still there' if there else 'gone'}: {seen}")
    sys.exit(1 if there else 0)
