"""What is wrong in torch.utils.benchmark is right here: each claim holds for torchmark and fails for the reference.

A claim that stops failing for the reference is a test that shows nothing any more, and fails as well.
"""

from __future__ import annotations

import importlib
import json
import re
import time
import timeit
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import torch
import torch.utils.benchmark as reference
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

import torchmark

Claim = Callable[[Any], None]


class Case(NamedTuple):
    """A claim, and how the reference fails it: what is raised, and a word of its message."""

    holds: Claim
    fault: type[BaseException]
    word: str


CASES: list[Case] = []


def claim(fault: type[BaseException], word: str = "") -> Callable[[Claim], Claim]:
    def register(function: Claim) -> Claim:
        CASES.append(Case(function, fault, word))
        return function

    return register


def fixed_timer(benchmark: Any, seconds_per_run: float) -> Any:
    """A Timer of either kind whose every run takes the same time, or what a sequence gives."""

    class Engine:
        def __init__(self, **_: Any) -> None: ...

        def timeit(self, number: int) -> float:
            return seconds_per_run * number

    return type("FixedTimer", (benchmark.Timer,), {"_timer_cls": Engine})


def measured(benchmark: Any, times: list[float], stmt: str = "x", **labels: Any) -> Any:
    return benchmark.Measurement(1, times, benchmark.TaskSpec(stmt, "pass", **labels))


# --- Measurement ------------------------------------------------------------------------------------------


@claim(AssertionError)
def an_env_that_was_not_given_is_called_unspecified(benchmark: Any) -> None:
    assert measured(benchmark, [1.0]).env == "Unspecified env"


@claim(AssertionError)
def times_below_a_nanosecond_are_shown_as_such(benchmark: Any) -> None:
    assert "0.30 ns" in repr(measured(benchmark, [3e-10]))


@claim(ZeroDivisionError)
def a_time_of_zero_can_be_shown(benchmark: Any) -> None:
    assert "0.00" in repr(measured(benchmark, [0.0, 0.0]))


@claim(ValueError, "NaN")
def a_measurement_without_samples_can_be_shown(benchmark: Any) -> None:
    assert "0 measurements" in repr(measured(benchmark, []))


@claim(pytest.fail.Exception, "DID NOT RAISE")
def the_median_of_nothing_is_not_minus_one(benchmark: Any) -> None:
    with pytest.raises(ValueError, match="without samples"):
        _ = measured(benchmark, []).median


@claim(AssertionError)
def units_exist_for_all_times(benchmark: Any) -> None:
    assert benchmark.select_unit(1e-10)[0] == "ns"
    assert benchmark.select_unit(0.0)[0] == "ns"


@claim(OverflowError)
def zero_has_significant_figures(benchmark: Any) -> None:
    assert benchmark.trim_sigfig(0.0, 3) == 0.0


@claim(AssertionError)
def trimming_is_done_in_double_precision(benchmark: Any) -> None:
    assert benchmark.trim_sigfig(3.14159, 2) == 3.1
    assert benchmark.trim_sigfig(123456789.0, 9) == 123456789.0


@claim(AssertionError)
def a_single_sample_is_described_in_good_english(benchmark: Any) -> None:
    assert "1 measurement, 5 runs, 1 thread" in repr(benchmark.Timer("pass").timeit(5))


@claim(AttributeError, "from_dict")
def a_measurement_goes_through_json(benchmark: Any) -> None:
    m = measured(benchmark, [0.1, 0.2])
    assert benchmark.Measurement.from_dict(json.loads(json.dumps(m.to_dict()))) == m


@claim(AttributeError, "median_interval")
def the_median_has_a_confidence_interval(benchmark: Any) -> None:
    interval = measured(benchmark, [float(i) for i in range(9)]).median_interval()
    assert (interval.low, interval.high) == (1.0, 7.0)


@claim(AttributeError, "std")
def spread_and_extremes_are_at_hand(benchmark: Any) -> None:
    m = measured(benchmark, [1.0, 2.0, 3.0])
    assert (m.std, m.min, m.max, m.quantile(0.75)) == (1.0, 1.0, 3.0, 2.5)


@claim(AttributeError, "caveats")
def drift_is_noticed(benchmark: Any) -> None:
    caveats = measured(benchmark, [1 + i / 20 for i in range(20)]).caveats
    assert "drift" in {caveat.kind for caveat in caveats}


@claim(AttributeError, "caveats")
def two_modes_are_noticed(benchmark: Any) -> None:
    caveats = measured(benchmark, [1.0, 1.9] * 15).caveats
    assert "two_modes" in {caveat.kind for caveat in caveats}


@claim(AttributeError, "outliers")
def outliers_are_reported(benchmark: Any) -> None:
    assert measured(benchmark, [1.0, 1.1, 1.2, 1.1, 9.0]).outliers == [9.0]


@claim(AssertionError)
def attributes_that_do_not_exist_are_not_swallowed(benchmark: Any) -> None:
    assert "__getattr__" not in vars(benchmark.Measurement)


# --- Compare ----------------------------------------------------------------------------------------------


@claim(TypeError, "NoneType")
def results_without_description_can_be_compared(benchmark: Any) -> None:
    assert "1.0" in str(benchmark.Compare([measured(benchmark, [1.0])]))


@claim(TypeError, "NoneType")
def results_with_and_without_env_can_be_compared(benchmark: Any) -> None:
    results = [measured(benchmark, [1.0], env=env, description="d") for env in ("branch", None)]
    assert "(branch)" in str(benchmark.Compare(results))


@claim(AssertionError)
def different_statements_do_not_overwrite_each_other(benchmark: Any) -> None:
    results = [
        measured(benchmark, [1.0], "f()", sub_label="s", description="d"),
        measured(benchmark, [2.0], "g()", sub_label="s", description="d"),
    ]
    table = str(benchmark.Compare(results))
    assert "1.0" in table
    assert "2.0" in table


@claim(AssertionError)
def different_setups_do_not_overwrite_each_other(benchmark: Any) -> None:
    results = [
        benchmark.Measurement(1, [t], benchmark.TaskSpec("f(x)", f"x = {t}", description="d")) for t in (1.0, 2.0)
    ]
    table = str(benchmark.Compare(results))
    assert re.search(r"x = 1\.0.*\b1\.0\b", table)
    assert re.search(r"x = 2\.0.*\b2\.0\b", table)


@claim(AttributeError, "to_markdown")
def tables_can_be_exported(benchmark: Any) -> None:
    comparison = benchmark.Compare([measured(benchmark, [1.0], description="d")])
    assert "| 1.0 |" in comparison.to_markdown()
    assert "median_s" in comparison.to_csv()
    assert json.dumps(comparison.to_dict())
    assert "<table" in comparison._repr_html_()


@claim(AssertionError)
def colours_stay_out_of_files(benchmark: Any) -> None:
    from contextlib import redirect_stdout
    from io import StringIO

    comparison = benchmark.Compare([measured(benchmark, [1.0], description="d")])
    comparison.colorize()
    with redirect_stdout(StringIO()) as out:
        comparison.print()
    assert "\033" not in out.getvalue()


# --- Timer ------------------------------------------------------------------------------------------------


@claim(RuntimeError, "meta tensors")
def a_meta_default_device_does_not_matter(benchmark: Any) -> None:
    with torch.device("meta"):
        m = benchmark.Timer("pass").blocked_autorange(min_run_time=0.001)
        assert m.median > 0


@claim(DataDependentOutputException)
def fake_tensors_do_not_matter(benchmark: Any) -> None:
    with FakeTensorMode():
        assert benchmark.Timer("pass").timeit(10).median > 0
        assert benchmark.select_unit(1e-6) == ("us", 1e-6)


@claim(ValueError, "NaN")
def a_half_precision_default_does_not_matter(benchmark: Any) -> None:
    torch.set_default_dtype(torch.float16)
    try:
        assert benchmark.select_unit(1e-8) == ("ns", 1e-9)
    finally:
        torch.set_default_dtype(torch.float32)


@claim(AssertionError)
def whether_there_is_an_accelerator_is_asked_once(benchmark: Any) -> None:
    with patch.object(torch.accelerator, "is_available", return_value=False) as is_available:
        benchmark.Timer("pass").timeit(10)
    assert is_available.call_count <= 1


@claim(TypeError, "unexpected keyword argument 'setup_once'")
def a_setup_can_run_once(benchmark: Any) -> None:
    runs: list[int] = []
    task = benchmark.Timer("pass", "runs.append(1)", globals={"runs": runs}, setup_once=True)
    assert len(task.blocked_autorange(min_run_time=0.001).raw_times) >= 1
    assert len(runs) == 1


@claim(TypeError, "unexpected keyword argument 'max_run_time'")
def blocked_autorange_has_an_upper_limit(benchmark: Any) -> None:
    clock = [0.0]

    class Engine:
        def __init__(self, **_: Any) -> None: ...

        def timeit(self, number: int) -> float:
            clock[0] += 10.0
            return 1e-6 * number

    timer_cls = type("SlowTimer", (benchmark.Timer,), {"_timer_cls": Engine, "_now": staticmethod(lambda: clock[0])})
    timer_cls().blocked_autorange(min_run_time=1.0, max_run_time=100.0)
    assert clock[0] <= 120.0


@claim(TypeError, "unexpected keyword argument 'max_run_time'")
def a_block_need_not_be_ten_times_too_long(benchmark: Any) -> None:
    # A thousandth of a second takes 1112 runs of 0.9 us; the next power of ten is nine times that.
    task = fixed_timer(benchmark, 0.9e-6)()
    assert task.blocked_autorange(min_run_time=1.0).number_per_run == 10_000
    m = task.blocked_autorange(min_run_time=1.0, max_run_time=100.0)
    assert 1112 <= m.number_per_run <= 1500


@claim(NotImplementedError)
def every_sample_can_be_kept(benchmark: Any) -> None:
    assert len(benchmark.Timer("pass").repeat(10, 1).raw_times) == 10


@claim(NotImplementedError)
def autorange_works(benchmark: Any) -> None:
    assert len(fixed_timer(benchmark, 0.3)().autorange().raw_times) == 5


@claim(AssertionError)
def adaptive_autorange_does_not_start_its_statistics_anew_after_each_block(benchmark: Any) -> None:
    made: list[int] = []
    original = benchmark.Measurement.__post_init__

    def counted(self: Any) -> None:
        made.append(1)
        original(self)

    benchmark.Measurement.__post_init__ = counted
    try:
        m = fixed_timer(benchmark, 1e-3)().adaptive_autorange(threshold=0.0, max_run_time=5.0)
    finally:
        benchmark.Measurement.__post_init__ = original
    assert len(m.raw_times) > 10
    assert len(made) == 1


@claim(AssertionError)
def the_documentation_tells_the_overhead_that_the_code_demands(benchmark: Any) -> None:
    assert "0.01 %" in benchmark.Timer.blocked_autorange.__doc__


@claim(AssertionError)
def the_documentation_of_adaptive_autorange_speaks_of_the_median(benchmark: Any) -> None:
    text = benchmark.Timer.adaptive_autorange.__doc__
    assert "of the median" in text
    assert "mean" not in text


@claim(ValueError, "only a `str` stmt")
def a_callable_can_be_timed(benchmark: Any) -> None:
    calls: list[int] = []
    benchmark.Timer(lambda: calls.append(1)).timeit(10)
    assert len(calls) == 12


@claim(NotImplementedError)
def the_overhead_of_short_blocks_is_noticed(benchmark: Any) -> None:
    caveats = benchmark.Timer("pass").repeat(10, 1).caveats
    assert "high_overhead" in {caveat.kind for caveat in caveats}


@claim(AssertionError)
def indented_lines_of_a_string_stay_as_they_are(benchmark: Any) -> None:
    seen: list[str] = []
    benchmark.Timer('seen.append("""a\nb""")', globals={"seen": seen}).timeit(1)
    assert set(seen) == {"a\nb"}


@claim(AssertionError)
def nothing_leaks_out_of_the_package(benchmark: Any) -> None:
    assert not {"Number", "math", "torch"} & set(dir(benchmark))


@claim(AssertionError)
def the_thread_count_is_left_alone_where_it_is_right(benchmark: Any) -> None:
    now = torch.get_num_threads()
    with patch.object(torch, "set_num_threads") as set_num_threads, benchmark.set_torch_threads(now):
        pass
    assert set_num_threads.call_count == 0


def function_counts(benchmark: Any, *data: tuple[int, str]) -> Any:
    return benchmark.FunctionCounts(tuple(benchmark.FunctionCount(*entry) for entry in data), False)


@claim(TypeError, "cannot unpack")
def an_entry_of_a_table_of_functions_can_be_taken_out(benchmark: Any) -> None:
    entry = function_counts(benchmark, (5, "f"), (3, "g"))[0]
    repr(entry)
    assert entry.function == "f"


@claim(AssertionError)
def look_ups_of_current_pythons_are_known_for_noise(benchmark: Any) -> None:
    counts = function_counts(benchmark, (30, "Objects/dictobject.c:unicodekeys_lookup_unicode"), (10, "f"))
    assert counts.denoise().sum() == 10


@claim(pytest.fail.Exception, "DID NOT RAISE")
def counts_of_unequal_numbers_of_runs_are_not_subtracted(benchmark: Any) -> None:
    def stats(number: int) -> Any:
        table = function_counts(benchmark, (number, "f"))
        return benchmark.CallgrindStats(
            task_spec=benchmark.TaskSpec("x", "pass"),
            number_per_run=number,
            built_with_debug_symbols=True,
            baseline_inclusive_stats=table,
            baseline_exclusive_stats=table,
            stmt_inclusive_stats=table,
            stmt_exclusive_stats=table,
            stmt_callgrind_out=None,
        )

    with pytest.raises(ValueError, match="same number"):
        stats(100).delta(stats(1000))


@claim(ValueError, "Unsupported type")
def lists_and_none_and_tensors_can_be_copied_for_counting(benchmark: Any) -> None:
    for value in ([1, 2], None, {"a": (torch.ones(2),)}):
        benchmark.CopyIfCallgrind(value)


@claim(AssertionError)
def the_types_that_can_be_copied_are_told_by_name(benchmark: Any) -> None:
    with pytest.raises(ValueError, match="Unsupported type") as caught:
        benchmark.CopyIfCallgrind(object())
    assert "<class" not in str(caught.value).partition("\n")[2]


@claim(AssertionError)
def folders_of_pythons_own_modules_are_normalised(benchmark: Any) -> None:
    table = function_counts(benchmark, (1, "/tmp/Python-3.11.7/./Modules/gcmodule.c:collect [/usr/lib/libpython.so]"))
    stats = benchmark.CallgrindStats(
        task_spec=benchmark.TaskSpec("x", "pass"),
        number_per_run=1,
        built_with_debug_symbols=True,
        baseline_inclusive_stats=table,
        baseline_exclusive_stats=table,
        stmt_inclusive_stats=table,
        stmt_exclusive_stats=table,
        stmt_callgrind_out=None,
    )
    assert next(iter(stats.as_standardized().stats())).function == "Modules/gcmodule.c:collect"


# --- Fuzzers ----------------------------------------------------------------------------------------------


@claim(AssertionError, "not normalized")
def probabilities_that_add_up_are_accepted(benchmark: Any) -> None:
    benchmark.FuzzedParameter("n", distribution={1: 0.5, 2: 0.5})


@claim(pytest.fail.Exception, "DID NOT RAISE")
def probabilities_that_do_not_add_up_are_refused(benchmark: Any) -> None:
    with pytest.raises(AssertionError, match="not normalized"):
        benchmark.FuzzedParameter("n", distribution={1: 0.5, 2: 0.4})


@claim(AssertionError)
def taking_inputs_leaves_random_numbers_of_torch_alone(benchmark: Any) -> None:
    before = torch.get_rng_state()
    try:
        next(benchmark.Fuzzer([], [benchmark.FuzzedTensor("x", (2,))], seed=0).take(1))
        assert torch.equal(torch.get_rng_state(), before)
    finally:
        torch.set_rng_state(before)


@claim(TypeError, "'>' not supported")
def constraints_get_parameters_by_name(benchmark: Any) -> None:
    numbers = [benchmark.FuzzedParameter("n", 1, 4, "uniform")]
    with torch.random.fork_rng():
        for _, _, params in benchmark.Fuzzer(numbers, [], constraints=[lambda n: n > 2], seed=0).take(9):
            assert params["n"] > 2


@claim(pytest.fail.Exception, "DID NOT RAISE")
def an_argument_that_does_nothing_is_refused(benchmark: Any) -> None:
    with pytest.raises(ValueError, match="roll_parameter"):
        benchmark.FuzzedTensor("x", (2,), roll_parameter="n")


@claim(AssertionError)
def complex_numbers_have_two_parts(benchmark: Any) -> None:
    assert benchmark.utils.fuzzer.dtype_size(torch.complex64) == 8


@claim(RuntimeError, "out of bounds")
def tensors_of_bool_can_be_fuzzed(benchmark: Any) -> None:
    with torch.random.fork_rng():
        next(benchmark.Fuzzer([], [benchmark.FuzzedTensor("x", (2,), dtype=torch.bool)], seed=0).take(1))


@claim(AssertionError)
def both_operands_have_steps_of_their_own(benchmark: Any) -> None:
    binary = importlib.import_module(f"{benchmark.__name__}.op_fuzzers.binary")
    with patch.object(benchmark.FuzzedParameter, "_check_distribution", lambda _, given: given, create=True):
        _, y = binary.BinaryOpFuzzer(seed=0)._tensors
    assert y._steps == ("y_step_0", "y_step_1", "y_step_2")


def make_sparse(benchmark: Any, called: str, **names: str) -> torch.Tensor:
    """Half of ten by ten."""
    tensors = importlib.import_module(f"{benchmark.__name__}.utils.sparse_fuzzer")
    parameters = [
        benchmark.FuzzedParameter(called, 0.5, 0.5, "uniform"),
        benchmark.FuzzedParameter("coalesced", 1, 1, "uniform"),
    ]
    with torch.random.fork_rng():
        item = next(benchmark.Fuzzer(parameters, [tensors.FuzzedSparseTensor("x", (10, 10), **names)], seed=0).take(1))
    tensor: torch.Tensor = item[0]["x"]
    return tensor


@claim(AssertionError)
def a_sparse_tensor_has_the_density_that_was_asked_for(benchmark: Any) -> None:
    assert make_sparse(benchmark, "density")._nnz() == 50


@claim(KeyError, "density")
def a_density_has_the_name_that_it_was_given(benchmark: Any) -> None:
    assert make_sparse(benchmark, "share", density="share")._nnz() == 50


# --- C++ --------------------------------------------------------------------------------------------------


@claim(re.error, "bad escape")
def backslashes_in_cpp_are_left_alone(benchmark: Any) -> None:
    # The same text as in test_cpp.py, which has it compiled along with others.
    setup = "auto x = torch::ones({4, 4}); auto y = torch::ones({4, 4});"
    benchmark.Timer(r'TORCH_CHECK(std::string("\d\n").size() == 2);', setup, language="cpp").timeit(1)


NAMES = [case.holds.__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_here(case: Case) -> None:
    case.holds(torchmark)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_not_in_the_reference(case: Case) -> None:
    with pytest.raises(case.fault, match=re.escape(case.word) if case.word else None):
        case.holds(reference)


def test_the_clock_of_a_timer_on_a_cpu_is_not_wrapped() -> None:
    """The reference asks for an accelerator at each read; a Timer here reads the bare clock."""
    read: list[float] = []
    task = torchmark.Timer("read.append(1)", globals={"read": read}, timer=timeit.default_timer)
    assert task._engine._clock is time.perf_counter  # type: ignore[attr-defined]
    assert torchmark.Timer()._engine._clock is time.perf_counter  # type: ignore[attr-defined]
