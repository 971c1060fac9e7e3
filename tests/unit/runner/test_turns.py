from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from torchmark.runner.turns import Turns


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Turns, Turns]]:
    one, two = Turns(tmp_path), Turns(tmp_path)
    yield one, two
    one.close()
    two.close()


def test_many_may_share(pair: tuple[Turns, Turns]) -> None:
    one, two = pair
    assert one.share()
    assert two.share()
    assert one.share()


def test_who_times_is_alone(pair: tuple[Turns, Turns]) -> None:
    one, two = pair
    assert one.claim()
    assert not two.share()
    assert not two.claim()
    one.leave()
    assert two.share()


def test_who_wants_to_time_keeps_others_from_beginning_more(pair: tuple[Turns, Turns]) -> None:
    one, two = pair
    assert one.share()
    assert not two.claim()
    assert not one.share()
    one.leave()
    assert two.claim()
    assert not one.share()
    two.leave()
    assert one.share()


def test_two_who_want_to_time_do_so_one_after_the_other(pair: tuple[Turns, Turns]) -> None:
    one, two = pair
    assert one.claim()
    assert not two.claim()
    one.leave()
    assert two.claim()
    assert not one.claim()


def test_whoever_is_gone_keeps_nobody(pair: tuple[Turns, Turns]) -> None:
    one, two = pair
    assert one.claim()
    one.close()
    assert two.claim()


def test_where_files_cannot_be_locked_nobody_is_kept_from_anything(tmp_path: Path) -> None:
    alone = Turns(tmp_path / "nowhere")
    assert alone.claim()
    assert alone.share()
    alone.leave()
    alone.close()
