"""torch.library.opcheck compares with allclose, for which a NaN differs from itself."""

from dataclasses import replace

import pytest

from opcheck.checks.library import check
from opcheck.checks.protocol import example


@pytest.mark.parametrize(("values", "applies"), [("normal", True), ("one_nan", False), ("masked", False)])
def test_registration_is_tested_with_ordinary_values(values, applies):
    subject = replace(example(), representative=True, registered=True)
    assert (check.applies(replace(subject, case=replace(subject.case, values=values))) == "") is applies
