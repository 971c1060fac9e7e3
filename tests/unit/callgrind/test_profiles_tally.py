from __future__ import annotations

from torchmark.callgrind.profiles import find_noisy, tally
from torchmark.model.costs import Costs, Counts, Function, Profile


def profile(**costs: int) -> Profile:
    exclusive: dict[Function, Costs] = {Function("a.c", name): (cost,) for name, cost in costs.items()}
    return Profile(("Ir",), exclusive, exclusive, {})


def test_noisy_is_what_varies_or_is_not_always_there() -> None:
    layouts = [profile(f=10, g=5), profile(f=11, g=5), profile(f=10, g=5, h=1)]
    assert find_noisy(layouts) == {"a.c:f", "a.c:h"}
    assert find_noisy(layouts[:1]) == frozenset()


def test_the_layout_with_the_median_total_stands_for_all() -> None:
    layouts = (profile(f=30), profile(f=10), profile(f=20, g=1))
    counted = tally(Counts(number=10, layouts=layouts, baseline=profile(f=3), texts=("a", "b", "c")), (1, 2, 3))
    assert (counted.totals, counted.total, counted.seeds) == ((30, 10, 21), 21, (1, 2, 3))
    assert (counted.profile, counted.text) == (layouts[2], "c")
    assert (counted.baseline, counted.noisy) == (3, ("a.c:f", "a.c:g"))


def test_one_layout_has_no_noise_to_tell() -> None:
    counted = tally(Counts(number=10, layouts=(profile(f=30),), baseline=None), (0,))
    assert (counted.noisy, counted.baseline, counted.baseline_profile) == (None, None, None)
