"""Every wrong `registry.toml` gets exactly the sentences that say what it is and what it should be."""

import pytest

from opcheck.errors import PolicyError
from tests.declared.examples import HEAD, OP, policy

F = "registry.toml: "
P = 'registry.toml: op."ops::f".'
DTYPES = "one of float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2"
KINDS = "one of elementwise, reduction, normalization, contraction, attention, gather, scan, quantize"
DIM_LIST = 'a list of 1 or more, each the name of a dimension, or "..." for any leading ones'
MODULE = "the name of a module, such as ops or ops.softmax"
OP_NAME = 'the name of an op in quotes, namespace::name, such as [op."ops::softmax"]'
REASON = "the reason, a string that is not blank"
CONTRACT = (
    "kind, dtypes, dims, formula, mixed, accumulator, intermediates, reduces, smallest, largest, sizes, multiple, "
    "empty, tiles, production, variants, values, contiguous, extent, no_grad, nonfinite, deterministic, random, "
    "overflow, unsupported"
)
FAMILIES = (
    "normal, large_mean, extreme_logits, zeros, tail, one_nan, uniform, far_mean, near_constant, constant_rows, "
    "cancelling, masked, masked_finite, outlier_row, outlier_column, tail_block, one_hot, small_integers, halfway, "
    "half_steps, half_steps_fp8, near_overflow, subnormal, signed_zeros, saturating, one_inf, one_negative_inf, "
    "lowest, highest, one_lowest, one_highest, ascending, descending, equal, alternating, unit_parts"
)
LIMITS = "fudge_factor, project_atol, max_reference_relative_error"
NUMERICS = '[op."ops::f".numerics]\n'
WAIVER = '[[waiver]]\nop = "ops::f"\ncheck = "numerics"\nreason = "r"\n'
UNTIL = "until = 2027-03-31\n"
SCALAR = "a boolean, a finite number or a string without , and ;"
PAIR = "a number above 0, or { narrow = ..., wide = ... } with one for each"
VERSION = "it should be 1, the only version that this opcheck reads"

MALFORMED = {
    "empty file": (
        "",
        f"{F}schema is missing; {VERSION}",
        f"{F}registry is missing; it should be a table with modules",
    ),
    "newer schema": ('schema = 2\n[registry]\nfiles = ["x"]\n', f"{F}schema is 2; {VERSION}"),
    "schema in quotes": (HEAD.replace("1", '"1"'), f'{F}schema is "1"; {VERSION}'),
    "schema a boolean": (HEAD.replace("1", "true"), f"{F}schema is true; {VERSION}"),
    "unknown table": (
        f"{HEAD}[gates]\n",
        f"{F}gates is not a key of the file; it has schema, registry, defaults, gate, op, waiver, change; "
        "did you mean gate?",
    ),
    "unknown key of registry": (
        'schema = 1\n[registry]\nmodule = ["ops"]\n',
        f"{F}registry.module is not a key of registry; it has modules; did you mean modules?",
        f"{F}registry.modules is missing; it should be a list of 1 or more, each {MODULE}",
    ),
    "no modules": (
        "schema = 1\nregistry.modules = []\n",
        f"{F}registry.modules is an empty list; it should be a list of 1 or more, each {MODULE}",
    ),
    "module a path": (
        'schema = 1\nregistry.modules = ["ops/softmax.py"]\n',
        f'{F}registry.modules[0] is "ops/softmax.py"; it should be {MODULE}',
    ),
    "module twice": (
        'schema = 1\nregistry.modules = ["ops", "a", "ops"]\n',
        f'{F}registry.modules has "ops" more than once',
    ),
    "unknown check of defaults": (
        f"{HEAD}[defaults.numeric]\n",
        f"{F}defaults.numeric is not a check; the checks are numerics, determinism; did you mean numerics?",
    ),
    "unknown verdict": (
        f'{HEAD}gate.accept = ["pass"]\n',
        f'{F}gate.accept[0] is "pass"; it should be one of PASS, PASS WITH LIMITATIONS, INCONCLUSIVE; '
        "did you mean PASS?",
    ),
    "a gate that accepts FAIL": (
        f'{HEAD}gate.accept = ["FAIL"]\n',
        f'{F}gate.accept[0] is "FAIL"; it should be one of PASS, PASS WITH LIMITATIONS, INCONCLUSIVE',
    ),
    "unknown backend": (
        f'{HEAD}gate.backends = ["gpu"]\n',
        f'{F}gate.backends[0] is "gpu"; it should be cpu, cuda or an architecture such as cuda:sm_90',
    ),
    "op without namespace": (f'{HEAD}[op.softmax]\nkind = "scan"\n', f"{F}op.softmax is not {OP_NAME}"),
    "op not a table": (
        f'{HEAD}op."ops::f" = "elementwise"\n',
        f'{P[:-1]} is "elementwise"; it should be a table with kind, dtypes, dims',
    ),
    "required keys": (
        f'{HEAD}[op."ops::f"]\n',
        f"{P}kind is missing; it should be {KINDS}",
        f"{P}dtypes is missing; it should be a list of 1 or more, each {DTYPES}",
        f"{P}dims is missing; it should be {DIM_LIST}",
    ),
    "unknown contract key": (
        f"{OP}formulae = 'x'\n",
        f"{P}formulae is neither a contract key ({CONTRACT}) nor a check (numerics, determinism); "
        "did you mean formula?",
    ),
    "unknown check of an op": (
        f'{OP}[op."ops::f".determinsm]\nruns = 3\n',
        f"{P}determinsm is neither a contract key ({CONTRACT}) nor a check (numerics, determinism); "
        "did you mean determinism?",
    ),
    "unknown kind": (
        OP.replace('"elementwise"', '"pointwise"'),
        f'{P}kind is "pointwise"; it should be {KINDS}; did you mean elementwise?',
    ),
    "dtypes a string": (
        OP.replace('["float32", "bfloat16"]', '"float32"'),
        f'{P}dtypes is "float32"; it should be a list of 1 or more, each {DTYPES}',
    ),
    "dtypes empty": (
        OP.replace('"float32", "bfloat16"', ""),
        f"{P}dtypes is an empty list; it should be a list of 1 or more, each {DTYPES}",
    ),
    "unknown dtype": (
        OP.replace("bfloat16", "BF16"),
        f'{P}dtypes[1] is "BF16"; it should be {DTYPES}; did you mean bfloat16?',
    ),
    "dtype twice": (OP.replace("bfloat16", "float32"), f'{P}dtypes has "float32" more than once'),
    "dtype promised and refused": (
        f'{OP}unsupported = [{{ dtype = "float32", reason = "r" }}]\n',
        f'{P}unsupported[0].dtype is "float32", which dtypes promises; take it out of one of the two',
    ),
    "dtype refused twice": (
        f'{OP}unsupported = [{{ dtype = "float64", reason = "r" }}, {{ dtype = "float64", reason = "s" }}]\n',
        f'{P}unsupported[1].dtype is "float64", which is listed above it',
    ),
    "dtype refused without a reason": (
        f'{OP}unsupported = [{{ dtype = "float64" }}]\n',
        f"{P}unsupported[0].reason is missing; it should be {REASON}",
    ),
    "unknown mixed dtype": (
        f'{OP}mixed = [{{ x = "bfloat", w = "float32" }}]\n',
        f'{P}mixed[0].x is "bfloat"; it should be {DTYPES}; did you mean bfloat16?',
    ),
    "unknown accumulator": (f'{OP}accumulator = "tf32"\n', f'{P}accumulator is "tf32"; it should be {DTYPES}'),
    "dims twice": (OP.replace('"rows", "cols"', '"n", "n"'), f'{P}dims has "n" more than once'),
    "leading dims last": (
        OP.replace('"rows", "cols"', '"rows", "..."'),
        f'{P}dims has "..." after the first place; leading dimensions come first',
    ),
    "dimension not a name": (
        OP.replace('"rows"', '"rows=3"'),
        f'{P}dims[0] is "rows=3"; it should be the name of a dimension, or "..." for any leading ones',
    ),
    "unknown dimension": (
        f"{OP}largest = {{ col = 8 }}\n",
        f"{P}largest.col is not a dimension of the contract; it has rows, cols; did you mean cols?",
    ),
    "unknown reduced dimension": (
        f'{OP}reduces = ["cols", "k"]\n',
        f'{P}reduces[1] is "k", not a dimension of the contract; it has rows, cols',
    ),
    "leading dims not there": (
        f'{OP}empty = ["..."]\n',
        f'{P}empty[0] is "...", not a dimension of the contract; it has rows, cols',
    ),
    "unknown dimension of a production shape": (
        f"{OP}production = [{{ rows = 1 }}, {{ row = 1 }}]\n",
        f"{P}production[1].row is not a dimension of the contract; it has rows, cols; did you mean rows?",
    ),
    "only leading dims": (
        OP.replace('"rows", "cols"', '"..."') + "tiles = { n = [8] }\n",
        f"{P}tiles.n is not a dimension of the contract; it has none with a name",
    ),
    "smallest above largest": (
        f"{OP}smallest = {{ rows = 8 }}\nlargest = {{ rows = 4, cols = 9 }}\n",
        f"{P}smallest.rows is 8, above largest.rows, which is 4; no size is legal",
    ),
    "multiple above largest": (
        f"{OP}multiple = {{ rows = 8 }}\nlargest = {{ rows = 4 }}\n",
        f"{P}multiple.rows is 8, above largest.rows, which is 4; no size is legal",
    ),
    "size not a multiple": (
        f"{OP}multiple = {{ rows = 16 }}\nsizes = {{ rows = [32, 40] }}\n",
        f"{P}sizes.rows[1] is 40, not a multiple of multiple.rows, which is 16",
    ),
    "production shapes outside the contract": (
        f"{OP}production = [{{ rows = 2, cols = 9 }}]\nsmallest = {{ rows = 3 }}\nlargest = {{ cols = 8 }}\n",
        f"{P}production[0].rows is 2, below smallest.rows, which is 3",
        f"{P}production[0].cols is 9, above largest.cols, which is 8",
    ),
    "production shape not one of the sizes": (
        f"{OP}production = [{{ rows = 96 }}]\nsizes = {{ rows = [64, 128] }}\n",
        f"{P}production[0].rows is 96, not one of sizes.rows, which are 64, 128",
    ),
    "size zero": (f"{OP}smallest.rows = 0\n", f"{P}smallest.rows is 0; it should be an integer of 1 or more"),
    "size a float": (f"{OP}largest.rows = 1e4\n", f"{P}largest.rows is 10000.0; it should be an integer of 1 or more"),
    "size a boolean": (f"{OP}largest.rows = true\n", f"{P}largest.rows is true; it should be an integer of 1 or more"),
    "size beyond 64 bits": (
        f"{OP}largest.rows = 9223372036854775808\n",
        f"{P}largest.rows is an integer beyond 64 bits; it should be an integer of 1 or more",
    ),
    "tiles a number": (
        f"{OP}tiles.cols = 1024\n",
        f"{P}tiles.cols is 1024; it should be a list of 1 or more, each an integer of 1 or more",
    ),
    "variant a list": (f"{OP}variants = [{{ eps = [1] }}]\n", f"{P}variants[0].eps is a list; it should be {SCALAR}"),
    "variant that breaks a case id": (
        f"{OP}variants = [{{ mode = 'a;b' }}]\n",
        f'{P}variants[0].mode is "a;b"; it should be {SCALAR}',
    ),
    "variant twice": (f"{OP}variants = [{{ e = 1 }}, {{ e = 1 }}]\n", f"{P}variants has a table more than once"),
    "no family": (
        f'{OP}values = ["near_overlow"]\n',
        f'{P}values[0] is "near_overlow"; it should be one of {FAMILIES}; did you mean near_overflow?',
    ),
    "family twice": (f'{OP}values = ["zeros", "zeros"]\n', f'{P}values has "zeros" more than once'),
    "blank reason": (f'{OP}contiguous.x = " "\n', f'{P}contiguous.x is " "; it should be {REASON}'),
    "reason a boolean": (f"{OP}no_grad.x = true\n", f"{P}no_grad.x is true; it should be {REASON}"),
    "nonfinite undefined without a reason": (
        f'{OP}nonfinite = "undefined"\n',
        f'{P}nonfinite is "undefined"; it should be "propagate", or with its reason {{ undefined = "..." }}',
    ),
    "nonfinite with a blank reason": (
        f'{OP}nonfinite = {{ undefined = "" }}\n',
        f'{P}nonfinite.undefined is ""; it should be {REASON}',
    ),
    "deterministic a string": (
        f'{OP}deterministic = "yes"\n',
        f'{P}deterministic is "yes"; it should be true or false or a table with forward and backward',
    ),
    "unknown key of deterministic": (
        f"{OP}deterministic.backwards = false\n",
        f'{P}deterministic.backwards is not a key of op."ops::f".deterministic; it has forward, backward; '
        "did you mean backward?",
    ),
    "random a number": (f"{OP}random = 1\n", f"{P}random is 1; it should be true or false"),
    "unknown overflow": (
        f'{OP}overflow = "clip"\n',
        f'{P}overflow is "clip"; it should be one of saturate, ieee, nan',
    ),
    "unknown limit": (
        f"{OP}{NUMERICS}max_rato = 2\n",
        f"{P}numerics.max_rato is not a limit of numerics; it has {LIMITS}",
    ),
    "misspelt limit": (
        f"{OP}{NUMERICS}fudge_faktor = 2\n",
        f"{P}numerics.fudge_faktor is not a limit of numerics; it has {LIMITS}; did you mean fudge_factor?",
    ),
    "limit negative": (
        f"{OP}{NUMERICS}project_atol = -1e-3\n",
        f"{P}numerics.project_atol is -0.001; it should be a number of 0 or more",
    ),
    "limit nan": (f"{OP}{NUMERICS}fudge_factor = nan\n", f"{P}numerics.fudge_factor is nan; it should be {PAIR}"),
    "limit infinite": (
        f"{OP}{NUMERICS}max_reference_relative_error = inf\n",
        f"{P}numerics.max_reference_relative_error is inf; it should be a number above 0",
    ),
    "limit beyond 64 bits": (
        f"{OP}{NUMERICS}project_atol = 1{'0' * 400}\n",
        f"{P}numerics.project_atol is an integer beyond 64 bits; it should be a number of 0 or more",
    ),
    "limit zero where senseless": (
        f"{OP}[op.\"ops::f\".determinism]\nruns = 0\nreason = 'r'\n",
        f"{P}determinism.runs is 0; it should be an integer of 1 or more",
    ),
    "half a pair": (
        f"{OP}{NUMERICS}fudge_factor = {{ narrow = 0 }}\n",
        f"{P}numerics.fudge_factor.wide is missing; it should be a number above 0",
        f"{P}numerics.fudge_factor.narrow is 0; it should be a number above 0",
    ),
    "pair where there is one": (
        f"{OP}{NUMERICS}project_atol = {{ narrow = 0, wide = 0 }}\n",
        f"{P}numerics.project_atol is a table; it should be a number of 0 or more",
    ),
    "looser than opcheck": (
        f"{OP}{NUMERICS}fudge_factor = 3\n",
        f"{P}numerics.fudge_factor is 3.0 for bfloat16, looser than the 2.0 that opcheck starts from; "
        "give the reason beside it",
    ),
    "looser than the defaults": (
        f"{OP}{NUMERICS}project_atol = 1e-3\n[defaults.numerics]\nproject_atol = 1e-4\n",
        f"{P}numerics.project_atol is 0.001, looser than the 0.0001 of defaults.numerics; give the reason beside it",
    ),
    "looser than the defaults of a dtype": (
        f"{OP}{NUMERICS}project_atol = 1e-3\n[defaults.numerics]\nproject_atol = 1e-2\n"
        "[defaults.numerics.bfloat16]\nproject_atol = 1e-4\n",
        f"{P}numerics.project_atol is 0.001 for bfloat16, looser than the 0.0001 of defaults.numerics.bfloat16; "
        "give the reason beside it",
    ),
    "dtype looser than the op": (
        f"{OP}{NUMERICS}fudge_factor = 5\nreason = 'r'\n[op.\"ops::f\".numerics.float16]\nfudge_factor = 6\n",
        f'{P}numerics.float16.fudge_factor is 6.0, looser than the 5.0 of op."ops::f".numerics; '
        "give the reason beside it",
    ),
    "dtype of the defaults looser": (
        f"{HEAD}[defaults.determinism]\nruns = 5\n[defaults.determinism.float16]\nruns = 4\n",
        f"{F}defaults.determinism.float16.runs is 4, looser than the 5 of defaults.determinism; "
        "give the reason beside it",
    ),
    "lower is looser": (
        f'{OP}[op."ops::f".determinism]\nruns = 9\n',
        f"{P}determinism.runs is 9, looser than the 10 that opcheck starts from; give the reason beside it",
    ),
    "existing in the defaults": (
        f'{HEAD}[defaults.numerics]\nexisting = "five-stage"\n',
        f"{F}defaults.numerics.existing is not a limit of numerics; it has {LIMITS}",
    ),
    "unknown existing": (
        f'{OP}{NUMERICS}existing = "5-stage"\n',
        f'{P}numerics.existing is "5-stage"; it should be "five-stage", '
        "or a table of dtype to { atol, rtol, reason }",
    ),
    "existing of an unknown dtype": (
        f'{OP}[op."ops::f".numerics.existing]\nfloat31 = {{ atol = 0, rtol = 0 }}\n',
        f"{P}numerics.existing.float31 is not {DTYPES}; did you mean float32?",
    ),
    "existing without rtol": (
        f'{OP}[op."ops::f".numerics.existing]\nfloat32 = {{ atol = -1 }}\n',
        f"{P}numerics.existing.float32.rtol is missing; it should be a number of 0 or more",
        f"{P}numerics.existing.float32.atol is -1; it should be a number of 0 or more",
    ),
    "age of evidence without a unit": (
        f'{HEAD}[gate]\nmax_age = "14"\n',
        f'{F}gate.max_age is "14"; it should be an age in hours, days or weeks, such as "36h", "14d" or "2w"',
    ),
    "change without reason": (
        f'{OP}[[change]]\nop = "ops::f"\nwhat = "dtypes"\n',
        f"{F}change[0].reason is missing; it should be {REASON}",
    ),
    "change of what there is not": (
        f'{OP}[[change]]\nop = "ops::f"\nwhat = "dtype"\nreason = "r"\n',
        f'{F}change[0].what is "dtype"; it should be one of op, oracle, cases, {CONTRACT}, numerics, determinism, '
        "coverage; did you mean dtypes?",
    ),
    "waiver a table": (
        f"{OP}{WAIVER.replace('[[waiver]]', '[waiver]')}{UNTIL}",
        f"{F}waiver is a table; it should be a list, each a table with op, check, reason, until",
    ),
    "waiver without reason and date": (
        f'{OP}[[waiver]]\nop = "ops::f"\ncheck = "*"\n',
        f"{F}waiver[0].reason is missing; it should be {REASON}",
        f"{F}waiver[0].until is missing; it should be a date without quotes, such as 2027-03-31",
    ),
    "date in quotes": (
        f'{OP}{WAIVER}until = "2027-12-01"\n',
        f'{F}waiver[0].until is "2027-12-01"; it should be a date without quotes, such as 2027-03-31; '
        "drop the quotes: 2027-12-01",
    ),
    "date with a time": (
        f"{OP}{WAIVER}until = 2027-12-01T00:00:00\n",
        f"{F}waiver[0].until is 2027-12-01T00:00:00; it should be a date without quotes, such as 2027-03-31",
    ),
    "date that is none": (
        f'{OP}{WAIVER}until = "soon"\n',
        f'{F}waiver[0].until is "soon"; it should be a date without quotes, such as 2027-03-31',
    ),
    "waiver of an unknown check": (
        f"{OP}{WAIVER.replace('numerics', 'numeric')}{UNTIL}",
        f'{F}waiver[0].check is "numeric"; it should be one of numerics, determinism or a glob that matches one; '
        "did you mean numerics?",
    ),
    "waiver of a glob of nothing": (
        f"{OP}{WAIVER.replace('numerics', 'ulp*')}{UNTIL}",
        f'{F}waiver[0].check is "ulp*"; it should be one of numerics, determinism or a glob that matches one',
    ),
    "waiver of an unknown fact": (
        f'{OP}{WAIVER}{UNTIL}where = {{ type = "float16" }}\n',
        f"{F}waiver[0].where.type is not a key of waiver[0].where; it has dtype, tensor, values, layout, variant, "
        "backend; did you mean dtype?",
    ),
    "syntax": (
        f"{HEAD}[gate]\naccept = [PASS]\n",
        "registry.toml:4:11: not TOML: invalid value",
    ),
    "syntax at the end": (f'{HEAD}[gate]\naccept = ["PASS"', "registry.toml:4:17: not TOML: unclosed array"),
    "op without quotes": (
        f"{HEAD}[op.ops::f]\n",
        "registry.toml:3:8: not TOML: expected ']' at the end of a table declaration; "
        'the name of an op needs quotes: [op."ns::name"]',
    ),
    "table twice": (
        f"{HEAD}[gate]\n[gate]\n",
        "registry.toml:4:6: not TOML: cannot declare ('gate',) twice",
    ),
    "nested too deep": (
        f"x = {'[' * 100_000}",
        "registry.toml: lists or tables are nested too deep to be read",
    ),
    "integer of 5,000 digits": (
        f"schema = {'9' * 5000}",
        "registry.toml: an integer has too many digits to be read",
    ),
}


@pytest.mark.parametrize(("text", "sentences"), [(text, said) for text, *said in MALFORMED.values()], ids=[*MALFORMED])
def test_says_exactly_what_is_wrong(tmp_path, text, sentences):
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, text)
    assert list(caught.value.problems) == sentences
    assert str(caught.value) == "\n".join(sentences)


def test_lists_the_errors_of_all_tables_at_once(tmp_path):
    tables = (
        "[registry]\nmodules = [7]\n"
        '[gate]\nbackends = ["tpu"]\n'
        "[defaults.determinism]\nruns = 1.5\n"
        '[op."ops::f"]\nkind = "scan"\ndtypes = ["float32"]\ndims = ["n"]\nlargest = { m = 2 }\n'
        '[op."ops::f".numerics]\nproject_atol = 1\n'
        '[op."ops::g"]\nkind = "scan"\ndtypes = []\ndims = ["n"]\n'
        "[[waiver]]\n"
    )
    with pytest.raises(PolicyError) as caught:
        policy(tmp_path, f"schema = 1\n{tables}")
    starts = [sentence.split(" is ")[0] for sentence in caught.value.problems]
    assert starts == [
        f"{F}registry.modules[0]",
        f"{F}defaults.determinism.runs",
        f"{F}gate.backends[0]",
        f'{F}op."ops::g".dtypes',
        f"{F}waiver[0].op",
        f"{F}waiver[0].check",
        f"{F}waiver[0].reason",
        f"{F}waiver[0].until",
        f"{P}numerics.project_atol",
        f"{P}largest.m",
    ]
