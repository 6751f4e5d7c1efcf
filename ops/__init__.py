"""The kernels of this repository, one package per op: `kernel.py`, `reference.py`, and the registration."""
