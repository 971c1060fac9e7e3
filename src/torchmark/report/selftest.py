"""What a self-test has shown, for people and for programs."""

from __future__ import annotations

from typing import Any

from torchmark.analysis.selftest import CONFIDENCE, Power, Trust
from torchmark.analysis.sequential import SELF_TEST_FACTOR, floor_for
from torchmark.report.cells import wrap
from torchmark.report.changes import word_share
from torchmark.report.printable import count
from torchmark.report.units import format_time


def render_selftest(trust: Trust, stmt: str, run_s: float, width: int) -> str:
    """False alarms, power by size, and what that means for comparisons."""
    lines = wrap(
        f"{stmt}, about {format_time(run_s)}, against itself: {count(trust.false_alarms, 'false alarm')} in "
        f"{count(trust.trials, 'trial')} (the true rate is below {word_share(trust.most_false)}, {CONFIDENCE:.0%} "
        f"confidence); the same in {trust.same}. Half of them took {trust.seconds:.2f} s or less.",
        width,
    )
    lines += ["", f"{'slower by':>10}  {'found':>9}  {'that is':>7}  {'seconds':>7}"]
    lines += [_row(power) for power in trust.powers]
    smallest = trust.smallest_seen_s
    seen = (
        f"The smallest slowdown that is found four times in five: {format_time(smallest)} "
        f"({word_share(smallest / run_s)})."
        if smallest is not None
        else "None of these slowdowns is found four times in five: is the machine busy?"
    )
    floor = floor_for(run_s, trust.sd)
    text = (
        f"Trials against itself spread by {word_share(trust.sd)}, so that `torchmark ab` calls nothing below "
        f"{word_share(floor)} a change of such a statement."
    )
    return "\n".join([*lines, "", *wrap(seen, width), *wrap(text, width)])


def _row(power: Power) -> str:
    found = f"{power.found} of {power.trials}"
    return f"{format_time(power.injected_s):>10}  {found:>9}  {power.share:>7.0%}  {power.seconds:>7.2f}"


def plain_selftest(trust: Trust, run_s: float) -> dict[str, Any]:
    """The same as plain values for JSON."""
    return {
        "run_s": run_s,
        "trials": trust.trials,
        "false_alarms": trust.false_alarms,
        "false_alarms_below": trust.most_false,
        "same": trust.same,
        "sd": trust.sd,
        "floor": floor_for(run_s, trust.sd),
        "floor_factor": SELF_TEST_FACTOR,
        "seconds": trust.seconds,
        "smallest_seen_s": trust.smallest_seen_s,
        "powers": [
            {
                "injected_s": power.injected_s,
                "trials": power.trials,
                "found": power.found,
                "wrong_way": power.wrong_way,
                "low": power.low,
                "high": power.high,
                "seconds": power.seconds,
            }
            for power in trust.powers
        ],
    }
