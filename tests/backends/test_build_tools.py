"""What is missing for building is said, and never taken for a kernel that builds."""

import pytest

from opcheck.backends import builds
from opcheck.backends.builds.resources import registers_and_spills

triton = pytest.importorskip("triton")

AMDGCN = """
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 136
    .sgpr_count:     78
    .vgpr_count:     282
    .vgpr_spill_count: 33
"""


@pytest.mark.parametrize(("version", "said"), [
    ("3.6.0", ""), ("3.10.1", ""), ("3.5.1", "Triton 3.5.1 is older than 3.6"), ("main", "Triton main is older"),
])  # fmt: skip
def test_an_old_triton_is_an_obstacle(monkeypatch, version, said):
    monkeypatch.setattr(triton, "__version__", version)
    monkeypatch.setattr(triton.knobs.runtime, "interpret", False)
    assert builds.obstacle().startswith(said)
    assert bool(builds.obstacle()) == bool(said)


def test_an_interpreting_process_builds_nothing(monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "interpret", True)
    assert builds.obstacle() == "kernels are interpreted in this process"


def test_a_missing_assembler_takes_its_targets_out(monkeypatch):
    from triton.backends.nvidia import compiler

    def missing(arch):
        raise RuntimeError("Cannot find ptxas")

    assert builds.unavailable("sm_90") == ""
    monkeypatch.setattr(compiler, "get_ptxas", missing)
    assert builds.unavailable("sm_90") == "ptxas is not to be had: Cannot find ptxas"
    assert builds.unavailable("gfx942") == ""


def test_a_missing_backend_takes_its_targets_out(monkeypatch):
    from triton.backends import backends

    monkeypatch.delitem(backends, "amd")
    assert builds.unavailable("gfx942") == "this Triton has no backend for hip"


def test_amd_tells_registers_and_local_memory_in_its_assembly():
    assert registers_and_spills({"amdgcn": AMDGCN}) == (282, 34)


@pytest.mark.parametrize("assembly", [{}, {"amdgcn": "nothing"}, {"cubin": b"no cubin"}])
def test_what_nobody_tells_is_unknown(assembly):
    assert registers_and_spills(assembly) == (-1, -1)
