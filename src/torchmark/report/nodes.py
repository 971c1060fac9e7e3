"""The machines of a run in words: which nodes took part, what tells their kinds apart. Nothing where there was one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmark.analysis.places import list_kinds, list_nodes
from torchmark.model.node import Node, NodeKind
from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.report.cells import ELLIPSIS
from torchmark.report.printable import count, printable
from torchmark.report.variants import name_target

# As many names as a person reads; of more, the first few show how they are called.
MOST_NAMES = 8
SOME_NAMES = 2

SHORT_COMMIT = 10
_TRAITS = {
    "cpu": "{}",
    "torch": "torch {}",
    "torch_commit": "torch at {}",
    "torch_build": "build {} of torch",
    "capability": "{}",
    "valgrind": "Valgrind {}",
    "hash_seed": "hash seed {}",
}
_UNKNOWN = {
    "cpu": "an unknown processor",
    "torch": "an unknown torch",
    "torch_commit": "torch at an unknown commit",
    "capability": "an unknown instruction set",
    "valgrind": "an unknown Valgrind",
    "hash_seed": "an unknown hash seed",
}


def list_names(names: Sequence[str]) -> str:
    """All of few names, and the first of many.

    >>> list_names(["a", "b"]), list_names([f"n-{i:03}" for i in range(1, 101)])
    ('a, b', 'n-001, n-002, …')
    """
    shown = names if len(names) <= MOST_NAMES else [*names[:SOME_NAMES], ELLIPSIS]
    return ", ".join(map(printable, shown))


def word_nodes(nodes: Sequence[Node], *, timed: bool) -> str:
    """Which nodes these are, and their processors, with whose they are if they differ; empty where there are none.

    >>> word_nodes([Node("a", "EPYC"), Node("b", "EPYC")], timed=True)
    '2 nodes: a, b; EPYC'
    >>> word_nodes([Node("a", "EPYC"), Node("b", "Xeon"), Node("c", "EPYC")], timed=True)
    '3 nodes: EPYC (a, c); Xeon (b); times of each are kept apart'
    """
    if not nodes:
        return ""
    by_cpu: dict[str | None, list[str]] = {}
    for node in nodes:
        by_cpu.setdefault(node.cpu_model, []).append(node.name)
    names = [node.name for node in nodes]
    if len(by_cpu) == 1:
        cpus = [cpu for cpu in by_cpu if cpu is not None]
        shown = f": {list_names(names)}" if len(names) <= MOST_NAMES else f" ({list_names(names)})"
        return "; ".join([f"{count(len(names), 'node')}{shown}", *cpus])
    ordered = sorted(by_cpu.items(), key=lambda item: -len(item[1]))
    kinds = (f"{_word_trait('cpu', cpu)} ({_number(owners)})" for cpu, owners in ordered)
    return f"{count(len(names), 'node')}: {'; '.join(kinds)}{'; times of each are kept apart' if timed else ''}"


def _number(names: Sequence[str]) -> str:
    """Names, and how many there are where not all are told."""
    return list_names(names) if len(names) <= MOST_NAMES else f"{len(names)}: {list_names(names)}"


def word_kinds(kinds: Sequence[NodeKind]) -> str:
    """What tells the kinds apart that counts come from; empty where there is but one.

    >>> word_kinds([NodeKind((("capability", "AVX2"),), (Node("a"),)), NodeKind((("capability", None),), (Node("b"),))])
    'Counts come from 2 kinds of nodes: AVX2 (a); an unknown instruction set (b); they are kept apart'
    """
    if len(kinds) < 2:
        return ""
    told = [
        f"{', '.join(_word_trait(*trait) for trait in kind.traits)} ({_number([node.name for node in kind.nodes])})"
        for kind in kinds
    ]
    return f"Counts come from {len(kinds)} kinds of nodes: {'; '.join(told)}; they are kept apart"


def _word_trait(what: str, value: str | None) -> str:
    if value is None:
        return _UNKNOWN[what]
    short = value[:SHORT_COMMIT] if what == "torch_commit" else value.removeprefix("valgrind-")
    return _TRAITS[what].format(short)


def tell_nodes(run: Run) -> Iterator[str]:
    """A line on the nodes of a run, and one for each target whose counts are of several kinds; none for one machine."""
    host = run.info.host
    nodes = list_nodes(run.outcomes, host)
    if not nodes:
        return
    yield word_nodes(nodes, timed=Metric.WALL in run.plan.sampling.metrics)
    for target in run.plan.targets:
        outcomes = (outcome for outcome in run.outcomes if outcome.order.target == target)
        if text := word_kinds(list_kinds(outcomes, Metric.COUNT, host)):
            yield f"({name_target(target)}) {text}" if len(run.plan.targets) > 1 else text
