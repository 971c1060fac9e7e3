"""What stands above and below the results of a run, the nodes it used, and the list of runs."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence

from torchmark.analysis.results import list_kinds, list_nodes
from torchmark.model.environment import Environment
from torchmark.model.plan import Metric, Node, NodeKind, Plan
from torchmark.model.run import SHARD, CaseSummary, Host, Run, RunEntry, RunInfo, Source
from torchmark.report.text.names import name_case, name_target
from torchmark.report.text.table import TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import DEFAULT_WIDTH, ELLIPSIS, count, group, measure, printable, wrap

# As many names as a person reads; of more, the first few show how they are called.
MOST_NAMES = 8
SOME_NAMES = 2

SHORT_BUILD_COMMIT = 10
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
    return ", ".join(map(printable, names if len(names) <= MOST_NAMES else [*names[:SOME_NAMES], ELLIPSIS]))


def describe_nodes(nodes: Sequence[Node], *, timed: bool) -> str:
    """Which nodes these are, and their processors, with whose they are if they differ; empty where there are none."""
    if not nodes:
        return ""
    by_cpu = group((node.cpu_model, node.name) for node in nodes)
    names = [node.name for node in nodes]
    if len(by_cpu) == 1:
        cpus = [cpu for cpu in by_cpu if cpu is not None]
        shown = f": {list_names(names)}" if len(names) <= MOST_NAMES else f" ({list_names(names)})"
        return "; ".join([f"{count(len(names), 'node')}{shown}", *cpus])
    ordered = sorted(by_cpu.items(), key=lambda item: -len(item[1]))
    kinds = (f"{_describe_trait('cpu', cpu)} ({_number(owners)})" for cpu, owners in ordered)
    return f"{count(len(names), 'node')}: {'; '.join(kinds)}{'; times of each are kept apart' if timed else ''}"


def _number(names: Sequence[str]) -> str:
    """Names, and how many there are where not all are told."""
    return list_names(names) if len(names) <= MOST_NAMES else f"{len(names)}: {list_names(names)}"


def describe_kinds(kinds: Sequence[NodeKind]) -> str:
    """What tells the kinds apart that counts come from; empty where there is but one.

    >>> kinds = [NodeKind((("capability", text),), (Node(name),)) for text, name in (("AVX2", "a"), (None, "b"))]
    >>> describe_kinds(kinds)
    'Counts come from 2 kinds of nodes: AVX2 (a); an unknown instruction set (b); they are kept apart'
    """
    if len(kinds) < 2:
        return ""
    told = [
        f"{', '.join(_describe_trait(*trait) for trait in kind.traits)} ({_number([node.name for node in kind.nodes])})"
        for kind in kinds
    ]
    return f"Counts come from {len(kinds)} kinds of nodes: {'; '.join(told)}; they are kept apart"


def _describe_trait(what: str, value: str | None) -> str:
    if value is None:
        return _UNKNOWN[what]
    short = value[:SHORT_BUILD_COMMIT] if what == "torch_commit" else value.removeprefix("valgrind-")
    return _TRAITS[what].format(short)


def render_nodes(run: Run) -> Iterator[str]:
    """A line on the nodes of a run, and one for each target whose counts are of several kinds; none for one machine."""
    host = run.info.host
    nodes = list_nodes(run.outcomes, host)
    if not nodes:
        return
    yield describe_nodes(nodes, timed=Metric.WALL in run.plan.sampling.metrics)
    for target in run.plan.targets:
        outcomes = (outcome for outcome in run.outcomes if outcome.order.target == target)
        if text := describe_kinds(list_kinds(outcomes, Metric.COUNT, host)):
            yield f"({name_target(target)}) {text}" if len(run.plan.targets) > 1 else text


LAST_RUN = "@"
# Of the thirty-two digits of an identity, so many are told: enough to mean one run.
SHORT_ID = 12


def render_footer(
    summaries: Sequence[CaseSummary], plan: Plan, width: int, run: RunInfo | None = None, store: str = ""
) -> list[str]:
    """A sentence that adds up, and a command to go on with."""
    failed = sum(bool(summary.failures) for summary in summaries)
    missing = sum(bool(summary.missing) and not summary.failures for summary in summaries)
    measured = len(summaries) - failed - missing
    noun = "case" if len(plan.targets) == 1 else "result"
    if not summaries:
        return ["Nothing was measured."]
    all_of = f"All of {count(measured, noun)}" if measured > 1 else f"1 {noun}"
    some = all_of if measured == len(summaries) else f"{measured} of {count(len(summaries), noun)}"
    parts = [f"{some} measured"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{missing} not measured yet"] if missing else []
    shard = None if run is None else _name_shard(run)
    part = "" if shard is None else f"Shard {printable(shard)}: "
    where = f" --store {shlex.quote(store)}" if store else ""
    return wrap(f"{part}{', '.join(parts)}.", width) + _advise(summaries, run, width, where)


def _name_shard(info: RunInfo) -> str | None:
    """The shard as the run itself calls it, whatever that is."""
    return next(iter(dict(info.options).get(SHARD, ())), None)


def name_run(run: RunInfo | None) -> str:
    return LAST_RUN if run is None else shlex.quote(run.name or run.id[:SHORT_ID])


def _advise(summaries: Sequence[CaseSummary], run: RunInfo | None, width: int, where: str) -> list[str]:
    """The most urgent thing first; commands are on lines of their own, to be copied."""
    steps = []
    if any(summary.missing for summary in summaries):
        which = "" if run is None else f" --name {name_run(run)}"
        steps.append(("Go on with", f"torchmark run --resume{which}{where}"))
    if any(summary.failures for summary in summaries):
        steps.append(("See why with", f"torchmark show {name_run(run)} --failures{where}"))
    if run is not None and _name_shard(run) is not None:
        steps.append(("Put all shards together with", "torchmark merge STORE... -o STORE"))
    counted = [summary.case for summary in summaries if summary.count]
    if not steps and counted:
        shortest = shlex.quote(min(map(name_case, counted), key=len))
        steps.append(
            ("See where instructions go with", f"torchmark show {name_run(run)} --functions {shortest}{where}")
        )
    if not steps and summaries:
        steps.append(("See this again with", f"torchmark show {name_run(run)}{where}"))
    lines: list[str] = []
    for text, command in steps:
        line, alone = f"{text}:  {command}", f"  {command}"
        if measure(line) <= width:
            lines.append(line)
        elif measure(alone) <= width:
            lines += [f"{text}:", alone]
        else:
            lines += wrap(line, width, 2)
    return lines


SHORT_COMMIT = 10


def describe_run(run: Run, width: int) -> str:
    nodes, host = list(render_nodes(run)), _describe_host(run.info.host)
    texts = [_describe_run(run.info), *_describe_environments(run), *nodes, f"begun on {host}" if nodes else host]
    texts += [format_sources(run.info.sources)] if run.info.sources else []
    first, *others = map(printable, texts)
    return "\n".join([*wrap(first, width, 2), *(line for text in others for line in wrap(f"  {text}", width, 4))])


def _describe_run(info: RunInfo) -> str:
    name = f"{info.name} ({info.id[:SHORT_ID]})" if info.name else info.id[:SHORT_ID]
    shard = _name_shard(info)
    part = "not finished" if shard is None else f"shard {shard}"
    state = f"{part}: {info.outcomes} of {count(info.orders, 'result')}"
    if info.finished is not None:
        state = f"finished {format_moment(info.finished)}"
    failed = f", {count(info.failures, 'failure')}" if info.failures else ""
    return f"Run {name}, {format_moment(info.created)}, {state}{failed}"


def format_moment(moment: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
    except (OverflowError, ValueError, OSError):  # no clock has ever shown that
        return "?"


def _describe_environments(run: Run) -> Iterator[str]:
    """The interpreter and torch of each target, as its outcomes tell."""
    found = group((outcome.order.target, outcome.environment) for outcome in run.outcomes)
    targets = list(dict.fromkeys([*run.plan.targets, *found]))
    for target in targets:
        if environments := [one for one in found.get(target, []) if one is not None]:
            where = f"({name_target(target)}) " if len(targets) > 1 else ""
            yield where + _describe_environment(environments)


def _describe_environment(environments: list[Environment]) -> str:
    # A run that was gone on with elsewhere, or after an upgrade, has several.
    torch = dict.fromkeys(one.torch_version for one in environments)
    python = dict.fromkeys(one.python_version for one in environments)
    texts = [f"torch {' and '.join(torch)}", f"Python {' and '.join(python)}"]
    counted = next((one for one in environments if one.valgrind is not None), None)
    native = {one.cpu_capability for one in environments if one.valgrind is None}
    native |= {one.native_capability for one in environments}
    texts += sorted(filter(None, native))
    if counted is not None and counted.valgrind is not None:
        under = f" (where it is {counted.cpu_capability})" if counted.cpu_capability not in (None, *native) else ""
        texts.append(f"Valgrind {counted.valgrind.removeprefix('valgrind-')}{under}")
    return ", ".join(texts)


def _describe_host(host: Host) -> str:
    texts = [host.cpu_model] if host.cpu_model else []
    if host.cores_allowed is not None and host.cores_allowed != host.cores_online:
        texts.append(f"{host.cores_allowed} of {host.cores_online or '?'} cores")
    elif host.cores_online is not None:
        texts.append(count(host.cores_online, "core"))
    if host.cpu_quota is not None:
        texts.append(f"a quota of {host.cpu_quota:g}")
    return ", ".join([*texts, host.system])


def format_sources(sources: tuple[Source, ...]) -> str:
    return "; ".join(
        source.suite
        + (f" at {source.commit[:SHORT_COMMIT]}" if source.commit else "")
        + (" with changes" if source.dirty else "")
        for source in sources
    )


# The shortest beginning of an id that is shown, and what names and versions are not cut below.
SHORTEST_ID = 8
SHORTEST_TEXT = 6

_NUMBERS = {"cases", "results", "failed"}


def describe_state(entry: RunEntry) -> str:
    """Whether a run is complete, was stopped or is under way, in one word; of a part of a run, which part it is."""
    if entry.writer is not None:
        return "running"
    if entry.info.finished is not None:
        return "complete"
    shard = _name_shard(entry.info)
    return "stopped" if shard is None else f"shard {printable(shard)}"


def render_runs(entries: Sequence[RunEntry], width: int = DEFAULT_WIDTH) -> str:
    """A row for each run. Where there is little room, the number of cases gives way, then versions and names are cut.

    Names last: they are what runs are asked for by. The beginning of its id tells a run from all others.
    """
    ids = [entry.info.id for entry in entries]
    lengths = range(SHORTEST_ID, max(map(len, ids), default=0))
    unique = (n for n in lengths if len({one[:n] for one in ids}) == len(ids))
    length = next(unique, max(SHORTEST_ID, lengths.stop))
    rows = [TextRow(_fill(entry, length)) for entry in entries]
    columns = [
        TextColumn(head, left=head not in _NUMBERS, least=SHORTEST_TEXT if head in ("torch", "name") else None)
        for head in _fill(entries[0], length)
    ]
    return "\n".join(TextTable(columns, rows, width, gives_way=("cases", "torch", "name")).lines())


def _fill(entry: RunEntry, id_length: int) -> dict[str, str]:
    """All columns in their order. Where several targets have names, these stand for their versions of torch."""
    info, names = entry.info, [name for name in entry.targets if name]
    return {
        "run": info.id[:id_length],
        "name": printable(info.name),
        "when": format_moment(info.created),
        "cases": str(entry.cases),
        "results": f"{info.outcomes}/{info.orders}",
        "failed": str(info.failures),
        "torch": printable(", ".join(names if len(names) > 1 else entry.torch_versions)),
        "state": describe_state(entry),
    }
