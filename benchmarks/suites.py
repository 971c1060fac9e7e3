"""The suites that come along, every case checked, timed and counted: what it costs, and the reference's way beside it.

`python -m benchmarks.suites` takes about ten minutes. The reference's way is what PyTorch's own suite does for a case:
time it for 5 s, then count it five times, in a process of its own; it is run on one case of each language.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.context import describe

SUITES = ("standard", "modern")

# Run in processes of their own, whose CPU time with all they start is what they cost. Each prints one line of JSON.
SUITE = """
import collections, json, resource, sys, time
import torchmark
def spent():
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
start = time.perf_counter()
results = list(torchmark.run_benchmarks(sys.argv[1], count=sys.argv[2] == "count", layouts=1, min_run_time=0.02))
failed = [str(result) for result in results if result.failures]
variants = collections.Counter(" ".join(filter(None, result.case.autolabels.as_dict.values())) for result in results)
counted = sum(result.stats is not None for result in results)
timed = sum(result.measurement is not None for result in results)
print(json.dumps({
    "cases": len(results), "timed": timed, "counted": counted, "failed": failed, "variants": variants,
    "cpu": spent(), "clock": time.perf_counter() - start,
}))
"""
REFERENCE = """
import json, resource, sys, timeit
import torch.utils.benchmark as benchmark
stmt, setup, language = json.load(sys.stdin)
timer = benchmark.Timer(stmt, setup, timer=timeit.default_timer, language=language)
timer.blocked_autorange(min_run_time=5)
timer.collect_callgrind(number=100, collect_baseline=False, repeats=5)
own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps(own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime))
"""
REFERENCE_CASES = {
    "Python": ("x += y_float", "x, y_float = torch.rand((4, 4)), torch.rand((4, 4))", "python"),
    "C++": ("x += y_float;", "auto x = torch::rand({4, 4}); auto y_float = torch::rand({4, 4});", "cpp"),
}


def run(code: str, *arguments: str, given: object = None, cache: str) -> Any:
    """What a program prints, with a cache of its own."""
    environ = {**os.environ, "TORCHMARK_CACHE": cache, "TORCH_EXTENSIONS_DIR": cache}
    # The reference takes whatever Python is first on the path.
    environ["PATH"] = f"{os.path.dirname(sys.executable)}:{environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=json.dumps(given),
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )
    done.check_returncode()
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the tables for RESULTS.md."""
    print(describe())
    print("\n| suite | cases | timed | counted | failed | CPU-seconds | seconds by the clock |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    costs: dict[str, float] = {}
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as cache:
            for name, how in ((f"{suite}, cold cache", "count"), (f"{suite}, again, timed only", "time")):
                result = run(SUITE, suite, how, cache=cache)
                row = [result["cases"], result["timed"], result["counted"], len(result["failed"])]
                row += [round(result["cpu"]), round(result["clock"])]
                print(f"| {name} | {' | '.join(map(str, row))} |", flush=True)
                costs.setdefault(suite, result["cpu"])
                for failure in result["failed"]:
                    print(failure)
        if suite == SUITES[0]:
            variants = result["variants"]
    print("\nThe standard suite by variant:", ", ".join(f"{number} {name}" for name, number in variants.items()))
    reference = {}
    for language, given in REFERENCE_CASES.items():
        with tempfile.TemporaryDirectory() as cache:
            reference[language] = run(REFERENCE, given=given, cache=cache)
    each = ", ".join(f"{seconds:.0f} for {language}" for language, seconds in reference.items())
    whole = 181 * statistics.mean(reference.values())
    print(f"\nThe reference's way, CPU-seconds for a case: {each}; for 181 such cases {whole:.0f}.")
    print(f"That is {whole / costs['standard']:.0f} times the cost above.")


if __name__ == "__main__":
    main()
