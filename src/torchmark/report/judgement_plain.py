"""Judgements as plain values for JSON. Names of fields stay; what is not a finite number is null."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from torchmark.model.comparison import ComparisonCaveat
from torchmark.model.judgement import CountEvidence, Judgement, Spread, TimeEvidence
from torchmark.report.changes import find_seconds, has_interval, to_share
from torchmark.report.comparison_wording import word_doubt
from torchmark.report.explaining import plain_explanation
from torchmark.report.plain import plain_failure
from torchmark.report.variants import name_case


def plain_judgement(judgement: Judgement) -> dict[str, Any]:
    """What is said of a case, and on what evidence.

    - `case` is its name for people, `key` its identity within its `suite`; `base_stmt` is the statement that it is
      held against, where that is another.
    - `verdict` is "faster", "slower", "same", "undecided" or "failed"; `cause` says how counts and time agree.
    - `time`, `instructions`, `allocations` and `explanation` are null where there is no such evidence.
    - `caveats` have their own fields and a `text`; `failures` tell the `side`.
    """
    case, counted = judgement.case, judgement.count
    plain = {
        "case": name_case(case),
        "key": case.key,
        "suite": case.suite,
        "label": list(case.label),
        "autolabels": case.autolabels.as_dict,
        "num_threads": case.args.num_threads,
        "verdict": judgement.verdict.value,
        "cause": judgement.cause.value,
        "time": None if judgement.time is None else _plain_time(judgement.time),
        "instructions": None if counted is None else _plain_instructions(counted),
        "allocations": None if counted is None else _plain_allocations(counted),
        "caveats": [_plain_caveat(caveat) for caveat in judgement.caveats],
        "failures": [{"side": failed.side.value, **plain_failure(failed.failure)} for failed in judgement.failures],
        "explanation": None if judgement.explanation is None else plain_explanation(judgement.explanation),
        "stmt": case.args.stmt,
        "base_stmt": None if judgement.base_case is None else judgement.base_case.args.stmt,
    }
    finite: dict[str, Any] = _keep_finite(plain)
    return finite


def _plain_time(time: TimeEvidence) -> dict[str, Any]:
    """`ratio` is head's time over base's; `change`, its interval `low` to `high` and limits are shares of base's.

    `by_layout` has the change that each layout shows, and those of its `visits` in their order, with the seconds of a
    run on both sides; `fresh` layouts were added to see a change again, or to decide.
    """
    return {
        "verdict": time.verdict.value,
        "ratio": to_share(time.log_ratio) + 1,
        "change": to_share(time.log_ratio),
        "low": to_share(time.low) if has_interval(time) else None,
        "high": to_share(time.high) if has_interval(time) else None,
        "confidence": time.confidence,
        "p_value": time.p_value,
        "base_s": time.base_s,
        "head_s": time.head_s,
        "delta_s": find_seconds(time),
        "floor": to_share(time.floor),
        "equivalence": to_share(time.equivalence),
        "smallest_visible": to_share(time.smallest_visible),
        "layouts": time.layouts,
        "visits": time.sweeps,
        "layout_sd": time.layout_sd,
        "visit_sd": time.fork_sd,
        "confirmed": time.confirmed,
        "measured_s": time.seconds,
        "needed_s": time.needed_s,
        "by_layout": [
            {
                "fresh": layout.fresh,
                "change": to_share(layout.centre),
                "visits": [to_share(ratio) for ratio in layout.log_ratios],
                "base_s": layout.base_s,
                "head_s": layout.head_s,
            }
            for layout in time.visits
        ],
    }


def _plain_instructions(counted: CountEvidence) -> dict[str, Any]:
    """Of one run, medians over layouts of memory; ranges are from the least to the greatest."""
    return {
        "base": counted.base.value,
        "head": counted.head.value,
        "delta": counted.delta,
        "change": counted.ratio,
        "base_range": _plain_range(counted.base),
        "head_range": _plain_range(counted.head),
    }


def _plain_range(spread: Spread) -> list[float]:
    return [spread.low, spread.high]


def _plain_allocations(counted: CountEvidence) -> dict[str, Any]:
    """Calls into the malloc family in one run, and those of torch's own allocator."""
    return {
        "base": counted.base_allocations,
        "head": counted.head_allocations,
        "delta": counted.head_allocations - counted.base_allocations,
        "base_tensors": counted.base_tensor_allocations,
        "head_tensors": counted.head_tensor_allocations,
        "delta_tensors": counted.head_tensor_allocations - counted.base_tensor_allocations,
    }


def _plain_caveat(caveat: ComparisonCaveat) -> dict[str, Any]:
    return {"kind": caveat.kind, **dataclasses.asdict(caveat), "text": word_doubt(caveat)}


def _keep_finite(value: Any) -> Any:
    """The same with lists for tuples, and None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {name: _keep_finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_keep_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
