"""What this repository's scans and scatters promise beyond the cases of their audit; expected values by hand."""

import pytest
import torch

from opcheck.backends.interpreter import install

assert install().active

from ops.cumsum import cumsum  # noqa: E402
from ops.gated_scan import gated_scan  # noqa: E402
from ops.gated_scan.kernel import CHUNK  # noqa: E402
from ops.matmul_fp8 import matmul_fp8  # noqa: E402
from ops.moe_permute import moe_permute  # noqa: E402
from ops.quantize_fp8 import quantize_fp8  # noqa: E402
from ops.quantize_int8 import quantize_int8  # noqa: E402
from ops.scatter_add import scatter_add  # noqa: E402


def test_copies_for_experts_that_do_not_exist_come_last():
    tokens = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    ids = torch.tensor([[1, -1], [2, 0], [1, 1]], dtype=torch.int32)
    copies, rows, starts = moe_permute(tokens, ids, 2)
    assert copies.flatten().tolist() == [2.0, 1.0, 3.0, 3.0, 1.0, 2.0]
    assert rows.tolist() == [[1, 4], [5, 0], [2, 3]]
    assert starts.tolist() == [0, 1, 4]
    copies.backward(torch.tensor([[1.0], [2.0], [4.0], [8.0], [16.0], [32.0]]))
    assert tokens.grad.flatten().tolist() == [18.0, 33.0, 12.0]


def test_an_index_that_is_no_row_adds_nothing_and_gets_no_gradient():
    base, src = torch.tensor([[100.0], [200.0]]), torch.tensor([[1.0], [2.0], [4.0], [8.0]], requires_grad=True)
    out = scatter_add(base, torch.tensor([0, -1, 2, 0]), src)
    assert out.flatten().tolist() == [109.0, 200.0]
    assert base.flatten().tolist() == [100.0, 200.0]
    out.backward(torch.tensor([[3.0], [5.0]]))
    assert src.grad.flatten().tolist() == [3.0, 0.0, 0.0, 3.0]


def test_a_row_of_float16_adds_up_in_float32():
    ones = torch.ones(4096, 1, dtype=torch.float16)
    out = scatter_add(torch.zeros(1, 1, dtype=torch.float16), torch.zeros(4096, dtype=torch.int64), ones)
    assert out.item() == 4096.0  # float16 no longer counts by ones above 2,048
    assert cumsum(ones.T)[0, -1].item() == 4096.0


def test_a_state_passes_through_chunks():
    time = 3 * CHUNK + 1
    a, b = torch.full((1, time, 1), 0.5), torch.zeros(1, time, 1)
    b[0, 0] = torch.inf
    assert gated_scan(a, b).isinf().all()
    a, b = torch.ones(1, time, 1, requires_grad=True), torch.ones(1, time, 1, requires_grad=True)
    h = gated_scan(a, b)
    assert h.flatten().tolist() == list(range(1, time + 1))
    h[0, -1].backward()
    assert b.grad.flatten().tolist() == [1.0] * time
    assert a.grad.flatten().tolist() == list(range(time))


def test_quantized_rows_by_hand():
    x = torch.tensor([[127.0, 0.5, 1.5, -2.5, 126.5], [0.0] * 5, [2.0, torch.nan, 1.0, 1.0, 1.0]])
    q, scale = quantize_int8(x)
    assert q.tolist() == [[127, 0, 2, -2, 126], [0] * 5, [0] * 5]
    assert scale.flatten().tolist()[0] == 1.0
    assert 0.0 < scale[1].item() < 1e-12
    assert scale[2].isnan()
    q, scale = quantize_int8(torch.tensor([[-300.0, 127.0, 2.5]]), 127.0)
    assert (q.tolist(), scale.tolist()) == ([[-127, 127, 2]], [[1.0]])
    q, scale = quantize_fp8(torch.tensor([[448.0, 17.0, 19.0, -8.5, 2.0**-10], [torch.inf, 1.0, 0.0, 1.0, 1.0]]))
    assert q[0].tolist() == [448.0, 16.0, 20.0, -8.0, 0.0]
    assert q[1].float().isnan().tolist() == [True, False, False, False, False]
    assert scale.flatten().tolist() == [1.0, torch.inf]


def test_quantized_factors_multiply_as_they_are_given():
    x, weight = torch.tensor([[1.0, 2.0], [-4.0, 8.0]]), torch.tensor([[3.0, 1.0], [0.5, 0.25], [2.0, 2.0]])
    (a, scale_a), (b, scale_b) = quantize_fp8(x), quantize_fp8(weight)
    out = matmul_fp8(a, b.t(), scale_a, scale_b.t(), out_dtype="float32")
    exact = (a.double() * scale_a.double()) @ (b.double() * scale_b.double()).t()
    assert torch.allclose(out.double(), exact, rtol=1e-6)
    assert torch.allclose(out, x @ weight.t(), rtol=0.1)
    ones = torch.ones(1, 1)
    assert matmul_fp8(a, b.t(), ones, ones, "tensorwise").dtype is torch.bfloat16
    for wrong in ((a.float(), b.t(), scale_a, scale_b.t()), (a, b.t(), scale_a.double(), scale_b.t())):
        with pytest.raises(TypeError, match="it should be"):
            matmul_fp8(*wrong)
    for wrong in ((a, b, scale_a, scale_b.t()), (a, b.t(), scale_a, scale_b), (a, b.t(), scale_a, scale_b.t(), "rows")):
        with pytest.raises(ValueError, match="should be"):
            matmul_fp8(*wrong)
    with pytest.raises(ValueError, match="clip is 0"):
        quantize_int8(x, 0.0)
