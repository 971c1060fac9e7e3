from __future__ import annotations

from pathlib import Path

import pytest

from torchmark.errors import UsageError
from torchmark.runner.machine import choose_cores, describe_cores


def with_quota(root: Path, text: str) -> Path:
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text(text)
    return root


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000", [0, 2, 3]),
        ("200000 100000", [0, 2]),
        ("190000 100000", [0]),
        ("50000 100000", [0]),
        ("900000 100000", [0, 2, 3]),
    ],
)
def test_a_share_of_time_is_worth_so_many_whole_cores(tmp_path: Path, quota: str, expected: list[int]) -> None:
    assert choose_cores(allowed=[3, 0, 2], root=with_quota(tmp_path, quota)) == expected


@pytest.mark.parametrize(
    ("wanted", "expected"), [("1", [0]), ("3", [0, 2, 3]), ("2,3", [2, 3]), ("2-3,0", [0, 2, 3]), ("3, 3", [3])]
)
def test_cores_are_chosen_by_number_or_by_name(wanted: str, expected: list[int]) -> None:
    assert choose_cores(wanted, allowed=[0, 2, 3]) == expected


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("0", "0 cores cannot be used"),
        ("4", "there are 3"),
        ("1,2", "Core 1 cannot be used: there are 0,2-3"),
        ("x", "names no cores"),
        ("3-2", "names no cores"),
        ("2-", "names no cores"),
        ("", "names no cores"),
        ("-1", "names no cores"),
        ("²", "names no cores"),
        ("2-3,²", "names no cores"),
        ("2-99999999999", "Core 4 cannot be used"),
    ],
)
def test_cores_that_are_not_there_are_refused(wanted: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_cores(wanted, allowed=[0, 2, 3])


def test_cores_of_this_process_are_found() -> None:
    assert choose_cores()


@pytest.mark.parametrize(("cores", "expected"), [([], ""), ([1], "1"), ([0, 1, 3, 4, 5, 9], "0-1,3-5,9")])
def test_neighbours_are_told_as_a_span(cores: list[int], expected: str) -> None:
    assert describe_cores(cores) == expected
