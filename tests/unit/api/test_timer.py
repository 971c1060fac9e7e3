from __future__ import annotations

import functools
import timeit
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.mock_engine import MULTI_LINE, MockAcceleratorTimer, MockEngine, MockTimer
from torchmark import Compare, Language, Measurement, Timer, UsageError
from torchmark.define.groups import GroupedStmts
from torchmark.define.options import GroupedSetup

Method = Callable[[Timer], Measurement]


def blocked(seconds: float) -> Method:
    return lambda timer: timer.blocked_autorange(min_run_time=seconds)


def adaptive(timer: Timer) -> Measurement:
    return timer.adaptive_autorange()


GOLDEN: list[tuple[type[Timer], str, Method, int, int, str, str]] = [
    (MockTimer, "pass", blocked(10), 10_000_000, 125, "7.98 ns", "0.52 ns (7.74 to 8.26)"),
    (MockTimer, "pass", adaptive, 1_000_000, 6, "7.86 ns", "0.71 ns (7.63 to 8.34)"),
    (MockTimer, "cheap_fn()", blocked(10), 10_000, 252, "3.98 us", "0.27 us (3.85 to 4.12)"),
    (MockTimer, "cheap_fn()", adaptive, 1_000, 4, "4.16 us", "0.22 us (4.04 to 4.26)"),
    (MockTimer, "expensive_fn()", blocked(10), 1_000, 501, "19.97 us", "1.35 us (19.31 to 20.65)"),
    (MockTimer, "expensive_fn()", adaptive, 1_000, 4, "20.79 us", "1.09 us (20.20 to 21.29)"),
    (MockAcceleratorTimer, "pass", blocked(10), 100_000_000, 13, "7.92 ns", "0.43 ns (7.75 to 8.17)"),
    (MockAcceleratorTimer, "pass", adaptive, 10_000_000, 4, "7.75 ns", "0.57 ns (7.56 to 8.13)"),
    (MockAcceleratorTimer, "cheap_fn()", blocked(10), 100_000, 25, "4.04 us", "0.30 us (3.90 to 4.19)"),
    (MockAcceleratorTimer, "cheap_fn()", adaptive, 100_000, 4, "4.09 us", "0.38 us (3.90 to 4.28)"),
    (MockAcceleratorTimer, "expensive_fn()", blocked(10), 100_000, 20, "4.98 us", "0.31 us (4.83 to 5.13)"),
    (MockAcceleratorTimer, "expensive_fn()", adaptive, 10_000, 4, "5.01 us", "0.28 us (4.87 to 5.15)"),
    (MockTimer, MULTI_LINE, blocked(0.2), 1_000, 20, "10.06 us", "0.54 us (9.73 to 10.27)"),
]


@pytest.mark.parametrize(("timer_cls", "stmt", "method", "number", "n", "median", "iqr"), GOLDEN)
def test_golden_results_to_the_last_digit_shown(
    timer_cls: type[Timer], stmt: str, method: Method, number: int, n: int, median: str, iqr: str
) -> None:
    m = method(timer_cls(stmt))
    assert (m.number_per_run, len(m.raw_times)) == (number, n)
    assert f"\n  Median: {median}\n  IQR:    {iqr}\n" in repr(m)


def test_golden_statistics_to_the_last_bit() -> None:
    m = MockTimer("pass").blocked_autorange(min_run_time=10)
    assert repr(m.mean) == "8.0013658357956e-09"
    assert repr(m.median) == "7.983151323215967e-09"


@pytest.mark.parametrize(("timer_cls", "stmt", "method", "number", "n", "median", "iqr"), GOLDEN)
def test_the_sequence_of_calls_is_five_empty_blocks_then_powers_of_ten_then_the_measurement(
    timer_cls: type[Timer], stmt: str, method: Method, number: int, n: int, median: str, iqr: str
) -> None:
    timer = timer_cls(stmt)
    method(timer)
    engine = timer._engine
    assert isinstance(engine, MockEngine)
    powers = [10**k for k in range(len(str(number)))]
    assert engine.calls == [0] * 5 + powers + [number] * n


def test_timeit_warms_up_with_a_hundredth_and_times_one_block() -> None:
    for number, warm_up in ((1, 2), (5, 2), (1000, 10)):
        timer = MockTimer("pass")
        m = timer.timeit(number)
        assert timer._engine.calls == [warm_up, number]  # type: ignore[attr-defined]
        assert (m.number_per_run, len(m.raw_times)) == (number, 1)


def test_repeat_keeps_every_sample() -> None:
    timer = MockTimer("pass")
    m = timer.repeat(10, 1)
    assert timer._engine.calls == [0] * 5 + [2] + [1] * 10  # type: ignore[attr-defined]
    assert (m.number_per_run, len(m.raw_times)) == (1, 10)
    assert m.overhead_s is not None


def test_autorange_searches_one_two_five_and_keeps_five_blocks() -> None:
    timer = MockTimer("expensive_fn()")
    seen: list[int] = []
    m = timer.autorange(callback=lambda number, t: seen.append(number))
    # 10,000 runs of 20 us would just do, but the engine's noise makes them a little faster than that.
    search = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000]
    assert seen == search
    assert timer._engine.calls == [0] * 5 + search + [20_000] * 4  # type: ignore[attr-defined]
    assert (m.number_per_run, len(m.raw_times)) == (20_000, 5)


def test_callbacks_see_each_block() -> None:
    for method in ("blocked_autorange", "adaptive_autorange"):
        seen: list[tuple[int, float]] = []
        m = getattr(MockTimer("pass"), method)(callback=lambda number, t, seen=seen: seen.append((number, t)))
        assert seen == [(m.number_per_run, t) for t in m.raw_times]


class SlowSetup:
    """A second of setup before each block, on a clock that a test can read."""

    now = 0.0

    def __init__(self, **_: Any) -> None: ...

    def timeit(self, number: int) -> float:
        SlowSetup.now += 1.0 + 1e-3 * number
        return 1e-3 * number


class SlowSetupTimer(Timer):
    _timer_cls = SlowSetup
    _now = staticmethod(lambda: SlowSetup.now)


def test_max_run_time_counts_the_setup() -> None:
    start = SlowSetup.now
    m = SlowSetupTimer().blocked_autorange(min_run_time=5.0, max_run_time=20.0)
    assert SlowSetup.now - start <= 21.5
    assert len(m.raw_times) >= 1


def test_a_limit_without_end_is_none() -> None:
    m = MockTimer("cheap_fn()").blocked_autorange(min_run_time=1, max_run_time=float("inf"))
    assert sum(m.raw_times) >= 1


def test_at_least_one_block_is_timed_however_little_time_there_is() -> None:
    assert len(SlowSetupTimer().blocked_autorange(max_run_time=0.0).raw_times) == 1


def test_blocks_fit_where_a_limit_is_given() -> None:
    m = MockTimer("cheap_fn()").blocked_autorange(min_run_time=10, max_run_time=1e9)
    assert 2_500 <= m.number_per_run <= 5_000
    assert MockTimer("cheap_fn()").blocked_autorange(min_run_time=10).number_per_run == 10_000


def test_a_setup_can_run_once_for_each_measurement() -> None:
    runs: list[int] = []
    timer = Timer("pass", "runs.append(1)", globals={"runs": runs}, setup_once=True)
    for name, arguments in (("repeat", {"number": 2}), ("blocked_autorange", {"min_run_time": 1e-3}), ("timeit", {})):
        runs.clear()
        getattr(timer, name)(**arguments)
        assert len(runs) == 1


def test_an_engine_that_cannot_share_a_setup_is_told() -> None:
    with pytest.raises(UsageError, match="leave out `setup_once`"):
        MockTimer("pass", setup_once=True)


@pytest.mark.parametrize("name", ["min_run_time", "max_run_time"])
def test_a_time_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` must be a number of seconds"):
        Timer().blocked_autorange(**{name: float("nan")})  # type: ignore[arg-type]


def test_no_run_time_gives_one_run() -> None:
    m = Timer("pass").blocked_autorange(min_run_time=0)
    assert (m.number_per_run, len(m.raw_times)) == (1, 1)


def test_adaptive_stops_at_its_time_limit() -> None:
    m = MockTimer("expensive_fn()").adaptive_autorange(threshold=1e-9, max_run_time=1.0)
    assert 1.0 < sum(m.raw_times) < 1.2


@pytest.mark.parametrize("name", ["timeit", "repeat"])
def test_counts_below_one_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="`number` must be at least 1"):
        getattr(Timer(), name)(number=0)
    with pytest.raises(UsageError, match="`repeat` must be at least 1"):
        Timer().repeat(0, 1)


def test_indented_code_is_normalised() -> None:
    timer = Timer(
        stmt="""
            with torch.no_grad():
                y = x + 1
        """,
        setup="""
            x = torch.ones(1)
            x = x + 1
        """,
    )
    m = timer.timeit(5)
    assert m.stmt == MULTI_LINE
    assert m.setup == "x = torch.ones(1)\nx = x + 1"


def test_only_one_leading_newline_goes() -> None:
    assert Timer("\n\npass").timeit(1).stmt == "\npass"


def test_labels_reach_the_measurement() -> None:
    m = Timer("x", "x = 1", label="L", sub_label="S", description="D", env="E", num_threads=1).timeit(1)
    assert (m.label, m.sub_label, m.description, m.env, m.num_threads) == ("L", "S", "D", "E", 1)


def test_torch_is_there_unless_the_user_has_another() -> None:
    Timer("torch.ones(1)").timeit(1)
    seen: list[str] = []
    Timer("seen.append(torch)", globals={"torch": "mine", "seen": seen}).timeit(1)
    assert set(seen) == {"mine"}


def test_the_users_globals_stay_clean() -> None:
    mine: dict[str, Any] = {}
    Timer("x = 1", globals=mine).timeit(1)
    assert mine == {}


def test_a_callable_is_timed_and_named() -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)

    m = Timer(work).timeit(5)
    assert len(calls) == 7
    assert m.stmt.startswith("test_a_callable_is_timed_and_named.work() at test_timer.py:")


def test_different_callables_have_rows_of_their_own() -> None:
    x, y = [1], [2]
    results = [Timer(f).timeit(1) for f in (lambda: x + x, lambda: y + y)]
    results += [Timer(functools.partial(sum, v)).timeit(1) for v in (x, y)]
    (table,) = Compare(results).to_dict()["tables"]
    assert len(table["results"]) == 4


def test_replicates_of_a_callable_are_merged() -> None:
    def one() -> None: ...

    def two() -> None: ...

    results = [Timer(f).timeit(1) for _ in range(3) for f in (one, two)]
    (table,) = Compare(results).to_dict()["tables"]
    assert [entry["samples"] for entry in table["results"]] == [3, 3]


def test_what_is_neither_text_nor_callable_is_refused() -> None:
    with pytest.raises(ValueError, match="`str` or a callable"):
        Timer(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", [Language.PYTHON, "py", "python"])
def test_python_by_any_name(language: Language | str) -> None:
    assert Timer(language=language).timeit(1).median > 0


@pytest.mark.parametrize("language", [Language.CPP, "cpp", "c++"])
def test_cpp_by_any_name_is_not_compiled_before_it_is_needed(language: Language | str) -> None:
    spec = Timer(" this is no C++ ", language=language)._task_spec
    assert (spec.stmt, spec.setup) == ("this is no C++", "")


def test_cpp_has_no_globals() -> None:
    with pytest.raises(ValueError, match=r"C\+\+ timing does not support globals\."):
        Timer("x;", globals={"x": 1}, language="cpp")


def test_cpp_with_an_engine_of_the_users_is_refused() -> None:
    class Mine(Timer):
        _timer_cls = Mock()

    with pytest.raises(AssertionError, match=r"_timer_cls has already been swapped\."):
        Mine("x;", language="cpp")


def test_a_cpp_statement_is_a_text() -> None:
    with pytest.raises(UsageError, match="`str`"):
        Timer(lambda: None, language="cpp")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Invalid language `fortran`\. The choices are Language.PYTHON or 'python'"):
        Timer(language="fortran")


def test_global_setup_is_refused_for_python() -> None:
    with pytest.raises(ValueError, match=r"global_setup is C\+\+ only, got `#include <x>`\."):
        Timer(global_setup="#include <x>")


def test_timeits_own_engine_fits_the_seam() -> None:
    class Classic(Timer):
        _timer_cls = timeit.Timer

    assert Classic("x + 1", "x = 1").blocked_autorange(min_run_time=0.001).median > 0


def measure_everyway() -> None:
    timer = Timer("pass")
    for m in (
        timer.timeit(10),
        timer.repeat(number=10),
        timer.blocked_autorange(min_run_time=0.001),
        # On a busy machine it would take its ten seconds.
        timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.1),
    ):
        assert m.median > 0
        assert repr(m)
        assert m.significant_figures >= 1


def test_a_default_device_without_data_changes_nothing() -> None:
    with torch.device("meta"):
        measure_everyway()
    torch.set_default_device("meta")
    try:
        measure_everyway()
    finally:
        torch.set_default_device(None)


def test_fake_tensors_change_nothing() -> None:
    with FakeTensorMode():
        measure_everyway()


def test_a_half_precision_default_changes_nothing() -> None:
    torch.set_default_dtype(torch.float16)
    try:
        measure_everyway()
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_default_device_that_is_not_there_changes_nothing() -> None:
    torch.set_default_device("cuda")
    try:
        measure_everyway()
    finally:
        torch.set_default_device(None)


def test_arithmetic_never_goes_through_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a tensor was made")

    for name in ("tensor", "quantile", "as_tensor"):
        monkeypatch.setattr(torch, name, refuse)
    measure_everyway()


def test_the_parts_of_a_group_are_what_a_timer_is_made_of() -> None:
    benchmark = GroupedStmts("y = x * w", setup=GroupedSetup("\n    x = torch.ones(4)\n    w = torch.ones(4)\n"))
    assert benchmark.py_fwd_stmt is not None
    timer = Timer(stmt=benchmark.py_fwd_stmt, setup=benchmark.setup.py_setup)
    assert timer.timeit(1).setup == "x = torch.ones(4)\nw = torch.ones(4)"
