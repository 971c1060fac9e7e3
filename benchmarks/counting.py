"""Counting instructions here and with `torch.utils.benchmark`: how long it takes, whether it repeats, what comes out.

`python -m benchmarks.counting` takes about 25 minutes, nearly all of it the reference's.
"""

from __future__ import annotations

import collections
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.utils.benchmark as reference

import torchmark
from benchmarks.context import describe
from torchmark.api.timer_engines import close_workers, get_worker
from torchmark.callgrind.profiles import read_profile, standardise
from torchmark.runner.spec import own_worker

SETUP = "x = torch.ones(4, 4); w = torch.ones(4, 4)"
MULTIPLY = ("y = x * w", SETUP)
EXACT = {
    "x += 1": "x = torch.ones(4, 4)",
    "y = x * w": SETUP,
    "layer(x)": "x = torch.ones(4, 4); layer = torch.nn.Linear(4, 4)",
    "(x * w).sum().backward()": "x = torch.ones(4, 4); w = torch.ones(4, 4, requires_grad=True)",
}
AGREEING = {
    **EXACT,
    "x.sum()": SETUP,
    "x[0]": SETUP,
    "x.view(16)": SETUP,
    "torch.empty(())": SETUP,
    "torch.cat([x, w])": SETUP,
    "x @ w": SETUP,
}
NUMBER = 100
REPEATS = 20
REFERENCE_REPEATS = 5
# Differences above this are explained by function.
CLOSE_ENOUGH = 0.03


def count_by_reference(stmt: str, setup: str, **options: Any) -> Any:
    """Its signature asks type checkers for arguments that have defaults."""
    collect: Any = reference.Timer(stmt, setup).collect_callgrind
    return collect(NUMBER, **options)


def seconds(action: Callable[[], Any]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def show_speed() -> None:
    """Start, one count, the default, and the reference's count of the same statement."""
    plain = seconds(
        lambda: subprocess.run(
            ["valgrind", "--tool=none", "--quiet", sys.executable, "-c", "import torch"],
            check=True,
            capture_output=True,
        )
    )
    worker = get_worker(own_worker(os.environ))
    start = seconds(worker.start)
    timer = torchmark.Timer(*MULTIPLY)
    one = statistics.median(seconds(lambda: timer.collect_callgrind(NUMBER, layouts=1)) for _ in range(9))
    default = statistics.median(seconds(lambda: timer.collect_callgrind(NUMBER)) for _ in range(9))
    theirs = statistics.median(seconds(lambda: count_by_reference(*MULTIPLY)) for _ in range(2))
    print("| what | seconds | ratio |\n| --- | ---: | ---: |")
    print(f"| `valgrind --tool=none python -c 'import torch'` | {plain:.1f} | |")
    print(f"| torchmark: worker up, once a process | {start:.1f} | {start / plain:.2f} of the above |")
    print(f"| torch.utils.benchmark: count `{MULTIPLY[0]}`, each time | {theirs:.1f} | |")
    print(f"| torchmark: the same, one layout | {one:.3f} | {theirs / one:.0f}x |")
    print(f"| torchmark: the same, five layouts (default) | {default:.3f} | {theirs / default:.0f}x |\n")


def show_repeats() -> None:
    """How many different counts come out of many repeats, and how far apart they are."""
    print(f"| statement | torchmark, {REPEATS} repeats | torch.utils.benchmark, {REFERENCE_REPEATS} repeats |")
    print("| --- | --- | --- |")
    for stmt, setup in EXACT.items():
        ours = [s.counts() for s in torchmark.Timer(stmt, setup).collect_callgrind(NUMBER, repeats=REPEATS, layouts=1)]
        theirs = [s.counts() for s in count_by_reference(stmt, setup, repeats=REFERENCE_REPEATS)]
        print(f"| `{stmt}` | {_spread(ours)} | {_spread(theirs)} |", flush=True)
    print()


def show_restarts() -> None:
    """The default result in a second worker, started elsewhere with a larger environment."""
    before = {stmt: torchmark.Timer(stmt, setup).collect_callgrind(NUMBER).counts() for stmt, setup in EXACT.items()}
    close_workers()
    os.environ["PADDING"] = "x" * 3000
    os.chdir("/tmp")
    print(
        "| statement | one worker | another, other folder and environment | difference |\n| --- | ---: | ---: | ---: |"
    )
    for stmt, setup in EXACT.items():
        after = torchmark.Timer(stmt, setup).collect_callgrind(NUMBER).counts()
        print(f"| `{stmt}` | {before[stmt]} | {after} | {after / before[stmt] - 1:+.3%} |")
    print()


def show_parsing() -> None:
    """How long it takes to read a profile, here and with Valgrind's own tool, which the reference calls twice."""
    stmt = "(x * w).sum().backward()"
    stats = torchmark.Timer(stmt, EXACT[stmt]).collect_callgrind(NUMBER, layouts=1, retain_out_file=True)
    assert stats.stmt_callgrind_out is not None
    with tempfile.NamedTemporaryFile("w", suffix=".out") as file:
        file.write(stats.stmt_callgrind_out)
        file.flush()
        ours = statistics.median(seconds(lambda: read_profile(Path(file.name))) for _ in range(9))
        command = ["callgrind_annotate", "--threshold=100", file.name]
        theirs = statistics.median(
            seconds(lambda: subprocess.run(command, capture_output=True, check=True)) for _ in range(9)
        )
    size = len(stats.stmt_callgrind_out) / 1000
    print(f"Reading a profile of {size:.0f} kB: {ours * 1000:.0f} ms; callgrind_annotate {theirs * 1000:.0f} ms.\n")


def show_agreement() -> None:
    """Instructions per run by both, and by function where they are apart."""
    print("| statement | torchmark | torch.utils.benchmark | difference |\n| --- | ---: | ---: | ---: |")
    explanations = []
    for stmt, setup in AGREEING.items():
        ours = torchmark.Timer(stmt, setup).collect_callgrind(NUMBER)
        theirs = count_by_reference(stmt, setup)
        a, b = ours.counts(net=True) / NUMBER, (theirs.counts() - theirs.baseline_exclusive_stats.sum()) / NUMBER
        print(f"| `{stmt}` | {a:.0f} | {b:.0f} | {a / b - 1:+.1%} |", flush=True)
        if abs(a / b - 1) > CLOSE_ENOUGH:
            explanations.append(_explain(stmt, ours, theirs))
    print("", *explanations, sep="\n")


def _spread(counts: list[int]) -> str:
    distinct = len(set(counts))
    share = (max(counts) - min(counts)) / statistics.median(counts)
    return "all the same" if distinct == 1 else f"{distinct} different, {share:.2%} apart"


def _explain(stmt: str, ours: torchmark.CallgrindStats, theirs: Any) -> str:
    def by_function(stats: Any) -> collections.Counter[str]:
        # Callgrind marks a function that was entered again through itself; how deep the harness is differs.
        counts: collections.Counter[str] = collections.Counter()
        for entry in stats.stats():
            counts[re.sub(r"'\d+$", "", standardise(entry.function))] += entry.count
        return counts

    a, b = by_function(ours), by_function(theirs)
    changes = {name: (a.get(name, 0) - b.get(name, 0)) / NUMBER for name in a.keys() | b.keys()}
    largest = sorted(changes.items(), key=lambda item: -abs(item[1]))[:8]
    rows = "\n".join(f"    {change:+8.1f}  {name[:90]}" for name, change in largest)
    return f"`{stmt}`, torchmark less torch.utils.benchmark, instructions per run:\n\n{rows}\n"


def main() -> None:
    """All five, as Markdown."""
    # The reference starts whatever `python` is on the path.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    print(describe(), end="\n\n")
    for show in (show_speed, show_parsing, show_repeats, show_agreement, show_restarts):
        show()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
