"""CallgrindStats on a small artefact: `torch.ones(())` and `torch.ones((1,))`, trimmed, with some made-up rows."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch.utils.benchmark as reference

import torchmark
from torchmark.api.callgrind_stats import make_stats
from torchmark.callgrind.profiles import tally
from torchmark.errors import StoreError, UsageError
from torchmark.model.costs import Call, Costs, Counts, Function, Profile
from torchmark.model.environment import Environment

ARTEFACT = Path(__file__).parents[2] / "golden" / "callgrind_artefact.json"


def load(package: Any, name: str, **changes: Any) -> Any:
    data = json.loads(ARTEFACT.read_text())

    def table(key: str) -> Any:
        rows = (re.fullmatch(r"\s*([0-9]+)\s(.+)", line) for line in data[key])
        entries = (package.FunctionCount(int(row[1]), row[2]) for row in rows if row)
        return package.FunctionCounts(tuple(sorted(entries, reverse=True)), key.endswith("inclusive"), _linewidth=160)

    arguments = {
        "task_spec": package.TaskSpec("y = torch.ones(())", "pass", num_threads=2),
        "number_per_run": 1000,
        "built_with_debug_symbols": True,
        "baseline_inclusive_stats": table("baseline_inclusive"),
        "baseline_exclusive_stats": table("baseline_exclusive"),
        "stmt_inclusive_stats": table(f"{name}_inclusive"),
        "stmt_exclusive_stats": table(f"{name}_exclusive"),
        "stmt_callgrind_out": None,
    }
    return package.CallgrindStats(*{**arguments, **changes}.values())


def text(value: Any) -> str:
    return re.sub(r"<.+ object at 0x[0-9a-f]+>", "<object>", repr(value))


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "the whole": lambda a, b: a,
    "the other": lambda a, b: b,
    "exclusive": lambda a, b: a.stats(),
    "inclusive": lambda a, b: a.stats(inclusive=True),
    "difference": lambda a, b: b.delta(a),
    "inclusive difference": lambda a, b: b.delta(a, inclusive=True),
    "standardised": lambda a, b: a.as_standardized(),
    "standardised exclusive": lambda a, b: a.as_standardized().stats(),
    "standardised difference": lambda a, b: b.as_standardized().delta(a.as_standardized()),
    "first five": lambda a, b: b.as_standardized().delta(a.as_standardized())[:5],
    "denoised": lambda a, b: a.as_standardized().stats().denoise(),
    "of one file": lambda a, b: a.as_standardized().stats().filter(lambda fn: "ceval" in fn),
    "by file": lambda a, b: a.as_standardized().stats().transform(lambda fn: fn.split(":")[0]),
    "counts": lambda a, b: a.counts(),
    "denoised counts": lambda a, b: a.counts(denoise=True),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_reference_says_the_same(operation: str) -> None:
    apply = OPERATIONS[operation]
    ours, theirs = (
        apply(load(package, "ones_no_data"), load(package, "ones_with_data")) for package in (torchmark, reference)
    )
    assert text(ours) == text(theirs)


def test_the_artefact_puts_every_rule_to_the_test() -> None:
    one, two = (load(torchmark, name) for name in ("ones_no_data", "ones_with_data"))
    assert one.counts() > one.counts(denoise=True)
    assert any("[" not in entry.function for entry in one.as_standardized().stats())
    assert any(entry.count < 0 for entry in two.delta(one))
    assert len(one.stats()) > 18
    assert all(len(line) <= 160 for line in repr(one.stats()).splitlines())
    assert any(len(entry.function) > 160 for entry in one.stats())
    assert one.delta(two)._data == (one.stats() - two.stats())._data


def test_the_warning_is_about_debug_symbols() -> None:
    assert "Warning" not in repr(load(torchmark, "ones_no_data"))
    ours, theirs = (load(p, "ones_no_data", built_with_debug_symbols=False) for p in (torchmark, reference))
    assert text(ours) == text(theirs)
    assert "REL_WITH_DEB_INFO=1" in repr(ours)


def test_the_net_count_is_without_the_baseline() -> None:
    stats = load(torchmark, "ones_no_data")
    assert stats.counts(net=True) == stats.counts() - stats.baseline_exclusive_stats.sum()
    assert stats.counts(net=True, denoise=True) == (
        stats.counts(denoise=True) - stats.baseline_exclusive_stats.denoise().sum()
    )


def test_counts_of_unequal_numbers_of_runs_are_not_subtracted() -> None:
    one, two = load(torchmark, "ones_no_data"), load(torchmark, "ones_no_data", number_per_run=100)
    with pytest.raises(UsageError, match="Counts of 1000 and of 100 runs"):
        one.delta(two)
    # Where the reference gives numbers that mean nothing.
    load(reference, "ones_no_data").delta(load(reference, "ones_no_data", number_per_run=100))


def function(name: str) -> Function:
    return Function("a.c", name, "/lib/a.so")


def profile(**costs: int) -> Profile:
    exclusive: dict[Function, Costs] = {function(name): (cost,) for name, cost in costs.items()}
    calls = {(function("f"), Function("malloc.c", "malloc", "/lib/c.so")): Call(7, (70,))}
    return Profile(("Ir",), exclusive, exclusive, calls)


HERE = Environment(
    python="/bin/python",
    python_version="3.11",
    torch_version="2.13",
    cpu_capability="AVX2",
    native_capability="AVX512",
    debug_symbols=True,
    valgrind="valgrind-3",
    hash_seed="0",
    variables=(("OMP_X", "1"),),
)
LAYOUTS = (profile(f=100, malloc=10, z=0), profile(f=100, malloc=12), profile(f=100, malloc=11))


def counted(*, compiled: bool = False, **changes: Any) -> torchmark.CallgrindStats:
    values = {"number": 10, "layouts": LAYOUTS, "baseline": profile(f=5), "texts": ("one", "two", "three"), **changes}
    counts = Counts(**values)
    counted = tally(counts, range(len(counts.layouts)))
    return make_stats(torchmark.TaskSpec("x", "pass"), counted, HERE, compiled=compiled)


def test_the_median_layout_stands_for_all() -> None:
    stats = counted()
    assert stats.counts() == 111
    assert stats.layouts == (110, 112, 111)
    assert stats.spread == pytest.approx(2 / 111)
    assert stats.stmt_callgrind_out == "three"
    assert stats.counts(denoise=True) == 100
    assert stats.counts(net=True) == 106
    assert (stats.allocations, stats.tensor_allocations) == (7, 0)
    assert stats.events == (("Ir", 111),)
    assert stats.built_with_debug_symbols
    assert [entry.function for entry in stats.stats()] == ["a.c:f [/lib/a.so]", "a.c:malloc [/lib/a.so]"]


def test_caveats_are_told_in_the_text() -> None:
    text = repr(counted())
    assert "Median of 3 memory layouts, 110 to 112 (1.8%)" in text
    assert "NOTE: The count moves by 1.8% with the layout of memory." in text
    assert "NOTE: torch uses AVX512 on this machine, but AVX2 under Valgrind." in text


def test_one_layout_knows_nothing_of_noise() -> None:
    stats = counted(layouts=LAYOUTS[:1], baseline=None, texts=None)
    assert stats.stats()._noisy is None
    assert stats.spread is None
    assert "Counted in one memory layout" in repr(stats)
    with pytest.raises(UsageError, match="no baseline"):
        stats.counts(net=True)


@pytest.mark.parametrize("layouts", [LAYOUTS, LAYOUTS[:1]])
def test_nothing_is_noise_in_cpp_as_in_the_reference(layouts: tuple[Profile, ...]) -> None:
    stats = counted(compiled=True, layouts=layouts, baseline=None, texts=None)
    stored = torchmark.CallgrindStats.from_dict(json.loads(json.dumps(stats.to_dict())))
    for one in (stats, stats.as_standardized(), stored):
        assert one.counts(denoise=True) == one.counts(denoise=False) == one.stats().denoise().sum() > 100
    twice = stats.delta(counted(compiled=True, layouts=(profile(f=1),), baseline=None, texts=None))
    assert twice.denoise().sum() == twice.sum()


def test_json_and_back() -> None:
    stats = counted()
    again = torchmark.CallgrindStats.from_dict(json.loads(json.dumps(stats.to_dict())))
    assert text(again) == text(stats)
    assert again.to_dict() == stats.to_dict()
    assert again.counts(denoise=True) == 100
    assert again.environment == HERE


def test_statistics_from_elsewhere_can_be_stored_too() -> None:
    stats = load(torchmark, "ones_no_data")
    again = torchmark.CallgrindStats.from_dict(json.loads(json.dumps(stats.to_dict())))
    assert text(again) == text(stats)


def test_pickles_work() -> None:
    stats = counted()
    assert text(pickle.loads(pickle.dumps(stats))) == text(stats)


BROKEN: dict[str, Callable[[dict[str, Any]], Any]] = {
    "schema": lambda d: d.update(schema="something"),
    "schema version": lambda d: d.update(schema_version=99),
    "'number_per_run'": lambda d: d.update(number_per_run="10"),
    "'built_with_debug_symbols'": lambda d: d.update(built_with_debug_symbols=1),
    r"'stmt_exclusive_stats.functions\[\d\]\[0\]' is 'f'; expected a whole number": lambda d: d["stmt_exclusive_stats"][
        "functions"
    ].append(["f", 1]),
    r"functions\[\d\]\[0\]' is True": lambda d: d["stmt_exclusive_stats"]["functions"].append([True, "f"]),
    "noisy' is 'f'; expected a list": lambda d: d["stmt_exclusive_stats"].update(noisy="f"),
    r"noisy\[0\]' is 1; expected a text": lambda d: d["stmt_exclusive_stats"].update(noisy=[1]),
    r"'layouts\[1\]' is 2.5": lambda d: d.update(layouts=[1, 2.5]),
    "'events.Ir' is None": lambda d: d.update(events={"Ir": None}),
    "'environment.torch_version' is missing": lambda d: d["environment"].pop("torch_version"),
    "'environment.variables.OMP_X' is 1": lambda d: d["environment"].update(variables={"OMP_X": 1}),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_what_is_wrong_with_stored_data_is_told(problem: str) -> None:
    data = json.loads(json.dumps(counted().to_dict()))
    BROKEN[problem](data)
    with pytest.raises(StoreError, match=problem):
        torchmark.CallgrindStats.from_dict(data)
