"""Measure how the laws treat right kernels and planted faults; `benchmarks/calibrate.py` is the command."""
