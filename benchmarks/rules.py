"""How often `torchmark fuzz` finds a rule that is there, and one that is not: `python -m benchmarks.rules`.

The planted rule: one statement sleeps when k0 > 1024 and x is not contiguous. Without it, two statements are the same.
Nothing else has such a command to be compared with.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.context import describe

# But for the sleep, both are the same.
SETUP = """
import time
def plain(x):
    return x.neg()
def moody(x):
    if x.shape[0] > 1024 and not x.is_contiguous():
        time.sleep(0.001)
    return x.neg()
"""
PLANTED = {("k0", ">", 1024), ("x is contiguous", "is", False)}
EXACT, OTHER, NONE = "exactly this rule", "another rule", "no rule"


def run(seed: int, n: int, second: str) -> dict[str, Any]:
    """What the command writes."""
    command = [sys.executable, "-m", "torchmark", "fuzz", "plain(x)", second, "--setup", SETUP, "-q"]
    command += ["-n", str(n), "--seed", str(seed), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"Seed {seed} failed:\n{done.stderr}")
    plain: dict[str, Any] = json.loads(done.stdout)
    return plain


def classify(plain: dict[str, Any]) -> str:
    """What was told of the first rule, if there is one."""
    rules = plain["contests"][0]["rules"]
    if not rules:
        return NONE
    told = {(c["feature"], c["relation"], c["value"]) for c in rules[0]["conditions"]}
    return EXACT if told == PLANTED else f"{OTHER}: {sorted(told)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Print everything as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description="Rules that are there, or not.")
    parser.add_argument("--seeds", type=int, default=20, help="studies of each kind (default: %(default)s)")
    parser.add_argument("-n", type=int, default=[200], nargs="+", help="inputs of each study (default: 200)")
    args = parser.parse_args(argv)
    print(describe(), "\n")
    print("| statements | inputs | studies | what was told | seconds a study |\n| --- | ---: | ---: | --- | ---: |")
    for name, second in (("equal", "plain(x)"), ("planted rule", "moody(x)")):
        for n in args.n:
            start, told = time.monotonic(), Counter[str]()
            for seed in range(args.seeds):
                told[classify(run(seed, n, second))] += 1
            texts = "; ".join(f"{number} times {text}" for text, number in told.most_common())
            print(
                f"| {name} | {n} | {args.seeds} | {texts} | {(time.monotonic() - start) / args.seeds:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
