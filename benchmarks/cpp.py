"""C++ snippets here and with `torch.utils.benchmark`: what compiling costs, how soon there is a result, what comes out.

`python -m benchmarks.cpp` takes about ten minutes, most of it the reference's, which needs `ninja` on the path.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from benchmarks.context import describe

SETUP = "auto x = torch::ones({4, 4}); auto y = torch::ones({4, 4});"
AGREEING = {
    "torch::add(x, y);": SETUP,
    "x += 1;": SETUP,
    "at::empty({0});": SETUP,
}
NUMBER = 100
REPEATS = 20
REFERENCE_REPEATS = 5

# Distinct statements with the API that operators are written against; each is taken on two sizes.
EXPRESSIONS = (
    "torch::add(x, y)", "torch::mul(x, y)", "x + y", "x - y", "x * y", "x / y", "x.sum()", "x.mean()", "x.t()",
    "x.transpose(0, 1)", "x.unsqueeze(0)", "x[0]", "x.index({0})", "x.index({0, 0})",
    "x.index({torch::indexing::Slice(0, 2)})", "x.select(0, 1)", "x.clone()", "x.contiguous()", "x.abs()", "x.neg()",
    "torch::relu(x)", "torch::sigmoid(x)", "torch::tanh(x)", "x.matmul(y)", "torch::mm(x, y)", "x.exp()", "x.log()",
    "x.sqrt()", "x.pow(2)", "at::empty({0})", "torch::empty({4})", "torch::zeros({4})", "torch::ones({4})",
    "torch::full({4}, 2.0)", "torch::cat({x, y})", "torch::stack({x, y})", "x.max()", "x.min()", "x.argmax()",
    "x.eq(y)", "x.gt(y)", "x.to(torch::kDouble)", "x.sum().item<float>()", "x.view({-1})", "x.reshape({-1})",
)  # fmt: skip
SCRIPT = "#include <string>\n#include <vector>\n#include <torch/script.h>"
OTHERS = (
    ("model->forward(x);", "auto x = torch::ones({4, 4}); torch::nn::Linear model(4, 4);", ""),
    ("model->forward(x);", "auto x = torch::ones({4, 4}); torch::nn::ReLU model;", ""),
    ("std::vector<torch::jit::IValue> inputs({torch::jit::IValue(x)});", "auto x = torch::ones({4, 4});", SCRIPT),
    ("c10::InferenceMode guard(true);", "", ""),
    ("(x * w).sum().backward();", "auto x = torch::ones({4}); auto w = torch::ones({4}, torch::requires_grad());", ""),
)

# Run in a process of their own, whose CPU time with all it starts is what they cost. Each prints one line of JSON.
BATCH = """
import json, os, resource, sys, time
import torchmark
from torchmark.model.job import CountJob, Place
from torchmark.runner.worker import count
from torchmark.api.timer_engines import close_workers, get_worker
from torchmark.runner.spec import own_worker
def spent():
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
timers = [torchmark.Timer(*texts, language="cpp") for texts in json.load(sys.stdin)]
before = spent()
libraries = [timer._engine.compile() for timer in timers]
compiled = spent()
for timer in timers:
    timer.blocked_autorange(min_run_time=0.05)
timed = spent()
worker = get_worker(own_worker(os.environ))
for library in libraries:
    job = CountJob("", "", Place("/"), layouts=(0,), compiled=library)
    count(worker, job, baseline=False)
close_workers()
# Its worker is waited for only now.
counted = spent()
print(json.dumps({"compile": compiled - before, "time": timed - compiled, "count": counted - timed}))
"""
REFERENCE = """
import json, sys, time
import torch.utils.benchmark as benchmark
stmt, setup, repeats = json.load(sys.stdin)
timer = benchmark.Timer(stmt, setup, language="cpp")
start = time.perf_counter()
timer.timeit(1)
first = time.perf_counter() - start
timer.blocked_autorange(min_run_time=0.05)
stats = timer.collect_callgrind(100, repeats=repeats) if repeats else ()
print(json.dumps({"first": first, "counts": [one.counts() for one in stats]}))
"""
OURS = """
import json, sys, time
import torchmark as benchmark
stmt, setup, repeats = json.load(sys.stdin)
timer = benchmark.Timer(stmt, setup, language="cpp")
start = time.perf_counter()
timer._engine._load()
loaded = time.perf_counter() - start
timer.timeit(1)
first = time.perf_counter() - start
stats = timer.collect_callgrind(100, repeats=repeats, layouts=1) if repeats else ()
print(json.dumps({"loaded": loaded, "first": first, "counts": [one.counts() for one in stats],
                  "median": timer.collect_callgrind(100).counts() if repeats else None}))
"""


class Run(NamedTuple):
    """What a program printed, and what it cost with all that it started."""

    result: dict[str, Any]
    cpu_s: float


def run(program: str, data: object, cache: str) -> Run:
    """Run a program that reads JSON and prints JSON."""
    environ = {**os.environ, "TORCHMARK_CACHE": cache}
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(data))
    process.stdin.close()
    lines = process.stdout.read().splitlines()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not lines:
        raise SystemExit(f"A program failed with exit code {process.returncode}.")
    return Run(json.loads(lines[-1]), usage.ru_utime + usage.ru_stime)


def list_snippets() -> list[tuple[str, str, str]]:
    """Ninety-five."""
    larger = SETUP.replace("ones({4, 4})", "rand({8, 8})")
    made = [(f"auto z = {text};", setup, "") for setup in (SETUP, larger) for text in EXPRESSIONS]
    snippets = [*made, *OTHERS]
    assert len(set(snippets)) == len(snippets) == 95
    return snippets


def show_batch(reference_cpu_s: float) -> None:
    """Ninety-five snippets from a cold cache."""
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        batch = run(BATCH, list_snippets(), cache)
        wall = time.perf_counter() - start
    parts = batch.result
    total = sum(parts.values())
    print("| 95 snippets, cold cache | CPU-seconds |\n| --- | ---: |")
    print(f"| compile | {parts['compile']:.1f} |")
    print(f"| time, 0.05 s each | {parts['time']:.1f} |")
    print(f"| count, one layout, worker's start included | {parts['count']:.1f} |")
    print(f"| all | {total:.1f} |")
    print(f"| torch.utils.benchmark, 95 times {reference_cpu_s:.0f} | {95 * reference_cpu_s:.0f} |")
    print(f"\n{95 * reference_cpu_s / total:.0f} times less; {wall:.0f} s by the clock.\n", flush=True)


def show_single(reference_s: float) -> None:
    """One new snippet, in seconds until its first result."""
    stmt = "x.add(7);"
    with tempfile.TemporaryDirectory() as cache:
        new = run(OURS, (stmt, SETUP, 0), cache).result["first"]
        again = [run(OURS, (stmt, SETUP, 0), cache).result for _ in range(5)]
        seen, loaded = (statistics.median(one[name] for one in again) for name in ("first", "loaded"))
        start = time.perf_counter()
        environ = {**os.environ, "TORCHMARK_CACHE": cache}
        subprocess.run(
            [sys.executable, "-m", "torchmark", "cache", "warm"], env=environ, check=True, capture_output=True
        )
        warming = time.perf_counter() - start
        ahead = statistics.median(run(OURS, (f"x.add({i});", SETUP, 0), cache).result["first"] for i in range(3))
    print("| one snippet, until its first run | seconds | ratio |\n| --- | ---: | ---: |")
    print(f"| torch.utils.benchmark, in every process | {reference_s:.1f} | |")
    print(f"| torchmark, new | {new:.1f} | {reference_s / new:.1f}x |")
    print(
        f"| torchmark, new, headers compiled ahead ({warming:.0f} s, once) | {ahead:.1f} | {reference_s / ahead:.1f}x |"
    )
    print(f"| torchmark, seen before in another process | {seen:.3f} | {reference_s / seen:.0f}x |")
    print(f"| torchmark, the same until it is loaded | {loaded:.3f} | |\n", flush=True)


def show_agreement() -> tuple[float, float]:
    """Counts by both. Gives what the reference costs for each statement, and how long its first result takes."""
    print(f"| statement | torchmark, {REPEATS} repeats, bare | median of five layouts | torch.utils.benchmark, "
          f"{REFERENCE_REPEATS} repeats | |\n| --- | ---: | ---: | ---: | --- |")  # fmt: skip
    costs, firsts = [], []
    with tempfile.TemporaryDirectory() as cache:
        for stmt, setup in AGREEING.items():
            theirs = run(REFERENCE, (stmt, setup, REFERENCE_REPEATS), cache)
            ours = run(OURS, (stmt, setup, REPEATS), cache).result
            costs.append(theirs.cpu_s)
            firsts.append(theirs.result["first"])
            low, high = min(theirs.result["counts"]), max(theirs.result["counts"])
            bare = sorted(set(ours["counts"]))
            shown = f"all {bare[0]}" if len(bare) == 1 else f"{bare[0]} to {bare[-1]}"
            middle = statistics.median(theirs.result["counts"])
            apart = f"{bare[0] / middle - 1:+.1%}, {ours['median'] / middle - 1:+.1%} from the middle"
            spread = f"{low} to {high} ({(high - low) / middle:.1%})"
            print(f"| `{stmt}` | {shown} | {ours['median']} | {spread} | {apart} |", flush=True)
    print()
    return statistics.median(costs), statistics.median(firsts)


def main() -> None:
    """All three, as Markdown."""
    # The reference starts whatever `python` and `ninja` are on the path.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    print(describe(), end="\n\n")
    cpu_s, first_s = show_agreement()
    show_single(first_s)
    show_batch(cpu_s)


if __name__ == "__main__":
    main()
