"""Does a slower override hook show, and nothing else? `python -m benchmarks.overrides [--runs N] [-k EXPR]`.

Copies of this environment are compared with it by `torchmark overrides`: one in which `Tensor.__torch_function__` takes
about 100 ns longer, one in which it takes about 20 ns longer, and an untouched one. Which cases pass through that
function is found out beforehand, by running each statement once with a profiling hook of Python's.

Without `--whole`, only the first run of each copy counts instructions, and each case is traced once, for both give the
same each time; times are taken anew in every run.

A run is right if exactly those cases are slower, the bundle has flame graphs of exactly those, and in each graph of a
difference the function whose own cost grew most is the one that was slowed down.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.context import describe
from benchmarks.detection import copy_environment
from torchmark.analysis.flames import draw_flame
from torchmark.api.override_comparison import OverrideComparison, trace_both
from torchmark.cli.cases import load_cases
from torchmark.compare.comparison import Evidence, judge_pair
from torchmark.compare.experiment import ignore_progress
from torchmark.compare.session import HERE, Observer, run_comparison
from torchmark.define.selection import CaseOptions
from torchmark.model.costs import Stacks
from torchmark.model.judgement import Verdict
from torchmark.model.plan import Case
from torchmark.processes import StopRequest
from torchmark.report.flame.page import rank_growth
from torchmark.report.text.names import name_files
from torchmark.runner.machine import choose_cores

HOOK = "Tensor.__torch_function__"
FIRST_LINE = "        if kwargs is None:\n            kwargs = {}\n"
SLOWING = "_torchmark = None"

# Which of the statements that come in as JSON call the hook.
FIND_AFFECTED = """
import json, sys
import torch
code = torch.Tensor.__torch_function__.__func__.__code__
affected = []
for number, (setup, stmt) in enumerate(json.load(sys.stdin)):
    namespace = {"torch": torch, "__name__": "__main__"}
    sys.modules["__main__"].__dict__["torch"] = torch
    exec(setup, namespace)
    seen = []
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code))
    try:
        exec(stmt, namespace)
    finally:
        sys.setprofile(None)
    if code in seen:
        affected.append(number)
    namespace.clear()
print(json.dumps(affected))
"""


class Result(NamedTuple):
    """What one comparison came to."""

    size_ns: float
    missed: tuple[str, ...]
    false: tuple[str, ...]
    undecided: int
    graphs_fit: bool
    pointed: int
    graphs: int
    seconds: float | None
    """None for a run that was part of counting."""

    @property
    def right(self) -> bool:
        """Whether it said exactly what is true."""
        return not self.missed and not self.false and self.graphs_fit and self.pointed == self.graphs


def find_number(size_ns: float) -> int:
    """How many assignments take so long here."""
    few, many = (min(timeit.repeat(";".join([SLOWING] * n), number=100_000, repeat=9)) / 1e5 for n in (1, 401))
    return max(round(size_ns * 1e-9 / ((many - few) / 400)), 1)


def slow_down(python: str, number: int) -> None:
    """Put so many assignments into the hook of an environment."""
    found = subprocess.run([python, "-c", "import torch; print(torch.__file__)"], capture_output=True, text=True)
    file = Path(found.stdout.strip()).parent / "_tensor.py"
    text = file.read_text()
    begin = text.index("def __torch_function__(cls, func, types, args=(), kwargs=None):")
    at = text.index(FIRST_LINE, begin)
    file.write_text(text[:at] + f"        {';'.join([SLOWING] * number)}\n" + text[at:])


def find_affected(python: str, cases: Sequence[Case]) -> frozenset[str]:
    """The names of the files of those that call the hook."""
    texts = json.dumps([(case.args.setup, case.args.stmt) for case in cases])
    done = subprocess.run([python, "-c", FIND_AFFECTED], input=texts, capture_output=True, text=True, check=True)
    names = name_files(cases)
    return frozenset(names[cases[number]] for number in json.loads(done.stdout))


def compare(head: str, size_ns: float, cases: Sequence[Case], affected: frozenset[str], k: str | None) -> Result:
    """One run of the command."""
    names = {case.key: name for case, name in name_files(cases).items()}
    truth = affected if size_ns else frozenset()
    with tempfile.TemporaryDirectory() as folder:
        bundle, report = Path(folder, "overrides.zip"), Path(folder, "out.json")
        command = [str(Path(sys.executable).with_name("torchmark")), "overrides", "--base", sys.executable]
        command += [
            "--head",
            head,
            "-o",
            str(bundle),
            "--json",
            str(report),
            "--store",
            str(Path(folder, "x.db")),
            "-q",
        ]
        command += ["-k", k] if k else []
        begun = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        judgements = json.loads(report.read_text())["judgements"]
        with zipfile.ZipFile(bundle) as archive:
            files = {Path(name).name: archive.read(name).decode() for name in archive.namelist()}
    slower = {names[one["key"]] for one in judgements if one["verdict"] == "slower"}
    changed = {names[one["key"]] for one in judgements if one["verdict"] in ("slower", "faster", "failed")}
    drawn = {name[len("branch-") : -len(".svg")] for name in files if name.startswith("branch-")}
    pointed = sum(find_reddest(files[f"difference-{name}.svg"]) == {HOOK} for name in drawn)
    return Result(
        size_ns,
        tuple(sorted(truth - slower)),
        tuple(sorted(changed - truth)),
        sum(one["verdict"] == "undecided" for one in judgements),
        drawn == truth and all(f"base-{name}.svg" in files for name in truth),
        pointed,
        len(drawn),
        seconds,
    )


def find_reddest(svg: str) -> set[str]:
    """The functions that have the strongest red in a graph of a difference."""
    return set(re.findall(r'class="tmf-more5"><title>([^\n<]*)', svg))


def tell(results: Sequence[Result], affected: int, cases: int) -> None:
    """Print everything as Markdown."""
    print(f"\n{affected} of {cases} cases pass through `{HOOK}`.\n")
    print("| slower by | runs | exactly right | missed | false | undecided | graph points at it | seconds a run |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size in dict.fromkeys(one.size_ns for one in results):
        runs = [one for one in results if one.size_ns == size]
        graphs = sum(one.graphs for one in runs)
        seconds = [one.seconds for one in runs if one.seconds is not None]
        print(
            f"| {size:g} ns | {len(runs)} | {sum(one.right for one in runs)} | "
            f"{sum(len(one.missed) for one in runs)} | "
            f"{sum(len(one.false) for one in runs)} | {sum(one.undecided for one in runs)} | "
            f"{sum(one.pointed for one in runs)} of {graphs} | {f'{statistics.mean(seconds):.0f}' if seconds else ''} |"
        )


def repeat(head: str, size_ns: float, cases: Sequence[Case], affected: frozenset[str], runs: int) -> Iterator[Result]:
    """Runs of which only the first counts: counts are the same to the instruction, and traces too.

    Times are taken anew each time, by processes that are started anew.
    """
    question = OverrideComparison(
        cases=tuple(cases),
        base=sys.executable,
        head=head,
        arguments=(),
        timeout_s=600.0,
    )
    comparison, names, cores = question.comparison, name_files(cases), choose_cores(None)
    truth = affected if size_ns else frozenset()
    first = run_comparison(comparison, cores, Observer())
    traced: dict[Case, bool] = {}
    for number in range(runs):
        begun = time.perf_counter()
        evidence = Evidence(first.evidence.counted, first.evidence.environments)
        if number == 0:
            judgements = first.judgements
        else:
            for _ in HERE.time(comparison, cores, evidence, StopRequest(), ignore_progress):
                pass
            judgements = tuple(judge_pair(comparison, entry, evidence) for entry in comparison.entries)
        slower = [one.case for one in judgements if one.verdict is Verdict.SLOWER]
        seconds = time.perf_counter() - begun if number else None
        new = [case for case in slower if case not in traced]
        for case, base, branch in trace_both(comparison, new) if new else ():
            if isinstance(base, Stacks) and isinstance(branch, Stacks):
                traced[case] = next(iter(rank_growth(draw_flame(branch, "", base=base)))).frame.name == HOOK
        told = {names[case] for case in slower}
        changed = {names[one.case] for one in judgements if one.verdict not in (Verdict.SAME, Verdict.UNDECIDED)}
        pointed = sum(traced.get(case, False) for case in slower)
        undecided = sum(one.verdict is Verdict.UNDECIDED for one in judgements)
        missed, false = tuple(sorted(truth - told)), tuple(sorted(changed - truth))
        yield Result(size_ns, missed, false, undecided, told == truth, pointed, len(slower), seconds)


def main() -> None:
    """All sizes in turns, so that they meet the same machine."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--sizes", default="100,20,0")
    parser.add_argument("-k")
    parser.add_argument("--whole", action="store_true", help="the whole command each time, as a user runs it")
    options = parser.parse_args()
    sizes = [float(size) for size in options.sizes.split(",")]
    print(describe())
    cases = load_cases(("overrides",), CaseOptions(k=(options.k,) if options.k else ()).select()).cases
    results = []
    with contextlib.ExitStack() as stack:
        copies = {size: stack.enter_context(copy_environment()) for size in sizes}
        for size, python in copies.items():
            if size:
                slow_down(python, find_number(size))
        affected = find_affected(sys.executable, cases)
        if options.whole:
            order = [(size, python) for _ in range(options.runs) for size, python in copies.items()]
            found = (compare(python, size, cases, affected, options.k) for size, python in order)
        else:
            found = (
                result
                for size, python in copies.items()
                for result in repeat(python, size, cases, affected, options.runs)
            )
        for result in found:
            results.append(result)
            print(result, file=sys.stderr, flush=True)
    tell(results, len(affected), len(cases))


if __name__ == "__main__":
    main()
