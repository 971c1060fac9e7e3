"""Exact flame graphs of a whole suite: do frames add up, and how long does one take?

    python -m benchmarks.flames [SUITE] [-k EXPR]

For every case: the root is the count, each frame is itself and its children, and what the instrument cost is told apart
to the instruction. The same is checked of the graph that is made of a stored call graph, for a report.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator

from benchmarks.context import describe
from torchmark.analysis.flames import grow, list_callers_first, unfold
from torchmark.analysis.stacks import read_stacks
from torchmark.cli.cases import load_cases
from torchmark.define.selection import CaseOptions
from torchmark.model.costs import FlameNode, Trace
from torchmark.model.job import BARE_LAYOUT, CountJob
from torchmark.model.outcome import Failure
from torchmark.model.plan import Case, Target
from torchmark.runner.lab import Lab
from torchmark.runner.prepare import Models, make_parts
from torchmark.runner.worker import count, trace

RUNS = 100


def check(node: FlameNode) -> bool:
    """Whether a frame and all below it add up."""
    return node.value == node.own + sum(child.value for child in node.children) and all(map(check, node.children))


def check_trace(found: Trace) -> tuple[bool, int]:
    """Whether the exact graph adds up to the count, and its frames."""
    stacks, instrument = read_stacks(found)
    root = grow(stacks)
    return check(root) and root.value + instrument == found.profile.total(), len(list_callers_first(root))


def trace_all(cases: list[Case]) -> Iterator[tuple[Case, bool | Failure, bool, int, float]]:
    """Each case: whether the exact graph adds up, whether that of its call graph does, frames, seconds."""
    lab = Lab(Target())
    tracer, counter = lab.make_counter(stacks=True), lab.make_counter()
    try:
        with Models(os.environ) as models:
            parts = make_parts(cases, lab, models)
            tracer.start()
            counter.start()
            for case in cases:
                part = parts[case]
                if isinstance(part, Failure):
                    yield case, part, False, 0, 0.0
                    continue
                job = CountJob(
                    stmt=part.stmt,
                    setup=part.setup,
                    place=part.place,
                    number=RUNS,
                    threads=part.threads,
                    layouts=(BARE_LAYOUT,),
                    givens=(),
                    compiled=part.compiled,
                )
                begun = time.perf_counter()
                found = trace(tracer, job)
                seconds = time.perf_counter() - begun
                counted = count(counter, job, baseline=False)
                if isinstance(found, Failure) or isinstance(counted, Failure):
                    yield case, found if isinstance(found, Failure) else counted, False, 0, seconds  # type: ignore[misc]
                    continue
                profile = counted.layouts[0]
                unfolded = grow(unfold(profile, RUNS))
                adds_up, frames = check_trace(found)
                yield case, adds_up, check(unfolded) and unfolded.value == profile.total(), frames, seconds
    finally:
        lab.abandon()


def main() -> int:
    """Check all cases, and say what was found."""
    names = [argument for argument in sys.argv[1:2] if not argument.startswith("-")] or ["standard"]
    k = (sys.argv[sys.argv.index("-k") + 1],) if "-k" in sys.argv else ()
    print(describe())
    cases = [case for case in load_cases(names, CaseOptions(k=k).select()).cases if case.parts is None]
    exact = unfolded = failed = 0
    times = []
    for case, adds_up, other, frames, seconds in trace_all(cases):
        label = " / ".join(case.label)
        if isinstance(adds_up, Failure):
            failed += 1
            print(f"FAILED  {label}: {adds_up.message}", flush=True)
            continue
        exact, unfolded = exact + adds_up, unfolded + other
        times.append(seconds)
        if not (adds_up and other):
            print(f"DOES NOT ADD UP  {label}: exact {adds_up}, call graph {other}, {frames} frames", flush=True)
    print(f"{len(cases)} cases: exact graphs that add up {exact}, of call graphs {unfolded}, failed {failed}")
    if times:
        print(f"seconds for a trace: median {sorted(times)[len(times) // 2]:.2f}, at most {max(times):.2f}")
    return 0 if exact == unfolded == len(cases) else 1


if __name__ == "__main__":
    raise SystemExit(main())
