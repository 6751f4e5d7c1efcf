"""What an audit must say of each broken op of the gallery: which checks fail, on which tensor and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What is expected of one broken op, over all of its cases.

    Attributes:
        fails: Check and tensor of every failure, exactly.
        says: Words that a failure must contain, in its detail or its hint; on a case that contains `among`.
        among: Part of the id of a case that must be among the failing ones.
        only: Part of the id that every failing case must have: elsewhere the op is right.
        perhaps: Failures that depend on what uninitialised memory holds.
    """

    fails: frozenset[Pair]
    says: str
    among: str = ""
    only: str = ""
    perhaps: frozenset[Pair] = frozenset()


def _expect(check: str, tensors: str, says: str, *, among: str = "", only: str = "") -> Expect:
    fails = frozenset((check, tensor) for tensor in tensors.split(", "))
    return Expect(fails=fails, says=says, among=among, only=only)


ODD = "rows=5,cols=129;normal"

EXPECTED: Mapping[str, Expect] = {
    "accumulator_fp16": _expect("numerics", "out", "target 3", among="cols=4096"),
    "argmax_tie": _expect("structure", "out", "5 of 5 integers differ, the first at [0]: golden 0", only="zeros"),
    "argument_hardcoded": _expect("numerics", "out", "golden times 0.5", only="slope=0.5"),
    "dot_tf32": _expect("numerics", "out", "25 of 25 elements", among="rows=5,k=129,n=5;normal"),
    "fake_strides": _expect("library", "the op", "Strides are (129, 1) and (1, 5)", only=ODD),
    "float16_branch": _expect("numerics", "out", "of 645 elements", among=ODD, only="[float16;"),
    "grad_bf16_sum": _expect("numerics", "grad weight", "of 37 elements", among="rows=256"),
    "grad_doubled": _expect("numerics", "grad b", "golden times 2", among=ODD),
    "grad_none": _expect("structure", "grad weight", "backward returns None", among=ODD),
    "grad_row_block": _expect("numerics", "grad weight", "129 of 129 elements", among=ODD),
    "inplace_row": _expect("numerics", "x", "129 of 645 elements, all in the last of rows", among=ODD),
    "keyword_lost": _expect("numerics", "grad x", "golden times 2", among=ODD),
    "list_gradient": _expect("structure", "grad xs[2]", "backward returns None", among=ODD),
    "masked_row": _expect(
        "structure", "out", "NaN where golden is finite: 129 of 645, at [0, 0]: golden 0", only="masked"
    ),
    "maximum_from_zero": _expect("structure", "out", "Inf missing: 1 of 5, at [0]: golden -inf", only="masked"),
    "mutates_input": _expect("library", "the op", "name it in mutates_args", only=ODD),
    "naive_softmax": _expect("structure", "out", "NaN where golden is finite", only="extreme_logits"),
    "nan_dropped": _expect("structure", "out", "NaN missing: 1 of 5, at [3]", only="one_nan"),
    "no_autograd": Expect(
        fails=frozenset({("structure", "grad x"), ("library", "the op")}),
        says="no autograd formula was registered",
        among=ODD,
    ),
    "no_fake": _expect("library", "the op", "use .register_fake", only=ODD),
    "one_element": _expect("numerics", "out", "1 of 645 elements, all in rows 1, all in cols 64", among=ODD),
    "optional_ignored": _expect("numerics", "out", "645 of 645 elements", among=ODD),
    "outlier_row": _expect("slices", "out", "slice [4, :]", among=ODD),
    "output_dtype": _expect("structure", "out", "dtype float32 should be float16", among=ODD),
    "padded_lanes": _expect("numerics", "out", "5 of 5 elements", among="large_mean"),
    "refuses_size": _expect("structure", "the case", "cols is 129, it should be a multiple of 8", among=ODD),
    "repeated_index": _expect("numerics", "grad table", "entries", among="rows=5,cols=129;normal"),
    "returns_input": _expect("structure", "the case", "must not also be an input", among=ODD),
    "returns_view": _expect("structure", "the case", "may not alias any inputs", among=ODD),
    "scale_error": _expect("numerics", "out", "golden times 1.01 ", among=ODD),
    "small_values": _expect("ulp", "out", "target 0", among=ODD),
    "square_overflow": _expect("structure", "out", "target inf", only="extreme_logits"),
    "squeezed_shape": _expect("structure", "out", "shape [] should be [1, 1]", only="rows=1,cols=1;normal"),
    "stochastic_rounding": _expect("determinism", "out", "9 of 10 runs differ", among=ODD),
    "swapped_gradients": Expect(
        fails=frozenset({("structure", "grad x"), ("numerics", "grad table")}),
        says="backward returns None",
        among=ODD,
    ),
    "swapped_outputs": _expect("numerics", "out 0, out 1", "645 of 645 elements", among=ODD),
    "tail_tile": _expect("numerics", "out", "all in the last of cols", among=ODD, only="cols=129"),
    "truncated_store": _expect("bias", "out", "truncation instead of rounding", among=ODD),
    "unlocked_sum": _expect("determinism", "out", "reversed and shuffled program order", among="rows=33"),
    "unwritten_row": Expect(
        fails=frozenset({("determinism", "out")}),
        says="poisoned allocations",
        only="rows=9",
        perhaps=frozenset({("numerics", "out"), ("structure", "out")}),
    ),
    "upstream_first": _expect("numerics", "grad x", "516 of 645 elements", among=ODD),
}
