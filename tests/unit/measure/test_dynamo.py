from __future__ import annotations

import sys
from collections import Counter, defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from torchmark.measure.dynamo import (
    ACCOUNT,
    CompilerCounters,
    Watch,
    describe_compilation,
    describe_compiling,
    make_tally,
    read_tally,
)
from torchmark.measure.source import open_source

HERE = SimpleNamespace(filename="model.py", lineno=7)


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the compiler's own account looks like, without a compiler."""
    metrics: list[Any] = []
    account = SimpleNamespace(
        counters=defaultdict(Counter),
        graph_break_reasons=[],
        metrics=metrics,
        get_compilation_metrics=lambda: list(metrics),
        clear_compilation_metrics=metrics.clear,
    )
    monkeypatch.setitem(sys.modules, ACCOUNT, account)
    return account


def test_where_no_compiler_was_loaded_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, ACCOUNT, raising=False)
    assert read_tally() == CompilerCounters()
    assert Watch().find_compiling() is None


def test_counters_are_read_and_not_changed() -> None:
    counters = {"frames": {"total": 3, "ok": 2}, "stats": {"unique_graphs": 2}, "graph_break": {"a": 1, "b": 2}}
    assert make_tally(counters) == CompilerCounters(frames=3, abandoned=1, graphs=2, graph_breaks=3)
    assert make_tally(
        {"inductor": {"fxgraph_cache_hit": 1, "fxgraph_cache_miss": 2}, "aot_autograd": {"total": 4}}
    ) == (CompilerCounters(lowered=7, cache_hits=1, cache_misses=2))
    assert set(counters) == {"frames", "stats", "graph_break"}


def test_what_was_compiled_before_is_not_held_against_a_statement(account: Any) -> None:
    account.counters["frames"]["total"] += 1
    account.metrics.append(SimpleNamespace(co_name="old"))
    account.graph_break_reasons.append(SimpleNamespace(reason="old", user_stack=[]))
    watch = Watch()
    assert watch.find_compiling() is None
    account.counters["frames"]["total"] += 1
    account.metrics.append(SimpleNamespace(co_name="new", recompile_reason=None))
    account.graph_break_reasons.append(SimpleNamespace(reason="print\nmore", user_stack=[HERE]))
    text = watch.find_compiling()
    assert text is not None
    assert "new was compiled for the first time; graph break: print (model.py, line 7)." in text
    assert "old" not in text


def test_a_backward_pass_that_is_compiled_late_is_noticed(account: Any) -> None:
    watch = Watch()
    account.counters["inductor"]["fxgraph_cache_miss"] += 1
    account.metrics.append(SimpleNamespace(co_name=None))
    assert "a backward pass was compiled" in (watch.find_compiling() or "")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5",
            "tensor 'x' size mismatch at index 0. expect",
        ),
        ('0/1: n == 1      # return x + n  # a.py:3\nUser stack trace:\n  File "a.py"', "guard failed: n == 1"),
        ("Unable to find recompilation reasons", "Unable to find recompilation reasons"),
    ],
)
def test_the_guard_that_failed_is_named_with_its_function(reason: str, words: str) -> None:
    source = open_source("pass\npass", "pass")
    record = SimpleNamespace(co_name="f", co_filename=source.name, co_firstlineno=2, recompile_reason=reason)
    text = describe_compilation(record)
    assert text.startswith("f (<setup>, line 2) was compiled again")
    assert words in text
    assert "stack" not in text


def test_an_older_torch_that_gives_no_reason_is_not_quoted_with_one() -> None:
    assert describe_compilation(SimpleNamespace(co_name="f")) == "f was compiled"


def test_many_reasons_are_cut_short_and_equal_ones_told_once() -> None:
    records = [SimpleNamespace(co_name=name, recompile_reason=None) for name in "aabcde"]
    text = describe_compiling(records, [])
    assert text.count("a was compiled") == 1
    assert "c was compiled for the first time (2 more)." in text
    assert describe_compiling([], []).startswith("torch.compile was at work while the statement was measured. ")
