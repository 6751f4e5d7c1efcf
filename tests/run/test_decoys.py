"""The wrong answers that a careless kernel could give, nearest first."""

import math

import pytest
import torch

from opcheck.run.decoys import nearest_decoy
from opcheck.run.roles import Run


def of(*values):
    return torch.tensor(values, dtype=torch.float64)


def run(**fields):
    return Run(**{"outputs": {}, "gradients": {}, "inputs": {}, **fields})


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("out", {"outputs": {"out": of(1.0, 2.0)}, "inputs": {"x": of(1.0, 5.0)}}, ("x", 3.0)),
        ("out", {"outputs": {"out": of(1.0, 2.0)}, "inputs": {"x": of(1.0, 2.0)}}, ("x", 0.0)),  # the identity
        ("out", {"outputs": {"out": of(1.0, 2.0)}, "inputs": {"x": of(1.0)}}, ("", math.inf)),  # no such shape
        ("out 0", {"outputs": {"out 0": of(1.0), "out 1": of(4.0)}, "inputs": {"x": of(9.0)}}, ("out 1", 3.0)),
        ("grad x", {"gradients": {"grad x": of(1.0), "grad y": of(3.0)}}, ("grad y", 2.0)),
        # The terms of a sum have one gradient: golden itself has it in both places.
        ("grad x", {"gradients": {"grad x": of(1.0), "grad y": of(1.0)}}, ("", math.inf)),
        ("grad x", {"gradients": {"grad x": of(1.0), "grad y": of(1.0), "grad z": of(2.0)}}, ("grad z", 1.0)),
        ("grad x", {"gradients": {"grad x": of(1.0), "grad y": None}}, ("", math.inf)),
        ("out", {"outputs": {"out": of()}, "inputs": {"x": of()}}, ("", math.inf)),
    ],
)
def test_the_nearest_wrong_answer(name, fields, expected):
    assert nearest_decoy(name, run(**fields)) == expected
