"""What an audit must say of each broken op of the gallery: which checks fail, on which tensor and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from opcheck.core.policy import Level

Pair = tuple[str, str]
ODD = "rows=5,cols=129;normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What is expected of one broken op, over all of its cases.

    Attributes:
        fails: Check and tensor of every failure, exactly.
        says: Words that a failure must contain, in its detail or its hint; on a case that contains `among`.
        among: Part of the id of a case that must be among the failing ones.
        only: Part of the id that every failing case must have: elsewhere the op is right.
        values: The families of values that show the fault, where not all do; each is run.
        perhaps: Failures that depend on what uninitialised memory holds.
        triggers: Parts of case ids: tests run the first planned case that has each of them. `among`, `only` or, where
            there is neither, the first case unless given.
        level: The level at which it is audited: the checks of some faults run at the level full only.
    """

    fails: frozenset[Pair]
    says: str
    among: str = ""
    only: str = ""
    values: tuple[str, ...] = ()
    perhaps: frozenset[Pair] = frozenset()
    triggers: tuple[str, ...] = ()
    level: Level = "standard"

    @property
    def wanted(self) -> tuple[str, ...]:
        """The parts of case ids for which a case is run."""
        families = tuple(f";{name};" for name in self.values)
        return self.triggers or families or (self.among or self.only,)


def _expect(
    check: str, tensors: str, says: str, *, among: str = "", only: str = "", triggers: tuple[str, ...] = ()
) -> Expect:
    fails = frozenset((check, tensor) for tensor in tensors.split(", "))
    return Expect(fails=fails, says=says, among=among, only=only, triggers=triggers)


def _in_families(check: str, tensor: str, says: str, *values: str) -> Expect:
    """Expect a fault that only some families of values show; the first is the one whose failure says the words."""
    return Expect(fails=frozenset({(check, tensor)}), says=says, among=f";{values[0]};", values=values)


def _at_full(check: str, tensors: str, says: str) -> Expect:
    """Expect a fault that shows on the representative case alone, at the level full."""
    return replace(_expect(check, tensors, says, only=ODD), level="full")


def _pairs(tensor: str, checks: str) -> frozenset[Pair]:
    return frozenset((check, "the op" if check == "library" else tensor) for check in checks.split(", "))


ODD = "rows=5,cols=129;normal"
AT_ZERO = frozenset({("structure", "the case")})  # an empty tensor has no address: what is read of it is read at 0

EXPECTED: Mapping[str, Expect] = {
    "accumulator_fp16": _expect("numerics", "out", "target 3", among="cols=4096"),
    "argmax_tie": _in_families(
        "structure", "out", "5 of 5 integers differ, the first at [0]: golden 0", "zeros", "small_integers"
    ),
    "argument_hardcoded": _expect(
        "numerics", "out", "slope=0.5 changes golden and nothing in the target", only="slope=0.5"
    ),
    "autocast_mixed": _expect(
        "autograd", "gradients", "the forward works and its backward does not", among="k=129,n=5;normal"
    ),
    "block_base": Expect(
        fails=frozenset({("memory", "x_ptr"), ("numerics", "out")}),
        says="an integer wraps; program [8, 0, 0] lane 0 loads element -2147483262 of x_ptr at",
        only="x=far+grad:out=far",
    ),
    "broadcast_axis": _expect("numerics", "out", "spread over the whole tensor", among="length=129;normal"),
    "config_wrong": _expect("numerics", "out", "261 of 645 elements", only="%config=1"),
    "contiguous_ignored": _expect("refusal", "the case", "declared contiguous: rows are read", only="x="),
    "count_before_flattening": _expect("numerics", "grad weight", "3 of 3 elements", among="h=5,w=5;normal"),
    "dead_rows": Expect(
        fails=frozenset({("numerics", "grad gate"), ("structure", "out"), ("memory", "gate_ptr")}),
        says="NaN where golden is finite: 5 of 15, at [2, 0]",
        among="rows=9,cols=5;normal",
        perhaps=_pairs("out", "determinism, numerics, library"),
        triggers=("rows=9,cols=5;normal;gate", "gate=padded"),
    ),
    "decay_overflow": Expect(
        fails=frozenset({("structure", "out")}),
        says="NaN where golden is finite",
        among="outlier_row",
        perhaps=_pairs("out", "numerics, slices"),
    ),
    "double_backward": _expect("autograd", "grad x", "where the target's is None, grad x of grad x", only=ODD),
    "dot_tf32": _expect("numerics", "out", "15 of 15 elements", among="rows=3,k=129,n=5;normal"),
    "dropout_offset": _expect("numerics", "out 1, grad y", "of 645 elements", among=ODD),
    "dropout_recomputed": _expect("numerics", "grad x", "of 645 elements", among=ODD),
    "empty_reduction": _expect(
        "structure", "the case", "target raised ZeroDivisionError in its forward", only="cols=0"
    ),
    "empty_rubbish": _expect("refusal", "the case", "the target returned out float32 [5]", only="rows=0"),
    "expanded_upstream": Expect(
        fails=frozenset({("structure", "grad x"), ("library", "the op"), ("memory", "grad_ptr")}),
        says="NaN where golden is finite: 387 of 645, at [1, 0]",
        among="grad:out=expanded",
        triggers=(ODD, "grad:out=expanded"),
    ),
    "fake_layout": _expect("fakes", "out", "the fake gives strides [129, 1], the op [1, 5]", only="x=transposed"),
    "fake_number": _expect("fakes", "the op", "the fake turns cols = 129 into a number", only=ODD),
    "fake_size": _expect(
        "fakes",
        "out, the op",
        "gives shape [1, 129], the op [1, 1]",
        among="rows=1,cols=1;",
        triggers=("rows=1,cols=1;", "rows=3,cols=37;"),
    ),
    "fake_strides": Expect(
        fails=frozenset({("library", "the op"), ("fakes", "out")}), says="Strides are (129, 1) and (1, 5)", among=ODD
    ),
    "float64_accepted": _expect("refusal", "the case", "float64 is declared unsupported", only="[float64;"),
    "frozen_input": _expect("autograd", "grad weight", "only weight requires a gradient: is None", only=ODD),
    "float16_branch": _expect(
        "numerics", "out", "of 645 elements", among=ODD, only="[float16;", triggers=("[float16;rows=5",)
    ),
    "grad_bf16_sum": _expect("numerics", "grad weight", "of 37 elements", among="rows=256"),
    "grad_doubled": Expect(
        fails=frozenset({("numerics", "grad b")}),
        says="golden times 2",
        among=ODD,
        perhaps=_pairs("grad b", "structure"),
    ),
    "grad_none": _expect("structure", "grad weight", "backward returns None", among=ODD),
    "grad_row_block": _expect("numerics", "grad weight", "129 of 129 elements", among=ODD),
    "grid_axis": _expect("structure", "the case", "65,537 programs along y", among="rows=65537"),
    "inplace_row": _expect("numerics", "x", "129 of 645 elements, all in the last of rows", among=ODD),
    "input_strides": Expect(
        fails=frozenset({("numerics", "out"), ("structure", "out"), ("memory", "table_ptr")}),
        says="NaN where golden is finite",
        only="table=",
        triggers=("table=padded", "table=narrowed"),
    ),
    "int32_offset": Expect(
        fails=frozenset({("memory", "x_ptr"), ("numerics", "out")}),
        says="an integer wraps; program [4, 0, 0] lane 0 loads element 256 of x_ptr",
        only="x=far+grad:out=far",
    ),
    "keep_rate": _expect("randomness", "out 0, out 1, grad x", "elements are kept with p instead of 1 - p", among=ODD),
    "keyword_lost": _expect("numerics", "grad x", "golden times 2", among=ODD),
    "list_gradient": _expect("structure", "grad xs[2]", "backward returns None", among=ODD),
    "logits_overwritten": Expect(
        fails=frozenset({("intact", "x"), ("autograd", "grad x")}), says="645 of 645 elements changed", among=ODD
    ),
    "mask_redrawn": Expect(
        fails=_pairs("grad x", "randomness, library"), says="the backward draws a mask of its own", among=ODD
    ),
    "masked_block": _expect("structure", "out", "NaN where golden is finite", only=";masked;"),
    "masked_row": _expect(
        "structure", "out", "NaN where golden is finite: 129 of 645, at [0, 0]: golden 0", only=";masked;"
    ),
    "masked_tile": Expect(
        fails=frozenset({("determinism", "out"), ("memory", "out")}),
        says="poisoned allocations",
        only=",cols=1;",
        perhaps=_pairs("out", "numerics, structure"),
        triggers=("rows=3,cols=1;",),
    ),
    "maximum_from_zero": Expect(
        fails=frozenset({("structure", "out")}),
        says="Inf missing: 1 of 5, at [0]: golden -inf",
        among=";masked;",
        perhaps=_pairs("out", "numerics"),
        triggers=(";masked;",),
    ),
    "mode_ignored": _expect("numerics", "grad x", 'mode="max" changes golden and nothing in the target', only="max"),
    "mutates_input": Expect(
        fails=frozenset({("library", "the op"), ("intact", "x")}), says="645 of 645 elements changed", among=ODD
    ),
    "naive_softmax": _expect("structure", "out", "NaN where golden is finite", among="extreme_logits"),
    "nan_dropped": _expect("structure", "out", "NaN missing: 1 of 5, at [3]", only="one_nan"),
    "no_autograd": Expect(
        fails=frozenset({("structure", "grad x"), ("library", "the op")}),
        says="no autograd formula was registered",
        among=ODD,
        perhaps=frozenset({("fakes", "the op")}),  # where library is not asked
    ),
    "no_fake": Expect(
        fails=frozenset({("library", "the op"), ("fakes", "the op")}),
        says="use .register_fake",
        among=ODD,
        triggers=(ODD, "rows=1,cols=1;"),
    ),
    "offset_stuck": _expect(
        "randomness", "out 0, out 1, grad x", "the offset of the generator does not advance", among=ODD
    ),
    "one_element": _expect("numerics", "out", "1 of 645 elements, all in rows 1, all in cols 64", among=ODD),
    "optional_ignored": _expect("numerics", "out", "645 of 645 elements", among=ODD),
    "outlier_row": Expect(
        fails=frozenset({("slices", "out")}),
        says="slice [4, :]",
        among=ODD,
        perhaps=_pairs("out", "bias, numerics"),
    ),
    "output_dtype": _expect("structure", "out", "dtype float32 should be float16", among=ODD),
    "padded_lanes": _expect("numerics", "out", "5 of 5 elements", among="large_mean"),
    "no_keys": Expect(
        fails=frozenset({("numerics", "out"), ("memory", "u_ptr")}),
        says="elements",
        among="keys=3,parts=5,queries=129;normal",
        perhaps=AT_ZERO | _pairs("out", "determinism"),
        triggers=("keys=3,parts=5,queries=129;normal", ";highest;"),
    ),
    "no_queries": Expect(
        fails=frozenset({("numerics", "grad k"), ("memory", "u_ptr")}),
        says="elements",
        among="queries=3,parts=5,keys=129;normal",
        perhaps=AT_ZERO | _pairs("grad k", "determinism"),
    ),
    "padded_batch": Expect(
        fails=frozenset({("numerics", "out"), ("memory", "x_ptr")}),
        says="of x_ptr, whose memory ends at 129",
        among="parts=5,tokens=129;normal",
        perhaps=_pairs("out", "structure, determinism, library"),
    ),
    "page_offset": Expect(
        fails=frozenset({("memory", "pool_ptr"), ("numerics", "out")}),
        says="an integer wraps; program [2, 0, 0] lane 0 loads element",
        only="pool=far+grad:out=far",
    ),
    "rank_assumed": _expect("numerics", "grad x", "222 of 222 elements", among="...0=2,rows=3,cols=37", only="...0="),
    "refuses_size": _expect("structure", "the case", "cols is 129, it should be a multiple of 8", among=ODD),
    "repeated_index": _expect("numerics", "grad table", "entries", among="rows=5,cols=129;normal"),
    "residual_gradient": _expect("numerics", "grad x, grad residual", "645 of 645 elements", among=ODD),
    "returns_input": _expect("structure", "the case", "must not also be an input", among=ODD),
    "returns_view": _expect("structure", "the case", "may not alias any inputs", among=ODD),
    # What the unwritten rows hold decides which other law sees them.
    "row_16_bits": _expect("numerics", "out", "numbered among the elements compared", only="%programs=16"),
    "row_pointer": Expect(
        fails=frozenset({("memory", "da_ptr"), ("memory", "grad a")}),
        says="516 of 645 elements were never written, the first is number 129",
        among=ODD,
        perhaps=_pairs("grad a", "determinism, structure, numerics, slices, bias, ulp, autograd, library"),
    ),
    "saved_overwritten": Expect(
        fails=frozenset({("intact", "out"), ("numerics", "out"), ("autograd", "grad x")}),
        says="a second backward through one graph: its bits are not those of the first",
        among=ODD,
    ),
    "scalar_upstream": _expect("numerics", "grad x", "1160 of 1161 elements", among="rows=9,cols=129;normal"),
    "scale_error": _expect("numerics", "out", "golden times 1.01 ", among=ODD),
    "scale_missing": _expect("randomness", "out 0, grad x", "kept elements are not scaled by 1 / (1 - p)", among=ODD),
    "scale_pointer": _expect("numerics", "grad x", "645 of 645 elements", among=ODD),
    "seed_fixed": _expect(
        "randomness", "out 0, out 1, grad x", "the seed is not used: every call draws the same", among=ODD
    ),
    "seed_ignored": Expect(
        fails=_pairs("out 0", "randomness, library") | _pairs("out 1", "randomness") | _pairs("grad x", "randomness"),
        says="2 of 2 repeats under one seed give other bits",
        among=ODD,
    ),
    "small_values": _expect("ulp", "out", "target 0", among=ODD),
    "softcap": _expect("structure", "out", "NaN where golden is finite", among="extreme_logits"),
    "square_overflow": _expect("structure", "out", "target inf", among="extreme_logits", only="[float16;"),
    "squeezed_shape": _expect("structure", "out", "shape [] should be [1, 1]", among="rows=1,cols=1;normal"),
    "statistic_axis": _expect("numerics", "grad x", "75 of 80 elements", among="rows=5,cols=16;normal"),
    "stochastic_rounding": _expect("determinism", "out", "9 of 10 runs differ", among=ODD),
    "swapped_gradients": Expect(
        fails=frozenset({("structure", "grad x"), ("numerics", "grad table")}),
        says="backward returns None",
        among=ODD,
    ),
    "swapped_outputs": _expect("numerics", "out 0, out 1", "645 of 645 elements", among=ODD),
    "tail_absmax": Expect(
        fails=frozenset({("determinism", "out"), ("memory", "x_ptr")}),
        says="poisoned allocations",
        among="n=129;normal",
        perhaps=_pairs("out", "structure, numerics, library"),
    ),
    "tail_tile": _expect("numerics", "out", "all in the last of cols", among=ODD),
    "tile_edge": _expect("numerics", "out", "3 of 1539 elements, all in the last of cols", among="cols=513;normal"),
    "truncated_store": _expect("bias", "out", "truncation instead of rounding", among=ODD),
    "unused_output": _expect("numerics", "grad x, grad residual", "target 0", among=">out 0", only=ODD),
    "tuned_in_place": _expect("determinism", "x", "once after autotuning on the live arguments", only=ODD),
    "unlocked_sum": Expect(
        fails=frozenset({("determinism", "out"), ("memory", "out_ptr")}),
        says="reversed and shuffled program order",
        among="rows=33",
    ),
    "untraced_backward": _expect("library", "the op", "test_aot_dispatch_dynamic", only=ODD),
    "unwritten_row": Expect(  # what the memory held before decides what else is wrong
        fails=frozenset({("memory", "out")}),
        says="were never written",
        only="rows=9",
        perhaps=_pairs("out", "determinism, numerics, structure"),
    ),
    "upstream_first": _expect("numerics", "grad x", "516 of 645 elements", among=ODD),
    "upstream_overwritten": _expect("intact", "grad:out", "645 of 645 elements changed", among=ODD),
    "upstream_strides": _expect(
        "numerics", "grad x", "644 of 645 elements", only="grad:out=", triggers=("grad:out=transposed",)
    ),
    "zero_block": Expect(
        fails=frozenset({("structure", "out 0"), ("numerics", "out 0"), ("numerics", "out 1")}),
        says="NaN where golden is finite: 645 of 645",
        among="zeros",
        triggers=("zeros", "subnormal"),
    ),
    "adjacent_updates": _in_families("numerics", "grad table", "of 200 entries", "alternating"),
    "empty_mask": _in_families("structure", "out", "NaN where golden is finite: 4 of 5", "one_highest", "lowest"),
    "finite_start": _in_families(
        "structure", "out", "NaN where golden is finite: 129 of 645, at [0, 0]", "masked_finite"
    ),
    "first_index": _in_families("numerics", "out", "target 0; 3 of 15 elements", "one_lowest", "lowest", "alternating"),
    "flushed": _in_families("numerics", "out", "target 0", "subnormal"),
    "half_away": _in_families(
        "structure",
        "out",
        "329 of 645 integers differ, the first at [0, 1]: golden 0",
        "half_steps",
        "half_steps_fp8",
    ),
    "large_square": _in_families("structure", "out", "target inf", "near_overflow"),
    "last_index": _in_families(
        "numerics", "out", "target 0; 3 of 15 elements", "one_highest", "highest", "alternating"
    ),
    "long_part": _in_families(
        "numerics", "out", "1 of 5 elements, all in the last of axis 0", "lowest", "highest", "alternating"
    ),
    "negative_infinity": _in_families("structure", "out", "1 of 645 integers differ", "one_negative_inf"),
    "norm_tail": _in_families("numerics", "out", "golden 1, reference 1, target 0", "one_hot", "tail", "masked_finite"),
    "one_pass_variance": _in_families("numerics", "out", "5 of 5 elements", "far_mean", "near_constant"),
    "partial_sums_fp16": _in_families("numerics", "out", "5 of 5 elements", "cancelling"),
    "product_rounding": _in_families("bias", "out", "rounding away from zero", "halfway"),
    "sign_bit": _in_families("numerics", "grad x", "every 3th of cols from 1", "signed_zeros"),
    "wrapping_cast": _in_families(
        "structure",
        "out",
        "golden 127, reference 127, target -19",
        "saturating",
        "near_overflow",
        "outlier_column",
        "half_steps_fp8",
    ),
    "zero_range": _in_families("structure", "out", "645 of 645 integers differ", "constant_rows", "zeros"),
    # What only an observer of every access sees: the numbers are right.
    "out_of_bounds_read": _expect("memory", "x_ptr", "loads element 645 of x_ptr, whose memory ends at 645", among=ODD),
    "out_of_bounds_write": _expect(
        "memory", "y_ptr", "stores element 645 of y_ptr, whose memory ends at 645", among=ODD
    ),
    "read_before_written": _expect("memory", "sums_ptr", "which nobody has written since torch.empty", among=ODD),
    "masked_lane": _expect("memory", "out", "loads without other", among=ODD),
    "pipeline_stages": _expect("compile", "_kernel", "bytes of shared memory, sm_90 has 232448", only="normal;;;;0]"),
    "racing_store": _expect("memory", "out_ptr", "stores element 0 of out_ptr, as program [0, 0, 0] stores", among=ODD),
    # Sums and scans over several programs.
    "atomic_into_empty": Expect(
        fails=frozenset({("memory", "out_ptr")}),
        says="updates element 0 of out_ptr, which nobody has written since torch.empty",
        among="count=129;normal",
        perhaps=_pairs("out", "structure, numerics, autograd, library"),
    ),
    "carry_race": Expect(
        fails=frozenset({("determinism", "out"), ("memory", "carry_ptr")}),
        says="of carry_ptr, as program",
        among=ODD,
    ),
    "empty_scan": Expect(
        fails=frozenset({("memory", "out 1")}),
        says="5 of 5 elements were never written, the first is number 0",
        only="cols=0",
        perhaps=_pairs("out 1", "structure, numerics, determinism"),
    ),
    "rows_added_fp16": _in_families("numerics", "out", "of 5 elements", "cancelling"),
    "scatter_store": _expect("memory", "out_ptr", "of out_ptr, as program", among="rows=5,cols=129;normal"),
    # What shows only in the surroundings in which an op is used, or after many calls.
    "compiled_constant": _at_full("composition", "grad x", "torch.compile (aot_eager)"),
    "inputs_kept": _at_full("stress", "the op", "1 live tensors more after each call"),
    "saved_strides": _at_full("composition", "grad x", "saved tensors on the CPU, with x=transposed"),
    "stale_result": _at_full("stress", "out", "with other values written into the same tensors"),
    # Rows near zero, and long ones.
    "dot_fp16": _expect("numerics", "out", "elements", among="k=2048"),
    "eps_branch": _expect("numerics", "grad x", "of 645 elements", among=ODD),
    "eps_inside": _in_families("numerics", "out", "of 645 elements", "subnormal"),
    "lse_rounded": Expect(
        fails=frozenset({("numerics", "grad x")}),
        says="elements",
        among="extreme_logits",
        perhaps=_pairs("grad x", "bias, slices"),
    ),
    "lse_unshifted": _expect("structure", "out", "target inf", among="extreme_logits"),
    "mean_fp16": _in_families("numerics", "out", "of 5 elements", "far_mean", "near_constant"),
    "norm_overflow": _in_families("numerics", "out", "of 645 elements", "near_overflow"),
    "tail_rescale": _expect("numerics", "out", "of 5 elements", among=";tail;"),
    "tile_means": _expect("numerics", "out", "5 of 5 elements", among=ODD),
    "zero_row_gradient": _in_families("structure", "grad x", "NaN where golden is finite", "zeros", "subnormal"),
    # Quantization.
    "block_size": _expect("structure", "out", "are not the nearest number of the grid", only="block=1024"),
    "fp8_ties": _in_families("structure", "out", "all are ties", "half_steps_fp8", "half_steps"),
    "overlapping_blocks": Expect(
        fails=frozenset({("determinism", "out"), ("memory", "out_ptr")}),
        says="of out_ptr, as program",
        among="groups=5,size=129;normal",
    ),
    "scale_rounded": _expect("structure", "out 0", "are not the nearest number of the grid", among=ODD),
    "zero_point": _expect("numerics", "out", "9 of 45 elements", among=";one_lowest;"),
}
