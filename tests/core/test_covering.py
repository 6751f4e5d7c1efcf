"""Covering arrays: counted by hand on small spaces, and against brute force on drawn ones."""

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from opcheck.core.case import Dims
from opcheck.core.covering import FACTORS, cover, shares, space
from opcheck.core.factors import Point

SHAPES = tuple(Dims(n=size) for size in (5, 1, 33))


def always(point):
    return True


def made(dtypes=("a", "b"), values=("normal", "zeros"), layouts=("",), possible=always, hiding=()):
    options = {
        "dtype": dtypes, "shape": SHAPES, "values": values, "layout": layouts, "variant": ("",), "grads": ("",),
    }  # fmt: skip
    return space(options, possible, hiding=hiding)


def everything(whole):
    for row in product(*whole.options):
        yield Point(**dict(zip(FACTORS.values(), row, strict=True)))


def brute(whole, points):
    """Return the pairs of options by name, without the classes of the module."""
    found = set()
    for point in points:
        for left, right in combinations(FACTORS.values(), 2):
            found.add((left, str(getattr(point, left)), right, str(getattr(point, right))))
    return found


def test_the_possible_pairs_by_hand():
    whole = made()
    # dtype x shape 6, dtype x values 4, shape x values 6, and 2 + 3 + 2 with each of the three factors of one option,
    # and 3 among those.
    assert len(whole.pairs) == 6 + 4 + 6 + 3 * (2 + 3 + 2) + 3


def test_all_pairs_are_covered_by_far_fewer_points_than_the_product():
    whole = made(dtypes=tuple("abcd"), values=tuple("nopqrstu"), layouts=("", "x", "y", "z"))
    points = cover(whole, (), lambda dims: 1.0, budget=1e9, seed="s")
    assert whole.covered(points) == whole.pairs
    assert brute(whole, points) == brute(whole, everything(whole))
    assert len(points) < 4 * 3 * 8 * 4 / 4
    assert len(points) >= 8 * 4, "values x layout alone need as many"


def test_the_same_seed_gives_the_same_points_and_another_does_not():
    whole = made(dtypes=tuple("abcd"), values=tuple("nopqrstu"))
    one, same, other = (cover(whole, (), lambda dims: 1.0, budget=1e9, seed=seed) for seed in ("s", "s", "t"))
    assert one == same != other


def test_what_stands_already_is_not_covered_again():
    whole = made()
    points = cover(whole, (), lambda dims: 1.0, budget=1e9, seed="s")
    assert cover(whole, points, lambda dims: 1.0, budget=1e9, seed="s") == ()


def test_the_budget_is_kept_and_cheap_points_still_fit():
    whole = made(values=tuple("nopqrstu"))
    price = {5: 1.0, 1: 1.0, 33: 50.0}
    points = cover(whole, (), lambda dims: price[dims["n"]], budget=20.0, seed="s")
    assert points
    assert sum(price[point.dims["n"]] for point in points) <= 20.0
    assert all(point.dims["n"] != 33 for point in points)
    assert cover(whole, (), lambda dims: 1.0, budget=-1.0, seed="s") == ()


def test_a_constraint_is_kept_and_its_pairs_are_not_asked_for():
    whole = made(
        values=("normal", "zeros", "ties"), possible=lambda point: (point.dtype, point.values) != ("b", "ties")
    )
    points = cover(whole, (), lambda dims: 1.0, budget=1e9, seed="s")
    assert whole.covered(points) == whole.pairs
    assert all((point.dtype, point.values) != ("b", "ties") for point in points)
    assert shares(whole, points)["dtype x values"].possible == 5


def test_a_hiding_family_covers_its_own_pairs_only():
    whole = made(hiding={"zeros"})
    zero = Point(dtype="b", dims=SHAPES[2], values="zeros")
    assert {name for name, share in shares(whole, [zero]).items() if share.covered} == {
        "dtype x values", "shape x values", "values x layout", "values x variant", "values x grads",
    }  # fmt: skip
    points = cover(whole, (), lambda dims: 1.0, budget=1e9, seed="s")
    ordinary = {(point.dtype, point.dims) for point in points if point.values != "zeros"}
    assert ordinary == set(product(("a", "b"), SHAPES))


def test_a_point_outside_of_the_space_covers_what_it_shares_with_it():
    whole = made()
    outside = Point(dtype="c", dims=SHAPES[1], values="zeros")
    found = shares(whole, [outside])
    assert found["dtype x values"].covered == 0
    assert found["shape x values"].covered == 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=4, max_size=4), st.integers(0, 99))
def test_drawn_spaces_are_covered_in_full(counts, seed):
    dtypes, values, layouts, variants = (
        tuple(f"{name}{at}" for at in range(n)) for name, n in zip("dvlw", counts, strict=True)
    )
    options = {
        "dtype": dtypes, "shape": SHAPES, "values": values, "layout": layouts, "variant": variants, "grads": ("",),
    }  # fmt: skip
    whole = space(options, always)
    points = cover(whole, (), lambda dims: 1.0, budget=1e9, seed=str(seed))
    assert brute(whole, points) == brute(whole, everything(whole))
    assert len(set(points)) == len(points)
