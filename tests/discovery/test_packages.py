"""Real packages, where they are installed: what they have is listed, and a draft of each runs once it is filled in."""

import importlib.util
import json
import re

import pytest

from opcheck.discovery import discover
from opcheck.discovery.draft import TABLE, draft
from opcheck.session import workers_environment
from tests.command_line import opcheck

pytestmark = pytest.mark.slow

SWIGLU = """def reference(a, b, gate_multiplier=1.0, down_multiplier=1.0):
    wide = a if a.dtype == torch.float64 else a.float()
    return torch.nn.functional.silu(wide).to(a.dtype) * b
"""
TOPK = """def reference(logits, K):
    values, indices = logits.topk(K, -1)
    return torch.softmax(values, -1), indices.to(torch.int32)
"""
DEQUANTIZED = """def reference(A, absmax, code, blocksize, dtype):
    return (code[A.long()].reshape(-1, blocksize) * absmax[:, None]).reshape(A.shape)
"""
DEQUANTIZED_SAMPLES = """def samples(case: Case) -> Sample:
    return Sample(
        case.integers(0, 256, "blocks", "size", name="A").to(torch.uint8).reshape(-1),
        case.tensor("blocks", name="absmax"),
        case.tensor("levels", name="code"),
        case.dims["size"],
        torch.float32,
    )
"""
PERMUTED = """def reference(grad_output, permuted_indices, original_rows, original_cols):
    found = torch.zeros(original_rows, original_cols, dtype=grad_output.dtype)
    return found.index_copy(0, permuted_indices.long(), grad_output)
"""
PERMUTED_SAMPLES = """def samples(case: Case) -> Sample:
    order = torch.randperm(case.dims["rows"], generator=case.generator)
    return Sample(case.tensor("rows", "cols", name="grad_output"), order, case.dims["rows"], case.dims["cols"])
"""
ROWS = 'dims = ["rows", "cols"]\nreduces = ["cols"]'

PAIR = 'dims = ["rows", "cols"]'

# Package; least counts of operators, autograd functions and kernels; a thing to draft; reference, samples, table.
PACKAGES = {
    "liger_kernel": ((0, 100, 150), "liger_kernel.ops.swiglu.LigerSiLUMulFunction", SWIGLU, "", PAIR),
    "moe_ops": (
        (8, 5, 9), "tg::fused_topk_softmax_fwd", TOPK, "",
        ROWS + '\nno_grad = { logits = "its backward is an operator of its own" }\nsmallest = { cols = 2 }',
    ),
    "bitsandbytes": (
        (19, 3, 7), "bitsandbytes::dequantize_blockwise", DEQUANTIZED, DEQUANTIZED_SAMPLES,
        'dims = ["blocks", "size", "levels"]\nsizes = { size = [64], levels = [256] }\n'
        'no_grad = { absmax = "it has no backward", code = "it has no backward" }',
    ),
    "torchao": (
        (40, 40, 60), "torchao::_triton_permute_bwd", PERMUTED, PERMUTED_SAMPLES,
        'dims = ["rows", "cols"]\nno_grad = { grad_output = "it is a backward" }',
    ),
}  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_it_is_listed_and_a_draft_runs(package, tmp_path, monkeypatch):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    least, name, reference, samples, table = PACKAGES[package]
    found = discover(package, environment=workers_environment("cpu"))
    autograd = [item for item in found.callables if item.kind == "autograd"]
    assert all(
        have >= want for have, want in zip(map(len, (found.operators, autograd, found.kernels)), least, strict=True)
    )

    code, _, toml = draft(found, name).partition(TABLE)
    code = re.sub(r"def reference\(.*?\n\n", lambda _: reference + "\n", code, flags=re.DOTALL)
    if samples:
        code = re.sub(r"def samples\(.*?\n\n", lambda _: samples + "\n", code, flags=re.DOTALL)
    toml = re.sub(r"dims = .*", lambda _: table, toml)
    toml = re.sub(r"dtypes = .*", 'dtypes = ["float32"]', toml)
    (tmp_path / "drafted.py").write_text(code)
    (tmp_path / "registry.toml").write_text(f'schema = 1\n[registry]\nmodules = ["drafted"]\n{toml}')
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "report.json"
    few = ("--level", "quick", "--check", "structure", "--check", "numerics", "-k", "normal;;;;0", "--budget", "0")
    opcheck("audit", "--all", *few, "--backend", "cpu", f"--format=json={file}")
    (op,) = json.loads(file.read_text())["ops"]
    ordinary = op["cases"][0]
    assert {item["check"]: item for item in ordinary["findings"]}["numerics"]["verdict"] == "PASS", ordinary
