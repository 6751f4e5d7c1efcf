"""Triton's CPU interpreter, made numerically faithful to an NVIDIA H200 from outside.

Plain, it truncates on the way to bf16, adds bf16 bit patterns as integers, ignores tf32 and knows no libdevice.
`install` puts that right; `probes` runs small kernels and compares them with what a GPU answered; `trusted` says
whether a dtype's verdicts may be given at all.
"""

from __future__ import annotations

from opcheck.backends.interpreter.repair import Repair, install
from opcheck.backends.interpreter.selftest import Probe, probes, tables_source, trusted

__all__ = ["Probe", "Repair", "install", "probes", "tables_source", "trusted"]
