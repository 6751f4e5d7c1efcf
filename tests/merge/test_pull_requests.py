"""Pull requests, each with the decision that it must get and the words that say why."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from tests.merge.scene import KERNEL, NOW, RESTS_ON, SCALE, UNTIL, copied, git, template

OLD = (NOW - datetime.timedelta(days=20)).isoformat()
LATER = UNTIL + datetime.timedelta(days=30)
PASSED = (NOW - datetime.timedelta(days=2)).date()
H200 = {"backend": "cuda", "capability": "sm_90", "device": "NVIDIA H200"}
A100 = {"backend": "cuda", "capability": "sm_80", "device": "NVIDIA A100"}

REQUESTS = {}


def request(status, *sentences, flags=()):
    """Note a pull request: what it does, the exit status, and what the gate must say of it."""

    def noted(function):
        name = function.__name__.replace("_", " ")
        assert name not in REQUESTS
        REQUESTS[name] = function, status, sentences, flags
        return function

    return noted


def change(op, what, reason="agreed in the review"):
    return f'[[change]]\nop = "{op}"\nwhat = "{what}"\nreason = "{reason}"\n'


# Kernels


@request(0, "may merge (exit 0)")
def nothing_changed(repo):
    pass


@request(0, "mine::scale  cpu        PASS")
def kernel_fixed(repo):
    repo.edit("mine/scale/kernel.py", "return v * by", "return by * v")
    repo.audit()


@request(1, "CLOSED  verdict: mine::scale on cpu is FAIL: numerics fails")
def kernel_broken(repo):
    repo.edit("mine/scale/kernel.py", "tl.load(x + at, mask=at < n)", "tl.load(x + at, mask=at < n - 1)")
    repo.audit(scale="FAIL", problems=("numerics fails",))


@request(1, "CLOSED  verdict: mine::scale on cpu is FAIL")
def kernel_broken_as_a_partial_audit_shows(repo):
    later = (NOW + datetime.timedelta(minutes=1)).isoformat()
    lines = [repo.line(op, waivers=()) for op in ("mine::scale",)]
    repo.keep(*lines, repo.line("mine::total"), repo.line("mine::scale", verdict="FAIL", whole=False, finished=later))


@request(1, "evidence-stale: mine::scale: its evidence on cpu is stale: mine/scale/kernel.py has changed")
def kernel_changed_and_not_audited(repo):
    repo.edit("mine/scale/kernel.py", "return v * by", "return by * v")


@request(1, "mine::scale: its evidence on cpu is stale: mine/_helper.py has changed",
         "mine::total: its evidence on cpu is stale: mine/_helper.py has changed")  # fmt: skip
def one_helper_changed(repo):
    repo.edit("mine/_helper.py", "128", "256")


@request(1, "CLOSED  verdict: mine::scale on cpu is INCONCLUSIVE")
def inconclusive(repo):
    repo.audit(scale="INCONCLUSIVE")


@request(1, "note    head changes [gate]: this decision is by base's", "mine::scale on cpu is INCONCLUSIVE")
def gate_opened_by_the_request_itself(repo):
    repo.declare('"PASS WITH LIMITATIONS"]', '"PASS WITH LIMITATIONS", "INCONCLUSIVE"]')
    repo.audit(scale="INCONCLUSIVE")


@request(0, "mine::scale  cpu        INCONCLUSIVE")
def inconclusive_accepted_by_base(repo):
    repo.on_main()
    repo.declare('"PASS WITH LIMITATIONS"]', '"PASS WITH LIMITATIONS", "INCONCLUSIVE"]')
    repo.commit()
    repo.back()
    repo.audit(scale="INCONCLUSIVE")


@request(1, "kernel-unregistered: mine/scale/kernel.py:24: the kernel mine.scale.kernel.draft is launched by no")
def unregistered_kernel(repo):
    repo.write("mine/scale/kernel.py", f"{KERNEL}\n@triton.jit\ndef draft(x):\n    tl.store(x, 0.0)\n")
    repo.audit()


@request(1, "mine/other.py:4: the kernel mine.other.double is launched by no registered op")
def unregistered_kernel_in_a_new_file(repo):
    repo.write(
        "mine/other.py", "from triton import jit\n\n@jit\ndef double(x):\n    pass\n\nclass Op:\n    run = double\n"
    )
    repo.audit()


@request(0, "may merge")
def unregistered_kernel_left_out_by_its_author(repo):
    draft = "@triton.jit\ndef draft(x):  # opcheck: no cover\n    tl.store(x, 0.0)\n"
    repo.write("mine/scale/kernel.py", f"{KERNEL}\n{draft}")
    repo.audit()


@request(1, "module-broken: mine/other.py is not Python: invalid syntax (other.py, line 1)")
def file_that_is_not_python(repo):
    repo.write("mine/other.py", "def f(:\n")
    repo.audit()


# Limits


@request(1, 'limit-loosened: op."mine::scale".numerics.float32.fudge_factor is 8, 6 in base for float32: looser')
def tolerance_loosened_silently(repo):
    repo.declare("fudge_factor = 6.0", "fudge_factor = 8.0")
    repo.audit()


@request(0, "changed op.", "fudge_factor is 8, 6 in base for float32", ": exp2 on sm_90, issue 12")
def tolerance_loosened_with_a_reason(repo):
    repo.declare("fudge_factor = 6.0", "fudge_factor = 8.0")
    repo.declare("a fast reciprocal", "exp2 on sm_90, issue 12")
    repo.audit()


@request(0, "may merge")
def tolerance_tightened(repo):
    repo.declare("fudge_factor = 6.0", "fudge_factor = 5.0")
    repo.audit()


@request(1, 'op."mine::scale".numerics.fudge_factor is 6, 2 in base for bfloat16: looser')
def tolerance_widened_to_other_types_under_an_old_reason(repo):
    repo.declare(".numerics.float32]\nfudge_factor = 6.0", ".numerics]\nfudge_factor = 6.0")
    repo.audit()


@request(1, 'op."mine::scale".ulp.max_ulp is 2, 1.5 in base', 'what = "ulp"', flags=("--explain",))
def stricter_limit_of_an_op_deleted(repo):
    repo.declare('[op."mine::scale".ulp]\nmax_ulp = 1.5\n', "")
    repo.audit()


@request(0, ": agreed in the review")
def stricter_limit_of_an_op_deleted_with_a_reason(repo):
    repo.declare('[op."mine::scale".ulp]\nmax_ulp = 1.5\n', "")
    repo.add(change("mine::scale", "ulp"))
    repo.audit()


@request(1, "defaults.numerics.fudge_factor is 3, 2 in base", "(2 ops): looser, without a new reason")
def default_limit_loosened(repo):
    repo.declare("fudge_factor = 2.0", "fudge_factor = 3.0")
    repo.audit()


@request(0, "defaults.numerics.fudge_factor is 3, 2 in base", ": benchmarks/calibrate.py of May")
def default_limit_loosened_with_a_reason(repo):
    repo.declare("fudge_factor = 2.0", 'fudge_factor = 3.0\nreason = "benchmarks/calibrate.py of May"')
    repo.audit()


@request(1, "defaults.numerics.max_reference_relative_error is 0.05, 0.1 in base")
def a_number_without_a_looser_side_moved(repo):
    repo.declare("fudge_factor = 2.0", "fudge_factor = 2.0\nmax_reference_relative_error = 0.05")
    repo.audit()


@request(0, "may merge")
def builds_added(repo):
    repo.add('[defaults.compile]\ntargets = ["sm_90", "sm_80"]\n')
    repo.audit()


@request(1, "defaults.determinism.runs is 5, 10 in base")
def fewer_repeats(repo):
    repo.add("[defaults.determinism]\nruns = 5\n")
    repo.audit()


@request(1, "defaults.coverage.lines is 0.5, 0.9 in base")
def coverage_minimum_lowered(repo):
    repo.declare("lines = 0.9", "lines = 0.5")
    repo.audit()


@request(1, "defaults.compile.targets is none, sm_90 in base")
def builds_left_out(repo):
    repo.add("[defaults.compile]\ntargets = []\n")
    repo.audit()


@request(1, "numerics.existing.bfloat16 is atol 0.1, rtol 0, none in base", 'what = "numerics"',
         flags=("--explain",))  # fmt: skip
def tolerance_of_its_own_without_reason(repo):
    repo.declare(
        "[[waiver]]", '[op."mine::scale".numerics.existing]\nbfloat16 = { atol = 0.1, rtol = 0.0 }\n[[waiver]]'
    )
    repo.audit()


# Contracts


@request(1, "op-removed: mine::total: base declares it and head does not")
def op_deleted(repo):
    repo.undeclare("mine::total")
    repo.declare('op = "mine::total"', 'op = "mine::scale"')
    repo.delete("mine/total.py")
    repo.keep(repo.line("mine::scale", waivers=(f"waiver for bias of mine::scale, dtype float32 until {UNTIL}",)))


@request(0, "changed mine::total: base declares it and head does not: torch.sum is as fast")
def op_deleted_with_a_reason(repo):
    repo.undeclare("mine::total")
    repo.write("registry.toml", repo.registry.partition("[[waiver]]")[0])
    repo.add(change("mine::total", "op", "torch.sum is as fast"))
    repo.delete("mine/total.py")
    repo.keep(repo.line("mine::scale"))


@request(1, "op-removed: mine::total", "op-undeclared: mine::total is registered at mine/total.py:23 and not declared")
def op_no_longer_declared(repo):
    repo.undeclare("mine::total")
    repo.keep(repo.line("mine::scale"))


@request(1, "family-removed: mine::scale: dtypes lacks bfloat16, which base has")
def dtype_deleted(repo):
    repo.declare('dtypes = ["float32", "bfloat16"]', 'dtypes = ["float32"]')
    repo.audit()


@request(1, "mine::scale: dtypes lacks bfloat16, which base has")
def dtype_declared_unsupported(repo):
    repo.declare('dtypes = ["float32", "bfloat16"]', 'dtypes = ["float32"]')
    repo.declare("unsupported = [", 'unsupported = [{ dtype = "bfloat16", reason = "nobody uses it" }, ')
    repo.audit()


@request(0, "changed mine::scale: dtypes lacks bfloat16, which base has: agreed in the review")
def dtype_deleted_with_a_reason(repo):
    repo.declare('dtypes = ["float32", "bfloat16"]', 'dtypes = ["float32"]')
    repo.add(change("mine::*", "dtypes"))
    repo.audit()


@request(1, "mine::scale: dtypes lacks bfloat16")
def dtype_deleted_with_a_reason_that_base_has(repo):
    repo.on_main()
    repo.add(change("mine::scale", "dtypes"))
    repo.commit()
    repo.back()
    merge(repo)
    repo.declare('dtypes = ["float32", "bfloat16"]', 'dtypes = ["float32"]')
    repo.audit()


def merge(repo):
    git(repo.root, "merge", "-q", "main")


@request(1, "mine::scale: variants lacks { by = 0.5 }, which base has")
def variant_deleted(repo):
    repo.declare(", { by = 0.5 }", "")
    repo.audit()


@request(1, "mine::scale: production lacks { rows = 8192, cols = 128 }, which base has")
def production_shape_dropped(repo):
    repo.declare(", { rows = 8192, cols = 128 }", "")
    repo.audit()


@request(1, "mine::scale: tiles of cols lacks 1024, which base has", "mixed lacks { x = bfloat16, y = float32 }",
         "empty lacks rows")  # fmt: skip
def tile_mixture_and_empty_dimension_dropped(repo):
    repo.declare("[128, 1024]", "[128]")
    repo.declare('mixed = [{ x = "bfloat16", y = "float32" }]\n', "")
    repo.declare('empty = ["rows"]\n', "")
    repo.audit()


@request(1, "registry.modules lacks mine, which base has and which is still there: nobody looks at its kernels")
def module_left_out(repo):
    repo.declare('modules = ["mine"]', 'modules = ["mine.scale", "mine.total"]')
    repo.audit()


@request(1, "mine::scale: values lacks far_mean, which base has")
def values_dropped(repo):
    repo.on_main()
    repo.declare("unsupported", 'values = ["far_mean"]\nunsupported')
    repo.commit()
    repo.back()
    merge(repo)
    repo.declare('values = ["far_mean"]\n', "")
    repo.audit()


@request(1, "mine::total: dims lacks cols, which base has")
def dimension_renamed(repo):
    repo.declare('dims = ["cols"]', 'dims = ["n"]')
    repo.audit()


@request(1, "contract-narrowed: mine::scale: deterministic.backward is false, true in base")
def deterministic_no_more(repo):
    repo.declare("backward = true", "backward = false")
    repo.audit()


@request(1, "random is true, false in base; no longer tried: one_nan, one_inf, one_negative_inf")
def declared_random(repo):
    repo.declare("unsupported", "random = true\nunsupported")
    repo.audit()


@request(1, "kind is gather, elementwise in base: other laws hold; no longer tried: ", "halfway")
def kind_changed(repo):
    repo.declare('"elementwise"', '"gather"')
    repo.audit()


@request(1, "smallest.rows is 2, 1 in base", "largest.cols is 4096, 65536 in base", "multiple.cols is 16, 1 in base",
         "sizes.rows allows [2, 4], any size in base")  # fmt: skip
def ranges_narrowed(repo):
    repo.declare("cols = 65536 }", "cols = 4096 }\nsmallest = { rows = 2 }\nmultiple = { cols = 16 }")
    repo.declare("[{ rows = 4096, cols = 4096 }, { rows = 8192, cols = 128 }]", "[]")
    repo.declare("unsupported", "sizes = { rows = [2, 4] }\nunsupported")
    repo.audit()


@request(0, "may merge")
def ranges_widened(repo):
    repo.declare("largest = { cols = 65536 }", "largest = { cols = 131072 }\nsmallest = { rows = 1 }")
    repo.declare("[128, 1024]", "[128, 512, 1024]")
    repo.audit()


@request(0, "changed mine::scale: nonfinite is undefined, and propagates in base; no longer tried: one_nan",
         ": the mask is 0 times x", "contiguous.x is new: blocks are read whole")  # fmt: skip
def exemptions_with_their_reasons(repo):
    undefined = 'nonfinite = { undefined = "the mask is 0 times x" }\n'
    repo.declare("unsupported", f'contiguous = {{ x = "blocks are read whole" }}\n{undefined}unsupported')
    repo.audit()


# Evidence


@request(1, "evidence-missing: mine::fresh: there is no evidence on cpu")
def new_op_without_evidence(repo):
    add_fresh(repo)
    repo.audit()


@request(0, "mine::fresh  cpu        PASS")
def new_op_with_evidence(repo):
    add_fresh(repo)
    repo.keep(*map(repo.line, RESTS_ON))


@request(1, "op-undeclared: mine::fresh is registered at mine/fresh.py:9 and not declared in registry.toml")
def new_op_undeclared(repo):
    add_fresh(repo, declared=False)
    repo.audit()


def add_fresh(repo, *, declared=True):
    text = SCALE.replace("mine::scale", "mine::fresh")
    text = text.replace("from . import", "from .scale import").replace("from .reference", "from .scale.reference")
    repo.write("mine/fresh.py", text)
    if declared:
        repo.declare(
            "[[waiver]]",
            '[op."mine::fresh"]\nkind = "elementwise"\ndtypes = ["float32"]\ndims = ["rows", "cols"]\n[[waiver]]',
        )


@request(1, "mine::scale: there is no evidence on cuda:sm_90; there is of cuda:sm_80 (NVIDIA A100), cpu (x86_64 CPU)",
         "on a GPU of sm_90", flags=("--require", "cuda:sm_90", "--explain"))  # fmt: skip
def evidence_from_the_wrong_gpu(repo):
    repo.keep(*(repo.line(op, **A100) for op in list(RESTS_ON)[:2]), file="a100.jsonl")


@request(0, "mine::scale  cuda:sm_90", flags=("--require", "cuda:sm_90", "--require", "cuda"))
def evidence_from_the_right_gpu(repo):
    repo.keep(*(repo.line(op, **H200) for op in list(RESTS_ON)[:2]), file="h200.jsonl")


@request(1, "verdict: mine::scale on cuda:sm_90 is FAIL")
def fails_on_a_gpu_that_nobody_requires(repo):
    repo.keep(repo.line("mine::scale", verdict="FAIL", **H200), file="h200.jsonl")


@request(1, "evidence-old: mine::scale: its evidence on cpu is 20 days old; it may be 14 days old",
         flags=("--max-age", "14d"))  # fmt: skip
def evidence_too_old(repo):
    repo.audit(finished=OLD)


@request(0, "may merge", flags=("--max-age", "52w"))
def evidence_not_too_old(repo):
    repo.audit(finished=OLD)


@request(1, "is 40 days old; it may be 30 days old", flags=("--max-age", "52w"))
def age_that_base_allows_cannot_be_raised(repo):
    repo.declare('max_age = "30d"', 'max_age = "52w"')
    repo.audit(finished=(NOW - datetime.timedelta(days=40)).isoformat())


@request(1, "mine::scale: its evidence on cpu is dated in the future")
def evidence_of_tomorrow(repo):
    repo.audit(finished=(NOW + datetime.timedelta(days=3)).isoformat())


@request(1, "evidence-partial: mine::scale: its evidence on cpu is of a part of its cases or checks")
def evidence_partial(repo):
    repo.audit(whole=False)


@request(1, "mine::scale: its evidence on cpu is of level quick; the merge needs standard")
def evidence_of_too_low_a_level(repo):
    repo.keep(*(repo.line(op, level="quick") for op in list(RESTS_ON)[:2]))


@request(1, "is stale: its key is not that of its manifest: the line was edited")
def evidence_edited(repo):
    line = repo.line("mine::scale")
    moved = replace(line.manifest, files={**line.manifest.files, "mine/scale/kernel.py": "0" * 32})
    repo.keep(replace(line, manifest=moved), repo.line("mine::total"))


@request(1, "is stale: opcheck is ", "and was 0.0.1")
def evidence_of_another_opcheck(repo):
    line = repo.line("mine::scale")
    manifest = replace(line.manifest, distributions={**line.manifest.distributions, "opcheck": "0.0.1"})
    repo.keep(repo.line("mine::scale", manifest=manifest), repo.line("mine::total"))


@request(1, "no-cases: mine::scale on cpu: no case was audited")
def zero_cases_of_one_op(repo):
    repo.keep(repo.line("mine::scale", cases=0), repo.line("mine::total"))


@request(5, "nothing was audited")
def zero_cases(repo):
    repo.audit(cases=0)


@request(5, "evidence-missing: mine::scale: there is no evidence on cpu", "nothing was audited")
def no_evidence_at_all(repo):
    repo.delete(".opcheck/evidence/cpu-standard.jsonl")


@request(
    1, "its evidence on cpu lacks families of values that base's has: tail", flags=("--base-evidence", "base.jsonl")
)
def case_family_lost_without_a_word(repo):
    repo.keep(repo.line("mine::scale", families=("normal", "tail", "zeros")), file="../../base.jsonl")


@request(1, "mine::scale: its evidence on cpu is stale: registry.toml has changed for it")
def contract_changed_after_the_audit(repo):
    repo.declare("[128, 1024]", "[128, 512, 1024]")


# Oracles


@request(1, "oracle-changed: mine::scale: what it is held to changed, and so did its target: "
         "reference (mine/scale/reference.py:13)")  # fmt: skip
def reference_edited_to_match_a_wrong_target(repo):
    repo.edit("mine/scale/kernel.py", "return v * by", "return v * by + 1")
    repo.edit("mine/scale/reference.py", "x.float() * by", "x.float() * by + 1")
    repo.audit()


@request(1, "and its target did not: golden (mine/scale/reference.py:18)", "--accept-oracle mine::scale",
         flags=("--explain",))  # fmt: skip
def golden_weakened(repo):
    repo.edit("mine/scale/reference.py", "return clamped(x * by)", "return clamped(x.float() * by)")
    repo.audit()


@request(0, "changed mine::scale: what it is held to changed", ": accepted by --accept-oracle",
         flags=("--accept-oracle", "mine::scale"))  # fmt: skip
def golden_changed_and_accepted(repo):
    repo.edit("mine/scale/reference.py", "return clamped(x * by)", "return clamped(by * x)")
    repo.audit()


@request(0, ": the formula of the paper's second version")
def golden_changed_with_a_reason(repo):
    repo.edit("mine/scale/reference.py", "return clamped(x * by)", "return clamped(by * x)")
    repo.add(change("mine::scale", "oracle", "the formula of the paper's second version"))
    repo.audit()


@request(1, "and its target did not: golden (gone)")
def golden_taken_away(repo):
    repo.edit("mine/scale/__init__.py", "golden=golden, ", "")
    repo.audit()


@request(1, "and its target did not: samples (mine/scale/reference.py:22)")
def samples_made_easy(repo):
    repo.edit("mine/scale/reference.py", 'name="x"))', 'name="x") * 0)')
    repo.audit()


@request(1, "reference (mine/scale/reference.py:13), golden (mine/scale/reference.py:18)")
def constant_of_the_oracle_changed(repo):
    repo.edit("mine/scale/reference.py", "LARGEST = 6e4", "LARGEST = 6")
    repo.audit()


@request(1, "oracle-hidden: mine::scale: its registration cannot be read any more without running it")
def registration_hidden(repo):
    repo.edit("mine/scale/__init__.py", '"mine::scale"', '"mine::" + "scale"')
    repo.audit()


@request(0, "may merge")
def reference_reformatted(repo):
    repo.edit("mine/scale/reference.py", '    """Scale in float32."""\n', "    # In float32.\n")
    repo.edit(
        "mine/scale/reference.py", "def golden(x, by=2.0):", "def golden(\n    x: object,\n    by: float = 2.0,\n):"
    )
    repo.edit("mine/scale/reference.py", "LARGEST = 6e4", "LARGEST = 60000.0")
    repo.audit()


@request(0, "may merge")
def files_and_functions_renamed(repo):
    (repo.root / "mine/scale/reference.py").rename(repo.root / "mine/scale/oracle.py")
    repo.edit(
        "mine/scale/__init__.py",
        "from .reference import golden, reference, samples",
        "from .oracle import exact as golden, reference, samples",
    )
    repo.edit("mine/scale/oracle.py", "def golden", "def exact")
    text = (repo.root / "mine/scale/oracle.py").read_text(encoding="utf-8")
    repo.write("mine/scale/oracle.py", text.replace("clamped", "within"))
    repo.audit()


@request(
    1, "mine::scale: its evidence on cpu is stale: mine/scale/__init__.py has changed; mine/scale/reference.py is gone"
)
def file_renamed_and_not_audited(repo):
    (repo.root / "mine/scale/reference.py").rename(repo.root / "mine/scale/oracle.py")
    repo.edit("mine/scale/__init__.py", "from .reference import", "from .oracle import")


# Files of TOML


@request(0, "may merge")
def toml_reformatted_and_reordered(repo):
    head, total = repo.registry.split('[op."mine::total"]')
    table, waiver = total.split("[[waiver]]")
    table = table.replace('dtypes = ["float32"]\n', "").replace(
        "\n\n", '\ndtypes = [\n  "float32", # the only one\n]\n\n'
    )
    repo.write("registry.toml", f'[op."mine::total"]{table}[[waiver]]{waiver}'.replace("reason", "'reason'"))
    first, _, rest = head.partition("[registry]")
    text = (repo.root / "registry.toml").read_text(encoding="utf-8")
    repo.write("registry.toml", f"{first}[registry]{rest}{text}")


@request(0, "note    registry.toml was mine/registry.toml in main")
def registry_moved(repo):
    move_on_main(repo)


@request(1, "mine::scale: dtypes lacks bfloat16", "registry.toml was mine/registry.toml in main")
def registry_moved_to_hide_a_change(repo):
    move_on_main(repo)
    repo.declare('dtypes = ["float32", "bfloat16"]', 'dtypes = ["float32"]')
    repo.audit()


def move_on_main(repo):
    """Have main hold the registry elsewhere, and head where it is."""
    repo.on_main()
    (repo.root / "registry.toml").rename(repo.root / "mine/registry.toml")
    repo.commit()
    repo.back()
    git(repo.root, "reset", "-q", "--soft", "main")
    git(repo.root, "reset", "-q")


# Waivers


@request(1, "waiver-expired: waiver for bias of mine::total, dtype float32 until", "has expired")
def waiver_expired(repo):
    for branch in (repo.on_main, repo.back):
        branch()
        repo.declare(str(UNTIL), str(PASSED))
        repo.commit()
    repo.audit()


@request(1, "waiver-unused: waiver for bias of mine::total, dtype float32", "covers nothing", "to open it: delete it",
         flags=("--explain",))  # fmt: skip
def waiver_of_what_passes(repo):
    repo.audit(waivers=())


@request(1, "verdict: mine::total on cpu: its verdict rests on what is no waiver in force: waiver for bias")
def waiver_deleted_after_the_audit(repo):
    repo.write("registry.toml", repo.registry.partition("[[waiver]]")[0])


@request(0, "changed waiver for ulp of mine::scale until", "is new: rounds half away from zero, issue 7")
def waiver_new(repo):
    repo.add(waiver("mine::scale", "ulp", "rounds half away from zero, issue 7"))
    words = f"waiver for ulp of mine::scale until {UNTIL}"
    repo.keep(repo.line("mine::scale", verdict="PASS WITH LIMITATIONS", waivers=(words,)), repo.line("mine::total"))


@request(4, "registry.toml: waiver[1].reason is missing; it should be the reason, a string that is not blank")
def waiver_new_without_a_reason(repo):
    repo.add(waiver("mine::scale", "ulp", "").replace('reason = ""\n', ""))


@request(1, "waiver-grown: waiver for ulp of mine::scale until", "is new, with a reason that base gives already")
def waiver_new_with_a_copied_reason(repo):
    repo.add(waiver("mine::scale", "ulp", "sums in one order"))
    words = f"waiver for ulp of mine::scale until {UNTIL}"
    repo.keep(repo.line("mine::scale", waivers=(words,)), repo.line("mine::total"))


@request(1, "waiver-grown: waiver for bias of mine::total, dtype float32 until", "is later than base's, which ends on")
def waiver_prolonged(repo):
    prolong(repo)


@request(0, "is later than base's", ": the mend waits for triton 3.10")
def waiver_prolonged_with_a_reason(repo):
    repo.declare("sums in one order", "the mend waits for triton 3.10")
    prolong(repo)


@request(1, "waiver for bias of mine::total until", "is wider than base's")
def waiver_widened(repo):
    repo.declare('where = { dtype = "float32" }\n', "")
    words = f"waiver for bias of mine::total until {UNTIL}"
    repo.keep(repo.line("mine::scale"), repo.line("mine::total", waivers=(words,)))


@request(0, "may merge")
def waiver_narrowed_and_shortened(repo):
    sooner = UNTIL - datetime.timedelta(days=9)
    repo.declare(str(UNTIL), str(sooner))
    repo.declare('{ dtype = "float32" }', '{ dtype = "float32", values = "tail" }')
    words = f"waiver for bias of mine::total, dtype float32, values tail until {sooner}"
    repo.keep(repo.line("mine::scale"), repo.line("mine::total", waivers=(words,)))


def prolong(repo):
    repo.declare(str(UNTIL), str(LATER))
    words = f"waiver for bias of mine::total, dtype float32 until {LATER}"
    repo.keep(repo.line("mine::scale"), repo.line("mine::total", waivers=(words,)))


def waiver(op, check, reason):
    return f'[[waiver]]\nop = "{op}"\ncheck = "{check}"\nreason = "{reason}"\nuntil = {UNTIL}\n'


# Base


@request(0, "note    main has 1 commits that head has not")
def base_went_on_and_deleted_an_op(repo):
    repo.on_main()
    repo.undeclare("mine::total")
    repo.commit()
    repo.back()


@request(0, "note    main has 1 commits that head has not")
def base_went_on_to_a_later_opcheck(repo):
    repo.on_main()
    repo.declare('dims = ["cols"]', 'dims = ["cols"]\nnovelty = 1')
    repo.commit()
    repo.back()


@request(4, "main cannot be compared with; mend it there", "gate.accept[0] is")
def base_went_on_to_a_gate_that_is_wrong(repo):
    repo.on_main()
    repo.declare('["PASS", "PASS', '["PASSED", "PASS')
    repo.commit()
    repo.back()


@request(1, "mine::scale: its evidence on cpu is stale: its manifest names no file")
def evidence_of_nothing(repo):
    line = repo.line("mine::scale")
    repo.keep(repo.line("mine::scale", manifest=replace(line.manifest, files={})), repo.line("mine::total"))


@request(1, "mine::scale on cpu is MAYBE", "of level thorough; the merge needs standard")
def evidence_with_words_that_there_are_not(repo):
    repo.keep(repo.line("mine::scale", verdict="MAYBE"), repo.line("mine::total", level="thorough"))


@request(1, "mine::scale: there is no evidence on cuda")
def base_went_on_and_requires_more(repo):
    repo.on_main()
    repo.declare('backends = ["cpu"]', 'backends = ["cpu", "cuda"]')
    repo.commit()
    repo.back()


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    return template(tmp_path_factory.mktemp("start") / "repo")


@pytest.mark.parametrize("name", REQUESTS)
def test_gets_the_right_decision(name, start, tmp_path, monkeypatch):
    act, status, sentences, flags = REQUESTS[name]
    repo = copied(start, tmp_path / "repo")
    monkeypatch.chdir(repo.root)
    act(repo)
    said = repo.gate(*flags)
    told = f"{said.out}{said.err}"
    assert said.status == status, told
    for sentence in sentences:
        assert sentence in told
    closed = [line for line in told.splitlines() if line.startswith("CLOSED")]
    assert bool(closed) == (status == 1 or "CLOSED" in told)
    if status == 0:
        assert not closed
