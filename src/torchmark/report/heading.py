"""What stands above the results of a run: which one it is, how far it came, and where it ran."""

from __future__ import annotations

import time
from collections.abc import Iterator

from torchmark.model.environment import Environment
from torchmark.model.plan import Target
from torchmark.model.run import Host, Run, RunInfo, Source
from torchmark.model.shard import name_shard
from torchmark.report.cells import wrap
from torchmark.report.closing import SHORT_ID
from torchmark.report.nodes import tell_nodes
from torchmark.report.printable import count, printable
from torchmark.report.variants import name_target

SHORT_COMMIT = 10


def describe_run(run: Run, width: int) -> str:
    """A few lines."""
    nodes, host = list(tell_nodes(run)), _word_host(run.info.host)
    texts = [_word_run(run.info), *_word_environments(run), *nodes, f"begun on {host}" if nodes else host]
    texts += [text for text in (word_sources(run.info.sources),) if text]
    first, *others = (printable(text) for text in texts)
    lines = wrap(first, width, 2)
    for text in others:
        lines += ["  " + line for line in wrap(text, width - 2, 2)]
    return "\n".join(lines)


def _word_run(info: RunInfo) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.created))
    name = f"{info.name} ({info.id[:SHORT_ID]})" if info.name else info.id[:SHORT_ID]
    if info.finished is not None:
        state = f"finished {time.strftime('%Y-%m-%d %H:%M', time.localtime(info.finished))}"
    else:
        shard = name_shard(info)
        part = "not finished" if shard is None else f"shard {shard}"
        state = f"{part}: {info.outcomes} of {count(info.orders, 'result')}"
    failed = f", {count(info.failures, 'failure')}" if info.failures else ""
    return f"Run {name}, {when}, {state}{failed}"


def _word_environments(run: Run) -> Iterator[str]:
    """The interpreter and torch of each target, as its outcomes tell."""
    found: dict[Target, list[Environment]] = {target: [] for target in run.plan.targets}
    for outcome in run.outcomes:
        if outcome.environment is not None:
            found.setdefault(outcome.order.target, []).append(outcome.environment)
    for target, environments in found.items():
        if environments:
            where = f"({name_target(target)}) " if len(found) > 1 else ""
            yield where + _word_environment(list(dict.fromkeys(environments)))


def _word_environment(environments: list[Environment]) -> str:
    # A run that was gone on with elsewhere, or after an upgrade, has several.
    texts = [
        f"{what} {' and '.join(dict.fromkeys(versions))}"
        for what, versions in (
            ("torch", (one.torch_version for one in environments)),
            ("Python", (one.python_version for one in environments)),
        )
    ]
    counted = next((one for one in environments if one.valgrind is not None), None)
    native = {one.cpu_capability for one in environments if one.valgrind is None}
    native |= {one.native_capability for one in environments}
    texts += sorted(filter(None, native))
    if counted is not None and counted.valgrind is not None:
        under = f" (where it is {counted.cpu_capability})" if counted.cpu_capability not in (None, *native) else ""
        texts.append(f"Valgrind {counted.valgrind.removeprefix('valgrind-')}{under}")
    return ", ".join(texts)


def _word_host(host: Host) -> str:
    texts = [host.cpu_model] if host.cpu_model else []
    if host.cores_allowed is not None and host.cores_allowed != host.cores_online:
        texts.append(f"{host.cores_allowed} of {host.cores_online or '?'} cores")
    elif host.cores_online is not None:
        texts.append(count(host.cores_online, "core"))
    if host.cpu_quota is not None:
        texts.append(f"a quota of {host.cpu_quota:g}")
    return ", ".join([*texts, host.system])


def word_sources(sources: tuple[Source, ...]) -> str:
    """Where the cases come from."""
    return "; ".join(
        source.suite
        + (f" at {source.commit[:SHORT_COMMIT]}" if source.commit else "")
        + (" with changes" if source.dirty else "")
        for source in sources
    )
