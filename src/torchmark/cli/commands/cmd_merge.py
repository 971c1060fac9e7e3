"""`torchmark merge`: the runs of several stores in a new one, shards of one run together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from torchmark.analysis.estimate import deal
from torchmark.api.resume import format_resume
from torchmark.cli.output import echo
from torchmark.errors import ExitCode
from torchmark.model.run import RunInfo, Shard
from torchmark.report.text.run_summary import SHORT_ID, format_sources
from torchmark.report.text.terminal import count, printable
from torchmark.store.merge import Merged, merge
from torchmark.store.runs import open_store

# Shards of one run begin together. Further apart they may be of two that have one name.
MOST_APART_S = 24 * 3600.0
# How many shards are named one by one.
FEW = 8


@click.command("merge")
@click.argument("stores", metavar="STORE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="STORE", type=click.Path(path_type=Path), help="The new store to write."
)
@click.option("--force", is_flag=True, help="Replace a store of that name.")
def command(stores: tuple[Path, ...], output: Path, force: bool) -> int:
    """Put the runs of several stores into a new one.

    Shards that 'torchmark run --shard' has measured of one run become that run, as if one machine had measured all of
    it. Other runs are copied. The stores that are read stay as they are. If shards are missing the exit code is 1, and
    what is there is written: merge it again with the others.

    \b
    torchmark merge shards/*/shard.db -o all.db
    """
    merged = merge(stores, output, force=force)
    united = [one for one in merged if one.parts]
    copied = len(merged) - len(united)
    echo(f"{output}: {count(len(merged), 'run')}" + (f", {copied} of them as before" if copied else ""))
    for one in united:
        echo(f"  {_describe(one)}")
    incomplete = [one for one in united if one.info.outcomes < one.info.orders]
    notes = [note for one in united for note in _note(one)]
    notes += [_describe_missing(one, output) for one in incomplete]
    for note in notes:
        echo(f"Note: {printable(note)}", err=True)
    return ExitCode.FAILED if incomplete else 0


def _describe(one: Merged) -> str:
    info = one.info
    failed = f", {count(info.failures, 'failure')}" if info.failures else ""
    shards = _list_shards(sorted({part.shard for part in one.parts}))
    results = f"{info.outcomes} of {count(info.orders, 'result')}{failed}"
    return printable(f"{_name(info)}: {results}, of {shards}")


def _name(info: RunInfo) -> str:
    return f"{info.name} ({info.id[:SHORT_ID]})"


def _list_shards(shards: Sequence[Shard]) -> str:
    """Shards one by one, or of many how many there are."""
    if len(shards) == 1:
        return f"shard {shards[0]}"
    if len(shards) > FEW:
        return f"{len(shards)} shards ({shards[0]} to {shards[-1]})"
    return f"shards {', '.join(map(str, shards[:-1]))} and {shards[-1]}"


def _note(one: Merged) -> Iterator[str]:
    name, sources = _name(one.info), one.sources
    if one.repeated:
        differing = f"the counts of {one.differing} differed" if one.differing else "no counts differed"
        yield f"{name}: {count(one.repeated, 'order')} had been carried out more than once; {differing}."
    origins = dict.fromkeys(format_sources(info.sources) for info in sources)
    if len(origins) > 1:
        yield f"{name}: its shards come from other sources: {' | '.join(origins)}."
    elif any(source.dirty for info in sources for source in info.sources):
        yield f"{name}: its sources had changes that are in no commit: {next(iter(origins))}."
    for what, values in (
        ("processors", [info.host.cpu_model or "an unknown one" for info in sources]),
        ("versions of torchmark", [info.torchmark for info in sources]),
        *one.mixtures,
    ):
        if len(set(values)) > 1:
            yield f"{name}: its results were measured with different {what}: {', '.join(dict.fromkeys(values))}."
    began = [info.created for info in sources]
    if max(began) - min(began) > MOST_APART_S:
        yield f"{name}: its shards were begun more than a day apart. Are they of one run?"


def _describe_missing(one: Merged, output: Path) -> str:
    info = one.info
    missing = f"{info.orders - info.outcomes} of {count(info.orders, 'result')}"
    text = f"{_name(info)}: {_find_guilty(one, output)}{missing} are not there. Merge again when they are"
    if len(one.parts) == 1:
        return f"{text}."
    with open_store(output, read_only=True) as store:
        targets = store.load(info.id, select=lambda _: False).plan.targets
    return f"{text}, or go on with: {format_resume(info, targets, output)}"


def _find_guilty(one: Merged, output: Path) -> str:
    """The shards that are not there, and those that were stopped; nothing where cases were dealt in several ways."""
    there = {part.shard for part in one.parts}
    if len({shard.of for shard in there}) > 1:
        return ""
    of = next(iter(there)).of
    with open_store(output, read_only=True) as store:
        run = store.load(one.info.id)
    dealt, done = deal(run.plan, of), {outcome.order for outcome in run.outcomes}
    short = sorted({Shard(dealt[order.case], of) for order in run.plan.orders if order not in done})
    absent, stopped = ([shard for shard in short if (shard in there) is known] for known in (False, True))
    texts = [f"{_list_shards(absent)} {'is' if len(absent) == 1 else 'are'} missing"] if absent else []
    texts += [f"{_list_shards(stopped)} {'was' if len(stopped) == 1 else 'were'} stopped"] if stopped else []
    return f"{', '.join(texts)}: "
