"""What commands say and show of a shard: its own part of a plan, and no other."""

from __future__ import annotations

import dataclasses

import click

from torchmark.analysis.narrow import narrow_run
from torchmark.analysis.sharding import deal, list_own_cases
from torchmark.errors import UsageError
from torchmark.model.case import Case
from torchmark.model.plan import Plan
from torchmark.model.run import Run, RunInfo
from torchmark.model.shard import Shard, parse_shard, read_shard
from torchmark.report.printable import count
from torchmark.store.runs import Store


class ShardNumber(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Which of how many."""

    name = "I/N"

    def convert(self, value: str | Shard, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Parse, or say what was expected."""
        try:
            return value if isinstance(value, Shard) else parse_shard(value)
        except UsageError as error:
            self.fail(str(error), param, ctx)


def keep_to_shard(run: Run, shard: Shard | None) -> Run:
    """A run without the cases of other shards; what is known of all of it stays."""
    if shard is None:
        return run
    return dataclasses.replace(narrow_run(run, cases=list_own_cases(run.plan, shard)), info=run.info)


def find_own_cases(store: Store, info: RunInfo) -> frozenset[Case] | None:
    """The cases of the shard that a stored run is; None for a whole run."""
    shard = read_shard(info)
    return None if shard is None else frozenset(list_own_cases(store.load(info.id).plan, shard))


def say_why_empty(plan: Plan, shard: Shard) -> str:
    """Why there is nothing to do for a shard."""
    filled = max(deal(plan, shard.of).values())
    return (
        f"Shard {shard} is empty: what is compared with each other stays together, and these cases fill "
        f"{count(filled, 'shard')}. There is nothing to do, and nothing is wrong."
    )
