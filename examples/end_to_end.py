"""Which inputs get faster or slower with another build of torch: `python -m examples.end_to_end`.

Both builds measure the same random inputs, in turns, in several rounds. A build is an
interpreter that has torch:

  python -m examples.end_to_end --base old/bin/python --head new/bin/python

With --test-variance one build is on both sides. Whatever is reported then is a false alarm.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torchmark as benchmark
from examples.running import UntilInterrupted, duration, name_time, percentage, positive, run, seed, show_progress
from examples.verdicts import FEWEST, Judgement, Verdict, judge

SIDES = ("base", "head")
OPS: dict[str, tuple[str, type[benchmark.UnaryOpFuzzer | benchmark.BinaryOpFuzzer]]] = {
    "add": ("x + y", benchmark.BinaryOpFuzzer),
    "mul": ("x * y", benchmark.BinaryOpFuzzer),
    "exp": ("torch.exp(x)", benchmark.UnaryOpFuzzer),
    "relu": ("torch.relu(x)", benchmark.UnaryOpFuzzer),
    "sum": ("x.sum(dim=0)", benchmark.UnaryOpFuzzer),
    "sort": ("x.sort(dim=-1)", benchmark.UnaryOpFuzzer),
}
DEFAULT_OPS = ("add", "exp", "sum")


class Input(NamedTuple):
    """A statement and the text that makes its tensors, which any interpreter with torch can run."""

    name: str
    stmt: str
    setup: str
    tensors: str
    """What they are like, for people."""


class Timing(NamedTuple):
    """What one side made of one input in one round: a time, or why there is none."""

    of: Input
    side: int
    seconds: float | None
    failure: str = ""


def make_inputs(ops: Sequence[str], n: int, seed: int, preset: str) -> Iterator[Input]:
    """The first inputs of each operator, by index: input 7 is the same whether or not 6 is asked for."""
    for op in dict.fromkeys(ops):
        stmt, fuzzer_class = OPS[op]
        fuzzer = fuzzer_class(seed=seed, preset=preset)
        for index in range(n):
            draft = fuzzer.draft(index)
            tensors = " ".join(
                "x".join(map(str, tensor["size"])) + ("" if tensor["is_contiguous"] else "~")
                for tensor in fuzzer.describe(draft).values()
            )
            yield Input(f"{op} {index}", stmt, fuzzer.write(draft), tensors)


def measure_in_turns(
    inputs: Sequence[Input], pythons: Sequence[str], replicates: int, min_run_time: float
) -> Iterator[Timing]:
    """All inputs on both sides, round after round; who is first changes, so that it favours nobody.

    Each round has workers of its own. Two workers of the same build differ by several percent on small operators, and
    each stays as it is for as long as it lives: with one for all rounds that would be taken for a change.
    """
    definition = {of.name: benchmark.TimerArgs(of.stmt, of.setup) for of in inputs}
    for turn in range(replicates):
        sides = [benchmark.run_benchmarks(definition, python=python, min_run_time=min_run_time) for python in pythons]
        for place, of in enumerate(inputs):
            for side in (0, 1) if (turn + place) % 2 == 0 else (1, 0):
                result = next(sides[side])
                if result.measurement is not None:
                    yield Timing(of, side, result.measurement.median)
                else:
                    yield Timing(of, side, None, result.failures[0].message)


def judge_all(timings: Sequence[Timing], threshold: float) -> tuple[dict[Input, Judgement], dict[Input, str]]:
    """A judgement for each input, or what failed; neither where an interrupt left too few replicates."""
    judged, failed = {}, {}
    for of in dict.fromkeys(timing.of for timing in timings):
        own = [timing for timing in timings if timing.of == of]
        faults = [f"{SIDES[timing.side]}: {timing.failure}" for timing in own if timing.seconds is None]
        times = [[t.seconds for t in own if t.side == side and t.seconds is not None] for side in (0, 1)]
        pairs = min(map(len, times))
        if faults:
            failed[of] = faults[0]
        elif pairs >= FEWEST:
            judged[of] = judge(times[0][:pairs], times[1][:pairs], threshold)
    return judged, failed


def print_report(timings: Sequence[Timing], threshold: float, test_variance: bool) -> None:
    """A line for each input from the fastest head to the slowest, and how many of each kind there are."""
    judged, failed = judge_all(timings, threshold)
    columns = f"{'base':>8}   {'head/base':>9}   {'interval':<13}   {'noise':>6}   verdict"
    print(f"{'input':<8} {'x, y':<28} {columns}\n{'-' * 96}")
    for of, judgement in sorted(judged.items(), key=lambda pair: pair[1].ratio):
        interval = f"{judgement.low:.3f}-{judgement.high:.3f}"
        shown = f"{judgement.ratio:>9.3f}   {interval:<13}   {judgement.noise:>6.1%}   {judgement.verdict.value}"
        print(f"{of.name:<8} {of.tensors:<28} {name_time(judgement.base_s):>8}   {shown}")
    for of, reason in failed.items():
        print(f"{of.name:<8} {of.tensors:<28} {'failed':>8}")
        print(textwrap.fill(reason, 96, initial_indent="  ", subsequent_indent="  "))
    verdicts = [judgement.verdict for judgement in judged.values()]
    counts = [f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict]
    print(f"\n{', '.join(counts)}, {len(failed)} failed.  ~ is not contiguous.")
    if left := len({timing.of for timing in timings}) - len(judged) - len(failed):
        print(f"Inputs that are not judged, because they have been through fewer than {FEWEST} rounds: {left}.")
    if test_variance:
        alarms = len(verdicts) - verdicts.count(Verdict.UNCHANGED)
        print(f"Both sides are the same build. False alarms: {alarms} of {len(verdicts)} inputs.")


def make_parser() -> argparse.ArgumentParser:
    """All options."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.end_to_end", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add, default = parser.add_argument, "(default: %(default)s)"
    add("--base", metavar="PYTHON", help="the interpreter to compare with")
    add("--head", metavar="PYTHON", help="the interpreter that may be faster or slower")
    add("--test-variance", action="store_true", help="one build on both sides: --base, or the running interpreter")
    add(
        "--ops",
        nargs="+",
        choices=OPS,
        default=DEFAULT_OPS,
        metavar="OP",
        help=f"{', '.join(OPS)} (default: {' '.join(DEFAULT_OPS)})",
    )
    add("-n", type=positive, help="inputs for each operator (default: 10; 3 with --quick)")
    add("--preset", choices=("small", "medium", "large"), default="small", help=f"how large {default}")
    add("--replicates", type=positive, metavar="R", help=f"rounds, at least {FEWEST} (default: 5; 3 with --quick)")
    add("--threshold", type=percentage, default=5.0, metavar="PERCENT", help=f"smaller changes are none {default}")
    add("--min-run-time", type=duration, metavar="S", help="seconds for each (default: 0.1; 0.02 with --quick)")
    add("--seed", type=seed, default=0, help=f"another seed gives other inputs {default}")
    add("--quick", action="store_true", help="fewer inputs and rounds, measured more briefly")
    return parser


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, checked and complete."""
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.test_variance:
        if args.base and args.head:
            parser.error("--test-variance has one build on both sides; give --base or --head, not both")
        args.base = args.head = args.base or args.head or sys.executable
    if not (args.base and args.head):
        parser.error("two interpreters are needed, --base PYTHON and --head PYTHON; or --test-variance")
    for python in (args.base, args.head):
        if shutil.which(python) is None:
            parser.error(f"there is no interpreter {python}")
    args.replicates = args.replicates or (3 if args.quick else 5)
    if args.replicates < FEWEST:
        parser.error(f"noise is what differs between replicates: at least {FEWEST} are needed")
    args.n = args.n or (3 if args.quick else 10)
    if args.min_run_time is None:
        args.min_run_time = 0.02 if args.quick else 0.1
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print what changed."""
    args = parse(argv)
    inputs = list(make_inputs(args.ops, args.n, args.seed, args.preset))
    print(f"base: {args.base}\nhead: {args.head}\n")
    timings: list[Timing] = []
    with UntilInterrupted() as measuring:
        try:
            for timing in measure_in_turns(inputs, (args.base, args.head), args.replicates, args.min_run_time):
                timings.append(timing)
                show_progress(len(timings), 2 * args.replicates * len(inputs))
        except benchmark.TorchmarkError as error:
            print(error, file=sys.stderr)
            return 2
    print_report(timings, args.threshold / 100, args.test_variance)
    return measuring.exit_code


if __name__ == "__main__":
    run(main)
