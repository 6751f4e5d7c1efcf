"""A watch tells what changed, where, and whether it was the tensor's own memory."""

import pytest
import torch

from opcheck.run.intact import Watch, saved_into


def one(watch):
    (found,) = watch.changed()
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.uint8])
def test_one_changed_element_is_found(dtype):
    value = torch.zeros(3, 5, dtype=dtype)
    watch = Watch()
    watch.keep("x", value)
    assert watch.changed() == ()
    value[2, 1] = 1
    found = one(watch)
    assert (found.tensor, found.count, found.total, found.index) == ("x", 1, 15, (2, 1))
    assert (found.before, found.after) == (0.0, 1.0)


def test_nan_that_stays_is_no_change_and_the_sign_of_zero_is_one():
    value = torch.tensor([torch.nan, 0.0])
    watch = Watch()
    watch.keep("x", value)
    assert watch.changed() == ()
    value[1] = -0.0
    assert one(watch).index == (1,)


def test_memory_around_a_view_is_watched():
    buffer = torch.zeros(4, 8)
    watch = Watch()
    watch.keep("x", buffer[1:3, 2:6])
    buffer[1, 6] = 1.0
    found = one(watch)
    assert (found.index, found.place) == (None, 4)
    buffer[1, 6] = 0.0
    buffer[0, 7] = 1.0
    assert one(watch).place == -3


def test_of_what_may_be_written_only_the_memory_around_it_counts():
    buffer = torch.zeros(4, 8)
    view = buffer[:, 2:6]
    watch = Watch()
    watch.keep("x", view, writable=True)
    assert watch.untouched() == ("x",)
    view += 1.0
    assert watch.changed() == ()
    assert watch.untouched() == ()
    buffer[3, 7] = 1.0
    assert one(watch).index is None


def test_a_strided_tensor_names_its_own_index():
    value = torch.zeros(5, 3).t()
    watch = Watch()
    watch.keep("x", value)
    value[2, 4] = 1.0
    assert one(watch).index == (2, 4)


def test_what_autograd_saves_is_watched_once_under_its_best_name():
    x = torch.randn(4, requires_grad=True)
    named, saved = Watch(), Watch()
    named.keep("x", x)
    with saved_into(saved):
        y = (x * x).exp()
    assert saved.count == 3  # x twice, and the exponential
    saved.drop(named)
    assert saved.count == 1
    y.detach().zero_()
    assert one(saved).count == 4
    assert named.changed() == ()
