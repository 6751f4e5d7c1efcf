"""The allowance of an element, by hand: two ulps, its inputs' rounding, and FP32's own noise in a narrow type."""

import torch

from opcheck.run.elements import element_errors

ULP = {"float32": 2.0**-23, "bfloat16": 2.0**-7}  # at 1


def errors(dtype, target, golden, reference=None, condition=0.0):
    t, g = (torch.tensor(item, dtype=torch.float64) for item in (target, golden))
    f = g if reference is None else torch.tensor(reference, dtype=torch.float64)
    kept = getattr(torch, dtype)
    return element_errors("out", t.to(kept), f.to(kept), g, torch.full_like(g, condition), 2.0)


def test_two_ulps_are_allowed_and_three_are_not():
    for dtype, step in ULP.items():
        assert errors(dtype, [1.0 + 2 * step], [1.0]).wrong == 0
        assert errors(dtype, [1.0 + 3 * step], [1.0]).wrong == 1


def test_a_wide_element_may_be_off_by_what_its_inputs_rounding_explains():
    step = ULP["float32"]
    assert errors("float32", [1.0 + 8 * step], [1.0], condition=3.0).wrong == 0
    assert errors("float32", [1.0 + 9 * step], [1.0], condition=3.0).wrong == 1


def test_a_wide_element_may_be_off_by_32_times_the_references_error_nearby():
    step = ULP["float32"]
    found = errors("float32", [1.0 + 33 * step, 1.0], [1.0, 1.0], reference=[1.0, 1.0 + step])
    assert (found.wrong, found.on_reference) == (0, 1)
    assert errors("float32", [1.0 + 34 * step, 1.0], [1.0, 1.0], reference=[1.0, 1.0 + step]).wrong == 1


def test_a_narrow_element_far_below_the_others_may_be_off_by_four_fp32_roundings_of_the_largest():
    noise = 2.0**-22
    assert errors("bfloat16", [1.0, noise], [1.0, 0.0]).wrong == 0
    assert errors("bfloat16", [1.0, 1.25 * noise], [1.0, 0.0]).wrong == 1
    assert errors("bfloat16", [1.0, 0.0], [1.0, noise]).wrong == 0
    assert errors("bfloat16", [1.0, 0.0], [1.0, 1.25 * noise]).wrong == 1


def test_a_narrow_element_gets_nothing_for_its_condition_or_the_reference():
    step = ULP["bfloat16"]
    assert errors("bfloat16", [1.0 + 3 * step], [1.0], reference=[1.0 + 2 * step], condition=100.0).wrong == 1
