"""How often changes are found, and how often none is called one: `python -m benchmarks.detection`.

Two copies of one environment are compared: the same statement on both sides, or one side slowed down by a known number
of assignments. torchmark compares them in turns; the reference's Timer measures one side and then the other, each in
a process of its own, and two rules that people use say whether they differ: by more than 5 %, or by Mann-Whitney.
Trials of all kinds come in a random order, so that they meet the same machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scipy.stats import mannwhitneyu  # type: ignore[import-untyped]

from benchmarks.context import describe
from torchmark.analysis.verdict.sequential import summarise_trials
from torchmark.api.selftest import SETUP, choose_slowings, make_part, run_trials
from torchmark.compare.experiment import LAYOUTS, Settings
from torchmark.model.gate import Trial
from torchmark.model.judgement import Verdict
from torchmark.model.plan import Target
from torchmark.runner.machine import choose_cores
from torchmark.runner.paired_workers import PairedWorkers
from torchmark.stats.intervals import binomial_bounds

SIZES_NS = (5.0, 10.0, 20.0, 50.0, 100.0)
THRESHOLD = 0.05
ALPHA = 0.05

# A server as the reference's users would write one: torch is loaded, and each Timer has a process of its own.
REFERENCE = """
import json, os, sys
import torch
from torch.utils.benchmark import Timer
for line in sys.stdin:
    task = json.loads(line)
    read, write = os.pipe()
    if os.fork() == 0:
        found = Timer(task["stmt"], task["setup"]).blocked_autorange(min_run_time=0.2)
        os.write(write, json.dumps(found.times).encode() + b"\\n")
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        print(file.read().strip(), flush=True)
    os.wait()
"""


class Old(NamedTuple):
    """What the two rules say of one trial of the reference, and how long it took."""

    slowing: int
    by_threshold: bool
    by_ranks: bool
    seconds: float


class Reference:
    """The reference's Timer in one of the environments."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", REFERENCE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, slowing: int) -> list[float]:
        """Times of one statement."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        task = {"stmt": make_part(slowing).stmt, "setup": SETUP}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        times: list[float] = json.loads(self._process.stdout.readline())
        return times

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def try_reference(base: Reference, head: Reference, slowing: int) -> Old:
    """One side, then the other."""
    began = time.monotonic()
    before, after = base.measure(0), head.measure(slowing)
    ratio = statistics.median(after) / statistics.median(before)
    # Without a slowdown a false alarm is one in either direction; with one, only slower counts.
    beyond = ratio > 1 + THRESHOLD if slowing else abs(ratio - 1) > THRESHOLD
    side = "greater" if slowing else "two-sided"
    ranks = mannwhitneyu(after, before, alternative=side).pvalue < ALPHA
    return Old(slowing, beyond, bool(ranks), time.monotonic() - began)


@contextlib.contextmanager
def copy_environment() -> Iterator[str]:
    """The interpreter of a copy of this environment, which lies elsewhere."""
    folder = Path(sys.prefix)
    with tempfile.TemporaryDirectory(prefix="torchmark-copy-") as scratch:
        copy = Path(scratch) / "venv"
        shutil.copytree(folder, copy, symlinks=True)
        yield str(copy / "bin" / "python")


def show(trials: Sequence[Trial], old: Sequence[Old], slowings: dict[int, float]) -> None:
    """Print everything as Markdown."""
    trust = summarise_trials(trials)
    print(
        "| slowdown | torchmark | seconds | 5 % rule | Mann-Whitney | seconds |\n"
        "| --- | --- | ---: | --- | --- | ---: |"
    )
    for count in (0, *sorted(slowings)):
        size = slowings.get(count, 0.0)
        ours = [trial for trial in trials if trial.injected_s == size]
        theirs = [trial for trial in old if trial.slowing == count]
        changed = (Verdict.SLOWER, Verdict.FASTER) if not count else (Verdict.SLOWER,)
        name = f"+{size * 1e9:.1f} ns" if count else "none (false alarms)"
        seconds = statistics.median(trial.seconds for trial in ours)
        cells = [name, word(sum(t.verdict in changed for t in ours), len(ours)), f"{seconds:.2f}"]
        cells += [
            word(sum(t.by_threshold for t in theirs), len(theirs)),
            word(sum(t.by_ranks for t in theirs), len(theirs)),
        ]
        cells += [f"{statistics.median(t.seconds for t in theirs):.2f}" if theirs else ""]
        print(f"| {' | '.join(cells)} |")
    nulls = [trial for trial in trials if not trial.injected_s]
    in_time = sum(trial.verdict is Verdict.SAME and trial.seconds <= 2 for trial in nulls)
    print(f"\nWithout a slowdown `same` was said in {word(trust.same, trust.trials)}, within 2 s in {in_time} of them.")
    print(f"Log-ratios of a build against itself spread by {trust.sd:.2%} (standard deviation, from quartiles).")
    for count, size in sorted(slowings.items()):
        ours = [trial for trial in trials if trial.injected_s == size]
        late = sum(trial.seconds > 1 for trial in ours)
        slowest = max(trial.seconds for trial in ours)
        print(
            f"+{size * 1e9:.1f} ns ({count} assignments): {late} of {len(ours)} took more than 1 s, "
            f"at most {slowest:.2f} s."
        )


def word(found: int, trials: int) -> str:
    """A share with the bounds of its probability."""
    if not trials:
        return ""
    low, high = binomial_bounds(found, trials, 0.95)
    return f"{found} of {trials} = {found / trials:.1%} ({low:.1%} to {high:.1%})"


def main(argv: Sequence[str] | None = None) -> None:
    """Run all trials, interleaved, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description="False alarms and power.")
    parser.add_argument("--nulls", type=int, default=200, help="trials without a slowdown (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=40, help="trials of each slowdown (default: %(default)s)")
    parser.add_argument(
        "--reference", type=int, default=25, help="trials of the reference of each kind (default: %(default)s)"
    )
    args = parser.parse_args(argv)
    print(describe(), "\n")
    with copy_environment() as copy, contextlib.ExitStack() as stack:
        workers = PairedWorkers(Target(python=sys.executable), Target(python=copy), choose_cores())
        stack.callback(workers.close)
        began = time.monotonic()
        # The fresh ones too: starting is not measuring.
        workers.start(range(2 * LAYOUTS))
        print(
            f"Starting {4 * LAYOUTS} processes took {time.monotonic() - began:.1f} s. "
            f"Laid out alike: {workers.match.alike}."
        )
        slowings = choose_slowings(workers, [size * 1e-9 for size in SIZES_NS])
        sides = [Reference(sys.executable), Reference(copy)]
        for side in sides:
            stack.callback(side.close)
            side.measure(0)
        trials, old = run_all(workers, slowings, sides, args)
    show(trials, old, slowings)


def run_all(
    workers: PairedWorkers, slowings: dict[int, float], sides: Sequence[Reference], args: argparse.Namespace
) -> tuple[list[Trial], list[Old]]:
    """Trials of both tools, a few of one and then a few of the other."""
    schedule = [0] * args.nulls + [count for count in slowings for _ in range(args.trials)]
    chance = random.Random(1)
    chance.shuffle(schedule)
    theirs = [0] * args.reference + [count for count in slowings for _ in range(args.reference)]
    chance.shuffle(theirs)
    trials: list[Trial] = []
    old: list[Old] = []
    share = len(theirs) / len(schedule)
    for number, trial in enumerate(run_trials(workers, slowings, schedule, Settings()), start=1):
        trials.append(trial)
        while theirs and len(old) < share * number:
            old.append(try_reference(sides[0], sides[1], theirs.pop()))
        if number % 50 == 0:
            print(f"{number} of {len(schedule)} trials", file=sys.stderr)
    return trials, old


if __name__ == "__main__":
    main()
