"""The oracles of `ops::attention` by hand: what a query that sees no key gives, and packed sequences one by one."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
import torch

# Not as a module of its package, which imports Triton: interpreted or not is settled for good by the first import.
_FILE = Path(__file__).resolve().parents[1] / "ops" / "attention" / "reference.py"
_SPEC = importlib.util.spec_from_file_location("attention_reference", _FILE)
oracles = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(oracles)
golden, reference = oracles.golden, oracles.reference

BOTH = pytest.mark.parametrize("attend", [golden, reference])


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


@BOTH
def test_the_last_query_sees_all_keys_and_the_ones_before_the_first_key_see_none(attend):
    q, k, v = (draw(1, 3, 16, seed=0), draw(1, 1, 16, seed=1), draw(1, 1, 16, seed=2))
    for x in (q, k, v):
        x.requires_grad_()
    out, lse = attend(q, k, v, causal=True)
    assert (out[0, :2] == 0).all()
    torch.testing.assert_close(out[0, 2], v[0, 0])
    assert lse[0, :2].tolist() == [-math.inf, -math.inf]
    torch.testing.assert_close(lse[0, 2], q[0, 2] @ k[0, 0] / 4)
    grad_q, grad_k, grad_v = torch.autograd.grad([out, lse], [q, k, v], [torch.ones_like(out), torch.ones_like(lse)])
    assert (grad_q[0, :2] == 0).all()
    torch.testing.assert_close(grad_q[0, 2], k[0, 0] / 4)
    torch.testing.assert_close(grad_k[0, 0], q[0, 2] / 4)
    assert (grad_v == 1).all()


@BOTH
def test_no_keys_give_zeros_and_zero_gradients(attend):
    q, k = draw(2, 3, 16).requires_grad_(), draw(2, 0, 16).requires_grad_()
    out, lse = attend(q, k, k)
    assert (out == 0).all()
    assert (lse == -math.inf).all()
    assert (torch.autograd.grad(out.sum(), q)[0] == 0).all()


@BOTH
def test_two_equal_keys_share_the_weight_and_the_cap_bounds_the_logits(attend):
    """A logit of 1600 is capped at 2 * tanh(800) = 2; the weights stay 1/2 each, and lse is 2 + log 2."""
    q, k = torch.full((1, 1, 16), 20.0), torch.full((1, 2, 16), 20.0)
    v = torch.stack((torch.zeros(16), torch.ones(16)))[None]
    out, lse = attend(q, k, v, softcap=2.0)
    torch.testing.assert_close(out, torch.full((1, 1, 16), 0.5))
    assert lse.item() == pytest.approx(2.0 + math.log(2.0), rel=1e-6)


@BOTH
def test_query_heads_in_a_row_share_a_key_head(attend):
    q, k, v = draw(4, 3, 16), draw(2, 5, 16, seed=1), draw(2, 5, 16, seed=2)
    out, _ = attend(q, k, v)
    for head in range(4):
        alone, _ = attend(q[head : head + 1], k[head // 2 : head // 2 + 1], v[head // 2 : head // 2 + 1])
        torch.testing.assert_close(out[head : head + 1], alone)


@pytest.mark.parametrize(("packed", "attend"), [(oracles.golden_varlen, golden), (oracles.reference_varlen, reference)])
def test_packed_sequences_are_those_alone(packed, attend):
    """Sequences of 0, 1, 3 and 2 queries with 2, 0, 4 and 1 keys."""
    q, k, v = draw(6, 2, 16), draw(7, 1, 16, seed=1), draw(7, 1, 16, seed=2)
    cu_seqlens_q, cu_seqlens_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 0, 1, 4, 6], [0, 2, 2, 6, 7]))
    out, lse = packed(q, k, v, cu_seqlens_q, cu_seqlens_k, True)
    assert (out[0] == 0).all()
    assert (lse[0] == -math.inf).all()
    third = [x.transpose(0, 1) for x in (q[1:4], k[2:6], v[2:6])]
    torch.testing.assert_close(out[1:4].transpose(0, 1), attend(*third, causal=True)[0])
    assert (out[4] == 0).all(), "the first of two queries with one key sees none"
    torch.testing.assert_close(out[5], v[6].expand(2, 16))
