"""A part of a run that is carried out by itself, and how a run says among its options that it is one."""

from __future__ import annotations

import dataclasses
import re

from torchmark.errors import UsageError
from torchmark.model.run import RunInfo

# What a run is of, if it is not of all: a shard; or, where not all are put together yet, those that are.
SHARD = "shard"
MERGED = "merged"

_SHARD = re.compile("([0-9]{1,6})/([0-9]{1,6})")


@dataclasses.dataclass(frozen=True, order=True)
class Shard:
    """Which of how many, counted from 1.

    >>> str(Shard(2, 5))
    '2/5'
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclasses.dataclass(frozen=True, order=True)
class ShardPart:
    """A shard, and the run that it was carried out as."""

    shard: Shard
    run_id: str


def parse_shard(text: str) -> Shard:
    """The shard that is meant by such a text as 2/5."""
    match = _SHARD.fullmatch(text)
    if match is None or int(match[2]) == 0:
        raise UsageError(f"{text!r} is no shard: say which of how many, such as 2/5.")
    shard = Shard(int(match[1]), int(match[2]))
    if not 1 <= shard.number <= shard.of:
        raise UsageError(f"There is no shard {shard}: they are numbered from 1/{shard.of} to {shard.of}/{shard.of}.")
    return shard


def read_shard(info: RunInfo) -> Shard | None:
    """The shard that a run is; None for one that is whole, or that shards were put together to."""
    text = name_shard(info)
    return None if text is None else parse_shard(text)


def name_shard(info: RunInfo) -> str | None:
    """The shard as the run itself calls it, whatever that is."""
    return next(iter(dict(info.options).get(SHARD, ())), None)


def read_parts(info: RunInfo) -> tuple[ShardPart, ...]:
    """The shards that are in a run which is not of all; none where it is of all."""
    shard = read_shard(info)
    if shard is not None:
        return (ShardPart(shard, info.id),)
    # Who was gone on with until nothing was missing is whole.
    texts = dict(info.options).get(MERGED, ()) if info.finished is None else ()
    found = [text.split(" ") for text in texts]
    if any(len(words) != 2 for words in found):
        raise UsageError(f"The run {info.id} was put together of what means nothing here: {', '.join(texts):.80}.")
    return tuple(ShardPart(parse_shard(shard), run_id) for shard, run_id in found)


def write_parts(parts: tuple[ShardPart, ...]) -> tuple[str, tuple[str, ...]]:
    """The option that `read_parts` reads."""
    return MERGED, tuple(f"{part.shard} {part.run_id}" for part in parts)
