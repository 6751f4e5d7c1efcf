"""Arguments, loops, autotuning, fake tensors and the self-test under the repaired interpreter."""

import json
from base64 import b64decode, b64encode

import pytest
import torch
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensorMode

from opcheck.backends.interpreter import Probe, autotune, install, probes, repair, trusted
from opcheck.backends.interpreter import selftest as probing
from opcheck.backends.interpreter.probe_specs import SPECS

assert install().active


@triton.jit
def scaled(x, o, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i).to(tl.float32) * factor.to(tl.float32))


@triton.jit
def counting(o, n, start, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(start, n, 2):
        acc += i.to(tl.float32)
        for j in tl.range(i):
            acc += j.to(tl.float32) * 1000
    for k in tl.static_range(BLOCK):
        acc += tl.full((BLOCK,), k + 1, tl.float32)
    tl.store(o + tl.arange(0, BLOCK), acc)


@triton.jit
def wide_loop(o, n):
    for i in range(n - 1, n):
        tl.store(o, i * 4)


@triton.jit
def pure_python_loop(o):
    total = 0
    for i in range(5):
        if i == 3:
            total += 10
        total += i
    tl.store(o, total)


@triton.jit
def helper(x):
    return x / UNKNOWN  # noqa: F821 (the error is the point)


@triton.jit
def calls_a_helper(o):
    tl.store(o, helper(1.0))


calls = []


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 8}, pre_hook=lambda args: calls.append(args["BLOCK"])),
        triton.Config({"BLOCK": 16}),
        triton.Config({"BLOCK": 32}),
        triton.Config({"BLOCK": 64}),
    ],
    key=["n"],
    reset_to_zero=["o"],
    prune_configs_by={"early_config_prune": lambda configs, args, **_: configs[:3]},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x, o, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i) if EVEN else tl.load(x + i, mask=i < n)
    tl.store(o + i, v + BLOCK, mask=i < n)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda *_, **__: triton.runtime.driver.active.get_current_target()},
)
@triton.jit
def asks_for_a_driver(o, n, BLOCK: tl.constexpr):
    tl.store(o, BLOCK)


def test_a_float_argument_is_fp32():
    x, o = torch.ones(4), torch.zeros(4)
    scaled[(1,)](x, o, 0.1, BLOCK=4)
    assert o[0].item() == torch.tensor(0.1).item()


def test_loop_variables_are_tensors_and_still_count():
    o = torch.zeros(4)
    counting[(1,)](o, 7, 1, BLOCK=4)
    # i in 1, 3, 5: 9; j below each: 0 + 3 + 10 thousands; k + 1 for k below 4: 10
    assert o.tolist() == [13019.0] * 4


def test_loop_variables_are_64_bits_wide_where_the_bound_is():
    o = torch.zeros(1, dtype=torch.int64)
    wide_loop[(1,)](o, 2**40)
    assert o.item() == (2**40 - 1) * 4
    wide_loop[(1,)](o, 2**30)
    assert o.item() == (2**30 - 1) * 4 - 2**32  # int32 wraps, as on the GPU


def test_branches_on_loop_variables():
    o = torch.zeros(1, dtype=torch.int32)
    pure_python_loop[(1,)](o)
    assert o.item() == 20


def test_an_error_in_a_device_function_keeps_its_traceback_when_asked(monkeypatch):
    with pytest.raises(triton.runtime.errors.InterpreterError, match="UNKNOWN"):
        calls_a_helper[(1,)](torch.zeros(1))
    monkeypatch.setattr(triton.knobs.compilation, "front_end_debugging", True)
    with pytest.raises(NameError, match="UNKNOWN"):
        calls_a_helper[(1,)](torch.zeros(1))


def run_tuned(n=40):
    x, o = torch.zeros(64), torch.full((64,), -1.0)
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, o, n)
    assert (o[n:] == -1).all()
    return set(o[:n].tolist())


def test_autotune_runs_the_selected_configuration():
    calls.clear()
    assert run_tuned() == {8.0}
    assert calls == [8]
    seen = []
    name = f"{__name__}.tuned"
    for index in range(autotune.seen_tuners()[name] + 1):
        with autotune.select_config(index):
            seen += run_tuned()
    assert seen == [8.0, 16.0, 32.0, 8.0]
    assert autotune.seen_tuners()[name] == 3
    assert run_tuned() == {8.0}


def test_a_pruning_function_that_needs_a_driver_prunes_nothing():
    o = torch.zeros(1)
    with autotune.select_config(1):
        asks_for_a_driver[(1,)](o, 4)
    assert o.item() == 16.0


def test_a_pruning_function_with_an_error_of_its_own_is_heard():
    broken = triton.autotune(
        configs=[triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})],
        key=["n"],
        prune_configs_by={"early_config_prune": lambda *_, **__: 1 / 0},
    )(asks_for_a_driver.fn)
    with pytest.raises(ZeroDivisionError):
        broken[(1,)](torch.zeros(1), 4)


def test_launches_without_memory_do_nothing():
    with FakeTensorMode():
        x = torch.empty(4)
        scaled[(1,)](x, torch.empty(4), 1.0, BLOCK=4)
    scaled[(1,)](torch.empty(4, device="meta"), torch.empty(4, device="meta"), 1.0, BLOCK=4)
    functional = torch._to_functional_tensor(torch.ones(4))
    o = torch.zeros(4)
    scaled[(1,)](functional, o, 1.0, BLOCK=4)
    assert o.tolist() == [0.0] * 4
    scaled[(1,)](torch.ones(4), o, 1.0, BLOCK=4)
    assert o.tolist() == [1.0] * 4


def test_torch_opcheck_passes_for_a_triton_op():
    @torch.library.triton_op("opcheck_test::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        o = torch.empty_like(x)
        torch.library.wrap_triton(scaled)[(1,)](x, o, 2.0, BLOCK=4)
        return o

    from torch.export._trace import _disable_custom_triton_op_functional_decomposition as keep_whole

    with keep_whole():
        result = torch.library.opcheck(doubled, (torch.ones(4),))
    assert set(result.values()) == {"SUCCESS"}
    assert doubled(torch.ones(4)).tolist() == [2.0] * 4


def test_install_is_idempotent():
    before = triton.runtime.interpreter.InterpreterBuilder.create_dot
    assert install() == install()
    assert triton.runtime.interpreter.InterpreterBuilder.create_dot is before


def test_every_probe_passes():
    assert len(probes()) == len(SPECS)
    assert [probe for probe in probes() if not probe.passed] == []
    for dtype in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "float64", "bool"):
        assert trusted(dtype) == ""
    assert "float8_e4m3fnuz" in trusted("float8_e4m3fnuz")


@pytest.mark.parametrize("name", SPECS)
def test_every_probe_notices_a_wrong_answer(name):
    spec, table = SPECS[name], probing._tables()["probes"][name]
    right = bytearray(b64decode(table["output"]))
    assert probing.judge(spec, table, bytes(right))[0]
    zeros = bytes(len(right))
    assert not probing.judge(spec, table, zeros)[0]


@pytest.mark.parametrize("name", ["bfloat16.sum", "float16.sum", "float16.cumsum"])
def test_a_reduction_in_float32_is_noticed(name):
    spec, table = SPECS[name], probing._tables()["probes"][name]
    inputs = probing.decode(b64decode(table["inputs"][0]), spec.inputs[0]).astype("float64")
    exact = spec.bound([inputs]).exact
    output = exact.astype("float32").astype(probing.decode(b"\0\0", spec.output).dtype)
    passed, detail = probing.judge(spec, table, output.tobytes())
    assert not passed
    assert "0% differ" in detail


def test_a_failed_probe_withdraws_its_dtype_alone(monkeypatch):
    failed = (Probe(name="bfloat16.add", dtype="bfloat16", passed=False, detail="3 of 4 elements differ"),)
    monkeypatch.setattr(probing, "probes", lambda: failed)
    assert "bfloat16.add: 3 of 4 elements differ" in trusted.__wrapped__("bfloat16")
    assert trusted.__wrapped__("float16") == ""


def test_missing_tables_refuse_the_narrow_types(monkeypatch):
    monkeypatch.setattr(probing, "_tables", lambda: {"source": "missing", "probes": {}})
    fresh = probing.probes.__wrapped__()
    assert not any(probe.passed for probe in fresh)


@pytest.mark.parametrize(
    ("version", "reason"), [("3.8.1", "older than 3.9"), ("2.1.0", "older than 3.9"), ("nonsense", "older than 3.9")]
)
def test_an_old_version_is_left_alone(monkeypatch, version, reason):
    monkeypatch.setattr(triton, "__version__", version)
    answer = repair._install()
    assert not answer.active
    assert answer.triton == version
    assert reason in answer.reason


def test_changed_internals_are_left_alone(monkeypatch):
    monkeypatch.setattr(triton, "__version__", "3.10.0")
    assert repair._obstacle("3.10.0", triton) == ""
    monkeypatch.delattr(triton.runtime.interpreter, "_patch_lang_core")
    answer = repair._install()
    assert not answer.active
    assert "_patch_lang_core" in answer.reason
    monkeypatch.setattr(repair, "install", lambda: answer)
    assert "_patch_lang_core" in trusted.__wrapped__("bfloat16")
    assert "_patch_lang_core" in trusted.__wrapped__("float8_e5m2")
    assert trusted.__wrapped__("float32") == trusted.__wrapped__("float16") == trusted.__wrapped__("int64") == ""


def test_surprises_during_the_installation_are_told_not_raised(monkeypatch):
    def explode():
        raise RuntimeError("boom")

    monkeypatch.setattr(repair, "_replacements", explode)
    answer = repair._install()
    assert not answer.active
    assert "boom" in answer.reason


def test_tables_are_small_and_say_where_they_come_from():
    text = (probing.resources.files(probing.__package__) / "tables" / "probes.json").read_text()
    assert len(text) < 200_000
    tables = json.loads(text)
    assert tables["source"]
    assert set(tables["probes"]) == set(SPECS)
    assert all(b64encode(b64decode(value)).decode() == value for value in tables["inputs"])


@triton.jit
def numbered(o):
    tl.store(o, tl.program_id(1))


@pytest.mark.parametrize("grid", [(1, 65_536), (1, 1, 65_536), (2**31,)])
def test_a_grid_that_no_gpu_takes_is_refused(grid):
    with pytest.raises(RuntimeError, match="on a GPU it ends at"):
        numbered[grid](torch.zeros(1, dtype=torch.int32))


def test_the_longest_second_axis_is_launched():
    out = torch.zeros(1, dtype=torch.int32)
    numbered[(1, 65_535)](out)
    assert out.item() == 65_534
