"""Which configuration of an autotuned kernel is launched, and what becomes of one that cannot be built."""

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.errors import OutOfResources

from opcheck.backends.configs import configured, only_config, tuning
from opcheck.backends.interpreter import install

assert install().active


def kernel_that_cannot_be_built(*widths, error=None):
    """Return an autotuned kernel that writes its width to where it is told, and fails for some of its widths."""

    @triton.autotune([triton.Config({"WIDTH": width}) for width in (16, 32, 64)], key=[])
    @triton.jit
    def kernel(out, WIDTH: tl.constexpr):
        tl.store(out, WIDTH)

    plain = kernel.fn.run

    def run(*args, **kwargs):
        if kwargs["WIDTH"] in widths:
            raise error or OutOfResources(294_944 + kwargs["WIDTH"], 232_448, "shared memory")
        return plain(*args, **kwargs)

    kernel.fn.run = run
    return kernel


def launched(kernel):
    out = torch.zeros(1, dtype=torch.int32)
    kernel[(1,)](out)
    return int(out)


@pytest.mark.parametrize(("variant", "width"), [("", 16), ("eps=1.0", 16), ("%config=1", 32), ("%config=5", 64)])
def test_a_case_launches_the_configuration_that_it_names_else_the_first(variant, width):
    with configured(variant):
        assert launched(kernel_that_cannot_be_built()) == width


@pytest.mark.parametrize(
    ("index", "missing", "width"),
    [(0, (16,), 32), (0, (16, 32), 64), (2, (64,), 16), (1, (32, 64), 16), (1, (16,), 32)],
)
def test_the_next_is_launched_where_one_cannot_be_built(index, missing, width):
    kernel = kernel_that_cannot_be_built(*missing)
    with only_config(index):
        assert launched(kernel) == width
    assert len(kernel.configs) == 3


def test_a_failed_static_assert_of_a_configuration_is_one_that_cannot_be_built():
    error = CompileTimeAssertionFailure("", None, "WIDTH is too small")
    with only_config(0):
        assert launched(kernel_that_cannot_be_built(16, error=error)) == 32


def test_where_none_can_be_built_the_one_that_was_wanted_says_why():
    kernel = kernel_that_cannot_be_built(16, 32, 64)
    with only_config(1), pytest.raises(OutOfResources, match=str(294_944 + 32)):
        launched(kernel)
    assert len(kernel.configs) == 3


def test_any_other_error_of_a_configuration_is_the_kernels_own():
    with only_config(0), pytest.raises(ValueError, match="mine"):
        launched(kernel_that_cannot_be_built(16, error=ValueError("mine")))


def test_tuning_leaves_out_what_cannot_be_built_and_runs_the_others():
    kernel = kernel_that_cannot_be_built(32)
    seen, plain = [], kernel.fn.run
    kernel.fn.run = lambda *args, **kwargs: (seen.append(kwargs["WIDTH"]), plain(*args, **kwargs))[1]
    with only_config(2), tuning() as tuned:
        assert launched(kernel) == 64
    assert seen == [16, 32, 64, 64]
    assert len(tuned) == 1
