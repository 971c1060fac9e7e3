"""What commands do with damaged and hostile files: `python -m benchmarks.hostile`.

A whole campaign takes some minutes. `--only KIND --seed N` runs one input again and tells all that is known of it; with
`--keep FOLDER` its files stay there.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from benchmarks.context import describe
from tests.hostile.campaign import carry_out_all, list_failures, list_trials, tabulate, warm_up
from tests.hostile.inputs import KINDS
from tests.hostile.trials import Trial, carry_out

# How often it says that it is alive.
NOTES_S = 10.0


def main() -> None:
    """Run the campaign or one input of it; ends with 1 if anything was not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=KINDS, action="append", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--seed", type=int, help="only this input, and all that is known of it")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --seed: lay out its files there")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="only the first N-th of the inputs")
    chosen = parser.parse_args()
    kinds = tuple(chosen.only or KINDS)
    if chosen.seed is not None:
        warm_up()
        trials = [carry_out(kind, chosen.seed, chosen.keep) for kind in kinds]
        for trial in trials:
            _tell_all(trial)
    else:
        print(describe(), "\n")
        trials = carry_out_all(list_trials(kinds, chosen.share), _Progress().note)
        print(tabulate(trials))
        print(f"\n{len(trials)} inputs, {sum(len(trial.codes) for trial in trials)} commands")
        print(list_failures(trials) or "No failures.")
    sys.exit(any(trial.failures for trial in trials))


def _tell_all(trial: Trial) -> None:
    print(f"{trial.kind} {trial.seed}, {trial.seconds:.2f} s")
    for step, code in trial.codes:
        print(f"  {step}: exit code {code}")
    for failure in trial.failures:
        print(f"\n{failure.step}: {failure.what} [{failure.where}]\n{failure.detail}")


class _Progress:
    """A line now and then, on standard error."""

    def __init__(self) -> None:
        self._begun = self._noted = time.monotonic()
        self._number = self._failures = 0

    def note(self, trial: Trial) -> None:
        self._number += 1
        self._failures += len(trial.failures)
        now = time.monotonic()
        if now - self._noted > NOTES_S:
            self._noted = now
            spent = now - self._begun
            print(f"{spent:4.0f} s: {self._number} inputs, {self._failures} failures", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
