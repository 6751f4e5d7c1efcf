"""The right words for planted faults, none for noise."""

from collections import Counter

import pytest

from tests.diagnosis.faults import FAULTS, changed, layer_norm, multiplied, noisy, scaled, softmax, summed
from tests.diagnosis.judged import failures

LEAST_RATE = 0.9


def test_the_rate_of_right_diagnoses():
    """The words, written by hand, are among the best one or two for at least nine of ten faults."""
    said = {}
    for fault in FAULTS:
        found = failures(fault.right, fault.target, **fault.options)
        assert fault.tensor in found, f"{fault.name}: the fault is not seen at all, {found}"
        said[fault.name] = found[fault.tensor].looks_like
    wrong = {fault.name: said[fault.name] for fault in FAULTS if fault.words not in said[fault.name]}
    rate = 1 - len(wrong) / len(FAULTS)
    print(f"{len(FAULTS)} faults, {rate:.3f} named rightly, wrong: {wrong}", Counter(item.kind for item in FAULTS))
    assert len(FAULTS) >= 40
    assert rate >= LEAST_RATE, wrong


@pytest.mark.parametrize(("size", "share"), [(1e-4, 1.0), (1e-2, 0.3), (1.0, 1.0)])
@pytest.mark.parametrize("right", [scaled, softmax, layer_norm, multiplied])
def test_noise_has_no_name(right, size, share):
    found = failures(right, changed(right, noisy(size, 1, share=share)))
    assert found["out"].looks_like == ""


def test_noise_on_a_sum_has_no_name():
    found = failures(summed, changed(summed, noisy(1e-2, 0)), reduces=("cols",), sizes={"rows": 64, "cols": 64})
    assert found["out"].looks_like == ""
