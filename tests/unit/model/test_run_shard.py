from __future__ import annotations

import dataclasses

import pytest

from tests.stored_runs import BEGAN, INFO
from torchmark.errors import UsageError
from torchmark.model.run import MERGED, SHARD, Shard, ShardPart, parse_shard, read_parts, read_shard, write_parts


@pytest.mark.parametrize(
    ("text", "shard"), [("1/1", Shard(1, 1)), ("2/5", Shard(2, 5)), ("5/5", Shard(5, 5)), ("02/05", Shard(2, 5))]
)
def test_a_shard_is_one_of_so_many(text: str, shard: Shard) -> None:
    assert parse_shard(text) == shard
    assert parse_shard(str(shard)) == shard


@pytest.mark.parametrize(
    "text", ["", "1", "1/", "/2", "a/b", "1/2/3", "-1/2", "1.0/2", " 1/2", "1/0", "0/0", "²/3", "1/٣"]
)
def test_what_is_no_shard_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=r"no shard: say which of how many, such as 2/5"):
        parse_shard(text)


@pytest.mark.parametrize("text", ["0/5", "6/5"])
def test_a_shard_that_there_is_not_is_told(text: str) -> None:
    with pytest.raises(UsageError, match=rf"no shard {text}: they are numbered from 1/5 to 5/5"):
        parse_shard(text)


def test_a_run_knows_which_part_it_is() -> None:
    shard = dataclasses.replace(INFO, options=((SHARD, ("2/5",)),))
    assert read_shard(shard) == Shard(2, 5)
    assert read_parts(shard) == (ShardPart(Shard(2, 5), INFO.id),)
    assert read_shard(INFO) is None
    assert read_parts(INFO) == ()


def test_what_was_put_together_is_of_parts_until_it_is_finished() -> None:
    parts = (ShardPart(Shard(1, 3), "a" * 32), ShardPart(Shard(3, 3), "b" * 32))
    info = dataclasses.replace(INFO, options=(write_parts(parts),))
    assert read_parts(info) == parts
    assert read_parts(dataclasses.replace(info, finished=BEGAN)) == ()
    with pytest.raises(UsageError, match="means nothing here"):
        read_parts(dataclasses.replace(INFO, options=((MERGED, ("1/3",)),)))
