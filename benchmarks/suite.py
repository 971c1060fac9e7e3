"""The standard suite, timed and counted: what it costs, whether counts repeat, and the reference's way beside it.

`python -m benchmarks.suite` takes about half an hour on two idle cores. The reference's way is what PyTorch's own suite
does for a case: time it for 5 s, then count it five times, in a process of its own. It is run on one case of each kind
(language, runtime, autograd), and scaled by how many cases are of that kind.
"""

from __future__ import annotations

import collections
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torchmark
from benchmarks.context import describe
from torchmark.suites import standard

# What the project has set itself.
MOST_CPU_S = {3: 440, 1: 300}
LEAST_RATIO = {3: 35, 1: 50}
MOST_PARENT_SHARE = 0.15
MOST_PARENT_MB = 200
LEAST_IDENTICAL = 0.95
MOST_DIFFERENCE = 0.001

# Each runs in a process of its own and prints, last, one line of JSON with what it cost.
PASS = """
import json, resource, sys, time
from torchmark.cli.main import main
def spent(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
start = time.perf_counter()
code = main(sys.argv[1:])
print(json.dumps({
    "code": code, "clock": time.perf_counter() - start,
    "own": spent(resource.RUSAGE_SELF), "others": spent(resource.RUSAGE_CHILDREN),
    "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""
REFERENCE = """
import json, resource, sys, timeit
import torch.utils.benchmark as benchmark
timer = benchmark.Timer(timer=timeit.default_timer, **json.load(sys.stdin))
timer.blocked_autorange(min_run_time=5)
timer.collect_callgrind(number=100, collect_baseline=False, repeats=5)
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps(own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime))
"""


class Pass(NamedTuple):
    """One run over the suite: its cost, its counts by case (of 100 runs, in the median layout), and its failures."""

    cost: dict[str, Any]
    counts: dict[str, int]
    failed: int
    compilers: int

    @property
    def cpu_s(self) -> float:
        """Of all processes together."""
        return float(self.cost["own"] + self.cost["others"])


def run(code: str, *arguments: str, given: object = None, variables: Mapping[str, str] | None = None) -> Any:
    """What a program prints last."""
    # The reference takes whatever Python is first on the path.
    environ = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", **(variables or {})}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def make_pass(folder: Path, layouts: int, cache: str) -> Pass:
    """Run the suite once, with workers of its own; the cache of C++ may be another pass's."""
    log, compiler = folder / "compilers", folder / "c++"
    if not compiler.exists():
        compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {shutil.which("c++")} "$@"\n')
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
    log.write_text("")
    result = folder / "export.json"
    store = ["--store", str(folder / "results.db")]
    variables = {"TORCHMARK_CACHE": str(folder / cache), "CXX": str(compiler)}
    cost = run(PASS, "run", "standard", "--quiet", "--layouts", str(layouts), *store, variables=variables)
    run(PASS, "export", "--format", "upstream", "-o", str(result), *store, variables=variables)
    values = json.loads(result.read_text())["values"]
    # Compilers are also asked for their version.
    compilers = sum(" -c " in f" {line} " for line in log.read_text().splitlines())
    counts = {key: sorted(value["counts"])[(len(value["counts"]) - 1) // 2] for key, value in values.items()}
    failed = sum(not value["counts"] or not value["times"] for value in values.values()) + 181 - len(values)
    return Pass(cost, counts, failed, compilers)


def compare(one: Pass, two: Pass) -> dict[str, float]:
    """The cases whose counts differ, and by what share, the largest first; of cases with one thread."""
    differences = {
        key: two.counts[key] / count - 1
        for key, count in one.counts.items()
        if json.loads(key)["num_threads"] == 1 and two.counts[key] != count
    }
    return dict(sorted(differences.items(), key=lambda item: -abs(item[1])))


def name(key: str) -> str:
    """A case as people call it."""
    case = json.loads(key)
    return f"{' / '.join(case['label'])}, {', '.join(filter(None, case['autolabels'].values()))}"


def measure_reference() -> float:
    """CPU-seconds for the whole suite in the reference's way, from one case of each kind."""
    cases = torchmark.materialize(standard.BENCHMARKS)
    kinds = collections.Counter(tuple(labels.as_dict.values()) for _, labels, _ in cases)
    whole = 0.0
    print("\n| kind | cases | measured on | CPU-seconds for it in the reference's way |")
    print("| --- | ---: | --- | ---: |")
    for kind, number in kinds.items():
        label, _, args = next(case for case in cases if tuple(case[1].as_dict.values()) == kind)
        given = {
            "stmt": args.stmt,
            "setup": args.setup,
            "global_setup": args.global_setup,
            "language": args.language.name.lower(),
        }
        with tempfile.TemporaryDirectory() as cache:
            seconds = run(REFERENCE, given=given, variables={"TORCH_EXTENSIONS_DIR": cache})
        whole += number * seconds
        print(f"| {', '.join(filter(None, kind))} | {number} | {' / '.join(label)} | {seconds:.0f} |", flush=True)
    print(f"\nFor all {len(cases)} cases: {whole:.0f} CPU-seconds.")
    return whole


def judge(claim: str, holds: bool) -> None:
    """Say whether what is demanded holds."""
    print(f"- {'holds' if holds else 'DOES NOT HOLD'}: {claim}", flush=True)


def main() -> None:
    """Print the tables for RESULTS.md."""
    print(describe())
    print("\n| cold cache | failed | CPU-seconds | of them the parent | its memory, MB | seconds by the clock |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        cold: dict[int, Pass] = {}
        for layouts in MOST_CPU_S:
            done = cold[layouts] = make_pass(folder, layouts, f"cache-{layouts}")
            row = [done.failed, f"{done.cpu_s:.0f}", f"{done.cost['own']:.1f}", f"{done.cost['memory_mb']:.0f}"]
            print(f"| layouts {layouts} | {' | '.join(map(str, row))} | {done.cost['clock']:.0f} |", flush=True)
        whole = measure_reference()
        print()
        for layouts, done in cold.items():
            judge_cost(layouts, done, whole)
        # From here on nothing depends on how busy the machine is.
        for layouts, done in cold.items():
            judge_agreement(layouts, done, make_pass(folder, layouts, f"cache-{layouts}"))


def judge_cost(layouts: int, cold: Pass, whole: float) -> None:
    """Whether a pass cost no more than it may; `whole` is what the reference's way costs."""
    most, ratio, share = MOST_CPU_S[layouts], whole / cold.cpu_s, cold.cost["own"] / cold.cpu_s
    judge(f"layouts {layouts}: {cold.failed} failures", cold.failed == 0)
    judge(f"layouts {layouts}: {cold.cpu_s:.0f} of at most {most} CPU-seconds", cold.cpu_s <= most)
    judge(f"layouts {layouts}: {ratio:.0f}x, at least {LEAST_RATIO[layouts]}x", ratio >= LEAST_RATIO[layouts])
    judge(f"layouts {layouts}: the parent takes {share:.1%} of the time", share <= MOST_PARENT_SHARE)
    judge(f"layouts {layouts}: {cold.cost['memory_mb']:.0f} MB of memory", cold.cost["memory_mb"] <= MOST_PARENT_MB)


def judge_agreement(layouts: int, cold: Pass, warm: Pass) -> None:
    """Whether another pass, with workers of its own, gives the same counts and compiles nothing."""
    judge(f"layouts {layouts}, again: {warm.failed} failures", warm.failed == 0)
    judge(f"layouts {layouts}, again: {warm.compilers} compilers start ({cold.compilers} at first)", not warm.compilers)
    differences = compare(cold, warm)
    single = sum(json.loads(key)["num_threads"] == 1 for key in cold.counts)
    identical = 1 - len(differences) / single
    largest = max(map(abs, differences.values()), default=0.0)
    what = f"two passes agree exactly on {identical:.1%} of {single} cases, at worst to {largest:.3%}"
    judge(f"layouts {layouts}: {what}", identical >= LEAST_IDENTICAL if layouts == 1 else largest <= MOST_DIFFERENCE)
    for key, difference in differences.items():
        print(f"  - {name(key)}: {difference:+.4%}", flush=True)


if __name__ == "__main__":
    main()
