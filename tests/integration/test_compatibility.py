"""Scripts written for torch.utils.benchmark give the same results when only their import line is changed."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch.utils.benchmark as reference

import torchmark
from tests.mock_engine import MockAcceleratorEngine, MockEngine, measure_implementations

ROOT = Path(__file__).parents[2]

SCRIPT = '''
import pickle
import timeit
import torch
import {package} as benchmark
from {package} import Compare, Language, Measurement, TaskSpec, Timer
from {package}.utils.common import ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from {package}.utils.timer import timer

class Engine:
    """Replaces the engine, as tests of benchmark code do."""
    def __init__(self, stmt, setup, timer, globals):
        self.cost = {{"fast()": 2e-6, "slow()": 9e-6}}[stmt]

    def timeit(self, number):
        return 1e-7 + self.cost * number

class MyTimer(Timer):
    _timer_cls = Engine

results = []
for threads in (1, 4):
    for env in ("master", "branch"):
        for stmt in ("fast()", "slow()"):
            t = MyTimer(stmt, "x = 1", "", timer, None, "calls", None, "none", env, threads, Language.PYTHON)
            m = t.blocked_autorange(min_run_time=0.5)
            print(repr(m).partition("\\n")[2], str(m) == repr(m))
            results.append(pickle.loads(pickle.dumps(m)))
            results.append(t.adaptive_autorange(threshold=0.2, min_run_time=0.1))

compare = benchmark.Compare(results)
compare.print()
compare.trim_significant_figures()
compare.highlight_warnings()
compare.print()
compare.colorize()
print(str(compare))
compare.colorize(rowwise=True)
print(str(compare))

print([m.median for m in Measurement.merge(results)], [m.significant_figures for m in results])
print(results[0].meets_confidence(), results[0].has_warnings, results[0].as_row_name, results[0].title)
m = Measurement(10, [1.0, 2.0, 3.0, 5.0], TaskSpec("x", "y", label="L"))
m.metadata = {{"device": "cpu"}}
print(m.times, m.median, m.mean, m.iqr, m.label, m.num_threads, m.metadata)
print(repr(m).partition("\\n")[2])
print(ordered_unique([3, 1, 3]), select_unit(1.5e-5), unit_to_english("ms"), trim_sigfig(2000.0, 1))
with set_torch_threads(1):
    print(torch.get_num_threads())
print(timer() <= timer(), callable(benchmark.timer))

real = benchmark.Timer(
    stmt="""
        with torch.no_grad():
            y = x + 1
    """,
    setup="x = torch.ones(4)",
    timer=timeit.default_timer,
    label="real",
    sub_label="add",
    description="4",
)
print(real.timeit(5).median > 0, real.blocked_autorange(min_run_time=0.01).number_per_run >= 1)
print(real.timeit(100).number_per_run, real.timeit(100).stmt)
for wrong in (
    lambda: Timer(global_setup="#include <x>"),
    lambda: Compare([1]),
    lambda: unit_to_english("h"),
    lambda: trim_sigfig(1.0, 1.5),
):
    try:
        wrong()
        print("nothing was raised")
    except (AssertionError, KeyError, ValueError) as error:
        kind = next(k for k in (AssertionError, KeyError, ValueError) if isinstance(error, k))
        print(kind.__name__, error)
try:
    Timer(5)
except ValueError:
    print("a number is no statement")
try:
    Timer("missing").timeit(1)
except NameError as error:
    print(error)

import gc
collector = []
Timer("collector.append(gc.isenabled())", "import gc; gc.enable()", globals={{"collector": collector}}).timeit(1)
Timer("collector.append(gc.isenabled())", globals={{"collector": collector, "gc": gc}}).timeit(1)
Timer("pass", "import gc; gc.disable()").timeit(1)
print(collector, gc.isenabled())
torch.set_num_threads(2)
Timer("torch.set_num_threads(1)", num_threads=2).timeit(1)
print(torch.get_num_threads())
try:
    Timer("raise RuntimeError('mine') from StopIteration()").timeit(1)
except RuntimeError as error:
    print(error)
'''


def output_of(package: str, tmp_path: Path) -> str:
    script = tmp_path / f"script_{package.replace('.', '_')}.py"
    script.write_text(SCRIPT.format(package=package))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_prints_the_same_under_either_package(tmp_path: Path) -> None:
    theirs, ours = output_of("torch.utils.benchmark", tmp_path), output_of("torchmark", tmp_path)
    assert ours == theirs
    assert "a number is no statement" in ours


def both(times: list[float], number: int, **fields: Any) -> tuple[Any, Any]:
    theirs = reference.Measurement(number, times, reference.TaskSpec(**fields))
    return theirs, torchmark.Measurement(number, times, torchmark.TaskSpec(**fields))


def random_results(rng: random.Random, *, is_round: bool) -> list[tuple[Any, Any]]:
    """Results with scatter, or round numbers: those are where rounding is decided by the last bit."""
    envs: list[str | None] = rng.choice([[None], ["a", "master"], ["z"]])
    label = rng.choice(["L", None, "a long label for a table"])
    pairs = []
    for _ in range(rng.randint(1, 12)):
        setup = rng.choice(["pass", "", "q=1", "q\nr"])
        stmt = rng.choice(["x", "yy()", "a\nb"])
        scale, noise = 10 ** rng.uniform(-6, -2.5), rng.choice([0.001, 0.05, 0.2, 0.6])
        if is_round:
            scale, noise = rng.choice([1, 2, 2.5, 5]) * 10.0 ** rng.randint(-6, -3), 0.0
        number = rng.choice([1, 10, 123, 1000])
        times = [
            max(scale * number * rng.gauss(1, noise), 1.1e-9 * number) for _ in range(rng.choice([1, 2, 3, 4, 7, 30]))
        ]
        pairs.append(
            both(
                times,
                number,
                stmt=stmt,
                setup=setup,
                label=rng.choice([label, label, "M"]),
                sub_label=(setup + stmt).replace("\n", ""),
                description=rng.choice(["d1", "desc two", "(3,4)"]),
                env=rng.choice(envs),
                num_threads=rng.choice([1, 1, 4, 16]),
            )
        )
    return pairs


def body(measurement: Any) -> str:
    """The text below the object's address, with the reference's English of single samples mended."""
    text = repr(measurement).partition("\n")[2]
    return text.replace(" runs , ", " runs, ").replace("1 measurement, 1 runs,", "1 measurement, 1 run,")


@pytest.mark.parametrize("is_round", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_random_results_look_the_same_under_either_package(seed: int, is_round: bool) -> None:
    pairs = random_results(random.Random(seed), is_round=is_round)
    for theirs, ours in pairs:
        assert body(ours) == body(theirs)
        assert ours.significant_figures == theirs.significant_figures
        assert (ours.median, ours.iqr) == (
            pytest.approx(theirs.median, rel=1e-15),
            pytest.approx(theirs.iqr, rel=1e-12),
        )
    for trim in (False, True):
        for rowwise in (None, False, True):
            for warnings in (False, True):
                tables = []
                for package, results in ((reference, [p[0] for p in pairs]), (torchmark, [p[1] for p in pairs])):
                    comparison: Any = package.Compare(results)
                    if trim:
                        comparison.trim_significant_figures()
                    if rowwise is not None:
                        comparison.colorize(rowwise=rowwise)
                    if warnings:
                        comparison.highlight_warnings()
                    tables.append(str(comparison))
                assert tables[1] == tables[0]


@pytest.mark.parametrize("engine", [MockEngine, MockAcceleratorEngine])
@pytest.mark.parametrize("stmt", ["pass", "cheap_fn()", "expensive_fn()"])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("timeit", {"number": 5000}),
        ("blocked_autorange", {"min_run_time": 1.0}),
        ("blocked_autorange", {"min_run_time": 0.0}),
        ("adaptive_autorange", {"threshold": 0.03, "max_run_time": 2.0}),
        ("adaptive_autorange", {"min_run_time": 0.5}),
    ],
)
def test_either_timer_calls_its_engine_in_the_same_sequence(
    engine: type[MockEngine], stmt: str, method: str, arguments: dict[str, Any]
) -> None:
    calls, raw = [], []
    for package in (reference, torchmark):
        engines: list[MockEngine] = []

        def make(engines: list[MockEngine] = engines, **fields: Any) -> MockEngine:
            engines.append(engine(**fields))
            return engines[-1]

        timer_cls: Any = type("Mocked", (package.Timer,), {"_timer_cls": staticmethod(make)})
        raw.append(getattr(timer_cls(stmt), method)(**arguments).raw_times)
        calls.append(engines[0].calls)
    assert calls[1] == calls[0]
    assert raw[1] == raw[0]


def test_the_mock_comparison_is_the_same_under_either_package() -> None:
    theirs = reference.Compare(measure_implementations(reference.Timer))
    ours = torchmark.Compare(measure_implementations(torchmark.Timer))
    assert str(ours) == str(theirs)
