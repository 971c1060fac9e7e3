"""Many hostile inputs, one after the other, and what became of them in a table.

`python -m tests.hostile.campaign` carries out what runs with the tests; `python -m benchmarks.hostile` all of it.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from tests.hostile import stores
from tests.hostile.inputs import KINDS, READS, STORE, SURROUNDINGS, WORK, Input, Step
from tests.hostile.trials import MISDEEDS, REFUSALS, Failure, Trial, capturing, carry_out, try_out
from torchmark.cli.main import main as torchmark

# Which part of the whole runs with the tests.
SHARE = 10
# How many seeds a table names for one kind of failure.
_SOME = 5


def list_trials(kinds: Iterable[str] = tuple(KINDS), share: int = 1) -> list[tuple[str, int]]:
    """Kinds and seeds: all, or the first tenth of each kind, say."""
    return [(kind, seed) for kind in kinds for seed in range(-(-KINDS[kind].number // share))]


def warm_up() -> None:
    """Run every command once on a store that is in order: to import in this process what each input would have to.

    They have to accept it, or refusing hostile ones would mean nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, WORK)
        path = Path(folder, STORE)
        path.parent.mkdir(parents=True)
        Path(folder, "out").mkdir()
        path.write_bytes(stores.pair())
        before = os.getcwd()
        os.chdir(work)
        try:
            for name, arguments in READS.items():
                with capturing() as printed:
                    code = torchmark(list(arguments))
                refused = name in ("rm of a missing run", "run --resume --dry-run", "compare RUN")
                assert (code in REFUSALS) == refused, f"{name}: {code}: {printed[0]}"
        finally:
            os.chdir(before)


def check_watch() -> None:
    """See that what no command may do is found out, or finding nothing would mean nothing."""
    for what in MISDEEDS:
        made = Input(SURROUNDINGS, (Step("a misdeed", ("call", what)),))
        found = [failure.what for failure in try_out(made, "misdeed", 0).failures]
        assert found == [what], f"{what}: {found}"


def carry_out_all(trials: Iterable[tuple[str, int]], note: Callable[[Trial], None] = lambda _: None) -> list[Trial]:
    """One after the other; `note` hears of each."""
    warm_up()
    check_watch()
    # What is there by now stays: processes of inputs need not look through it, which would have all of it copied.
    gc.collect()
    gc.freeze()
    done = []
    for kind, seed in trials:
        done.append(carry_out(kind, seed))
        note(done[-1])
    return done


def tabulate(trials: Sequence[Trial]) -> str:
    """How many inputs each command was given, and what it did with them, in Markdown."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for trial in trials:
        failed = {failure.step for failure in trial.failures}
        for step, code in trial.codes:
            became = "failures" if step in failed else "refused" if code in REFUSALS else "accepted"
            counts.setdefault((trial.kind, trial.commands[step]), Counter())[became] += 1
    lines = ["| input | command | times | refused | accepted | failures |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for (kind, command), found in sorted(counts.items(), key=lambda item: (list(KINDS).index(item[0][0]), item[0][1])):
        numbers = (sum(found.values()), found["refused"], found["accepted"], found["failures"])
        lines.append(f"| {kind} | {command} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def list_failures(trials: Iterable[Trial]) -> str:
    """Each kind of failure once, with how often and by which inputs it was found; nothing if there is none."""
    found: dict[tuple[str, str], list[tuple[Trial, Failure]]] = {}
    for trial in trials:
        for failure in trial.failures:
            found.setdefault((failure.what, failure.where), []).append((trial, failure))
    lines = []
    for (what, where), cases in sorted(found.items(), key=lambda item: -len(item[1])):
        lines.append(f"{what}  [{where}]  {len(cases)} times, in: {', '.join(sorted({f.step for _, f in cases})):.200}")
        seeds = dict.fromkeys(f"--only {trial.kind!r} --seed {trial.seed}" for trial, _ in cases)
        lines += [f"    {seed}" for seed in list(seeds)[:_SOME]]
    return "\n".join(lines)


def main() -> None:
    """What runs with the tests; ends with 1 if anything was not as it has to be."""
    trials = carry_out_all(list_trials(share=SHARE))
    print(tabulate(trials))
    print(f"{len(trials)} inputs", list_failures(trials), sep="\n")
    sys.exit(any(trial.failures for trial in trials))


if __name__ == "__main__":
    main()
