"""Kernels from a profile's events, and launches from Triton's hook, without a GPU."""

from types import SimpleNamespace

import triton
from torch.autograd import DeviceType

from opcheck.backends.cuda.witness import hooked, kernels_of
from opcheck.core.guards import Kernel


def event(name, *below, device=DeviceType.CPU, marked=False):
    kernels = [SimpleNamespace(name=item) for item in below]
    return SimpleNamespace(name=name, device_type=device, kernels=kernels, is_user_annotation=marked)


def kernel(name):
    return event(name, device=DeviceType.CUDA)


def test_each_kernel_has_the_innermost_operator_that_launched_it():
    events = [
        event("ops::norm", "_norm"),
        event("aten::zeros"),
        event("aten::fill_", "at::native::fill"),
        *(kernel("_norm"), kernel("at::native::fill"), kernel("_norm"), kernel("from ctypes")),
        event("a range", device=DeviceType.CUDA, marked=True),
    ]
    assert kernels_of(events) == (
        Kernel(name="_norm", op="ops::norm"),
        Kernel(name="at::native::fill", op="aten::fill_"),
        Kernel(name="_norm", op=""),
        Kernel(name="from ctypes", op=""),
    )


def test_a_profile_without_kernels():
    assert kernels_of([event("aten::zeros")]) == kernels_of([]) == ()


def test_the_hook_counts_and_goes():
    chain = triton.knobs.runtime.launch_enter_hook
    before = list(chain.calls)
    with hooked() as names:
        for name in ("_norm", "_norm", "_sum"):
            chain(SimpleNamespace(get=lambda name=name: {"name": name}))
    assert names == {"_norm": 2, "_sum": 1}
    assert chain.calls == before
