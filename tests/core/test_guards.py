"""Which device kernels are the op's own, and which launches Triton's hook adds to the recorded ones."""

import pytest

from opcheck.core.guards import Kernel, Launched, counted, launched, own_kernels


@pytest.mark.parametrize(("name", "op"), [
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", ""),
    ("void at::native::(anonymous namespace)::softmax_warp_forward<float>(float*)", "ops::softmax"),
    ("at::cuda::detail::x()", ""),
    ("void at_cuda_detail::cub::DeviceScanKernel<int>(int*)", ""),
    ("Memcpy DtoD (Device -> Device)", ""),
    ("Memset (Device)", "ops::x"),
    ("nvjet_hsh_64x8_64x16_4x1_v_bz_TNN", "aten::mm"),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm>(int)", "aten::addmm"),
    ("void cub::DeviceReduceKernel<float>(float*)", "aten::sum"),
    ("void (anonymous namespace)::elementwise_kernel_with_index<int>(int)", "aten::arange"),
])  # fmt: skip
def test_kernels_of_pytorch_itself(name, op):
    assert own_kernels([Kernel(name=name, op=op)]) == ()


@pytest.mark.parametrize(("name", "op"), [
    ("scale_unbounded(float const*, float*, int, int)", ""),
    ("scale_unbounded(float const*, float*, int, int)", "ops::scale"),
    ("_rms_norm_kernel", "autograd::engine::evaluate_function: _Backward"),
    ("void cutlass::device_kernel<mine::Gemm>(int)", "ops::gemm"),
    ("void cub::DeviceReduceKernel<float>(float*)", "ops::sum"),
    ("void flash::at_last<float>(float*)", "flash_attn::_flash_attn_forward"),
])  # fmt: skip
def test_kernels_of_the_op(name, op):
    kernel = Kernel(name=name, op=op)
    assert own_kernels([kernel, Kernel(name="Memset (Device)", op="")]) == (kernel,)


def test_equal_kernels_are_counted():
    assert counted([("k", "a"), ("l", ""), ("k", "a"), ("k", "")]) == (
        Kernel(name="k", op="a", count=2), Kernel(name="l", op="", count=1), Kernel(name="k", op="", count=1),
    )  # fmt: skip


GRIDS = {("ops.norm.kernel", (4, 1, 1)): 2, ("ops.norm.kernel", (8, 1, 1)): 1}
RECORDED = (
    Launched(kernel="ops.norm.kernel", grid=(4, 1, 1), count=2),
    Launched(kernel="ops.norm.kernel", grid=(8, 1, 1), count=1),
)


@pytest.mark.parametrize("hooked", [{}, {"kernel": 3}, {"kernel_under_another_name": 3}])
def test_what_the_hook_knows_is_recorded_already(hooked):
    assert launched(GRIDS, hooked) == RECORDED


def test_a_launch_that_only_the_hook_sees():
    assert launched(GRIDS, {"kernel": 3, "other": 2}) == (*RECORDED, Launched(kernel="other", grid=(), count=2))
    assert str(launched({}, {"other": 2})[0]) == "other x 2"
    assert str(RECORDED[0]) == "ops.norm.kernel [4, 1, 1] x 2"
