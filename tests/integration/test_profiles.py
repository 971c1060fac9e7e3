"""Our parser beside Valgrind's own `callgrind_annotate`, on profiles that were just written."""

from __future__ import annotations

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest

from torchmark.callgrind.profiles import read_profile
from torchmark.model.costs import Profile
from torchmark.model.job import CountJob, Place
from torchmark.runner.spec import visible_path
from torchmark.runner.worker import Worker, count

HERE = Place(os.getcwd(), tuple(visible_path()))

STATEMENTS = {
    "multiply": ("y = x * x", "x = torch.ones(4)"),
    "linear": ("layer(x)", "layer = torch.nn.Linear(4, 4); x = torch.ones(4, 4)"),
    "backward": ("(w * w).sum().backward()", "w = torch.ones(4, requires_grad=True)"),
    "recursion": ("f(9)", "def f(n):\n  return n and sorted([n], key=lambda m: f(m - 1))"),
    "exceptions": ("try: int('x')\nexcept ValueError: pass", "pass"),
}


def annotate(path: Path, inclusive: bool) -> collections.Counter[str]:
    """What callgrind_annotate prints, by file and function; it does not tell equal names in several binaries apart."""
    done = subprocess.run(
        [
            "callgrind_annotate",
            "--threshold=100",
            "--show-percs=no",
            "--auto=no",
            "--show=Ir",
            f"--inclusive={'yes' if inclusive else 'no'}",
            str(path),
        ],
        capture_output=True,
        text=True,
        cwd="/",
        check=True,
    )
    table = done.stdout.partition("file:function")[2]
    rows = re.findall(r"^\s*([0-9,]+)\s+(.+?:.+?)(?: \[(?:[^][]*/[^][]*|\?\?\?)\])?$", table, re.MULTILINE)
    assert rows
    return collections.Counter({name: int(cost.replace(",", "")) for cost, name in rows})


def ours(profile: Profile, inclusive: bool) -> collections.Counter[str]:
    costs: collections.Counter[str] = collections.Counter()
    for function, cost in (profile.inclusive if inclusive else profile.exclusive).items():
        costs[f"{function.file}:{function.name}"] += cost[0]
    return costs


def expect_agreement(path: Path) -> None:
    profile = read_profile(path)
    # A call that has not returned yet is written as zero calls, and callgrind_annotate takes its cost for the caller's
    # own. It gets a copy in which these are calls like others, for it does not show how many there were.
    copy = path.with_name("for-annotate.out")
    copy.write_text(path.read_text().replace("calls=0 ", "calls=1 "))
    for inclusive in (False, True):
        mine, theirs = ours(profile, inclusive), annotate(copy, inclusive)
        assert +mine == +theirs
        assert len(+mine) > 20


def test_a_kept_text_has_no_calls_that_have_not_returned(counting_worker: Worker, tmp_path: Path) -> None:
    """callgrind_annotate adds the cost of such a call, which Callgrind writes as `calls=0`, to its caller itself."""
    counts = count(counting_worker, CountJob("y = x * x", "x = torch.ones(4)", HERE, layouts=(0,)), keep_texts=True)
    path = tmp_path / "callgrind.out"
    text = counts.texts[0]  # type: ignore[union-attr, index]
    path.write_text(text)
    totals = int(re.findall(r"^totals: (\d+)", text, re.MULTILINE)[0])
    assert "calls=0 " not in text
    assert ours(read_profile(path), inclusive=False).total() == totals
    assert annotate(path, inclusive=False).total() == totals


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_function_costs_what_valgrind_says(counting_worker: Worker, tmp_path: Path, name: str) -> None:
    stmt, setup = STATEMENTS[name]
    counts = count(counting_worker, CountJob(stmt, setup, HERE, layouts=(0,)), keep_texts=True)
    path = tmp_path / "callgrind.out"
    path.write_text(counts.texts[0])  # type: ignore[union-attr, index]
    expect_agreement(path)


PROGRAM = """
import sys
def f(n): return n and f(n - 1) + len(sorted(range(n)))
for _ in range(30): f(20)
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--dump-every-bb=2000000", "--combine-dumps=yes"],
        ["--cache-sim=yes", "--branch-sim=yes"],
        ["--dump-instr=yes", "--collect-jumps=yes"],
        ["--compress-strings=no", "--compress-pos=no"],
        ["--separate-recs=3"],
    ],
    ids=" ".join,
)
def test_other_ways_of_writing_are_read_as_well(tmp_path: Path, options: list[str]) -> None:
    path = tmp_path / "callgrind.out"
    subprocess.run(
        [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={path}",
            *options,
            "/usr/bin/python3",
            "-S",
            "-c",
            PROGRAM,
        ],
        check=True,
        capture_output=True,
    )
    if "--combine-dumps=yes" in options:
        assert path.read_text().count("\npart: ") > 2
    expect_agreement(path)
