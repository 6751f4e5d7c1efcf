"""Kernels in Triton and CUDA C++ that are wrong in one way each, and their right twins: what only a GPU shows."""
