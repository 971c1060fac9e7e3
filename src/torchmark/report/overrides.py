"""What overrides cost, for people: tables, findings, and the lines that reports on a change have always had."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from torchmark.analysis.override_expectations import Expectation, Extreme, OverrideFinding
from torchmark.analysis.overrides import CLASSIC, PLAIN, OverrideRow
from torchmark.model.run import Run, RunInfo
from torchmark.report.cells import wrap
from torchmark.report.closing import close
from torchmark.report.failed import list_failures
from torchmark.report.heading import describe_run
from torchmark.report.marks import explain_environments, explain_marks
from torchmark.report.override_tables import MICROSECOND, SHORT_STAGES, tabulate_costs, tabulate_stages
from torchmark.report.printable import count
from torchmark.report.units import format_time

LEAST_WIDTH = 60
# What `torch.tensor`, which makes plain Tensors, has always been called in these lines.
MAKER_OF_PLAIN = "tensor"


def render_overrides(
    run: Run,
    rows: Sequence[OverrideRow],
    findings: Sequence[OverrideFinding],
    width: int,
    *,
    colour: bool = False,
    shown: RunInfo | None = None,
    store: str = "",
) -> str:
    """All of it. `shown` is the run as commands that are proposed may call it, `store` where it is kept."""
    width = max(width, LEAST_WIDTH)
    summaries = [row.summary for row in rows]
    stages = tabulate_stages(rows, width, colour=colour)
    parts = [
        [describe_run(run, width)],
        tabulate_costs(rows, width, colour=colour),
        list(_explain_costs(run, rows, width)),
        [*wrap("The instructions that are more than with plain Tensors, by stage of the call:", width), "", *stages]
        if stages
        else [],
        _explain_stages(width) if stages else [],
        [line for finding in findings for line in wrap(word_finding(finding), width, 2)],
        list_classic_lines(rows),
        list_failures(summaries, run.plan, width),
        close(summaries, run.plan, width, shown, store),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _explain_costs(run: Run, rows: Sequence[OverrideRow], width: int) -> Iterator[str]:
    sampling, summaries, texts = run.plan.sampling, [row.summary for row in rows], []
    if any(summary.wall for summary in summaries):
        blocks = count(sampling.blocks or 0, "block")
        texts.append(
            f"Times are microseconds per call, of {blocks} of {sampling.number:,} calls each; std is the standard "
            "deviation of blocks, ± the 95 % interval of the median."
        )
    if any(summary.count for summary in summaries):
        texts.append("Instructions are per call, with those of the empty loop.")
    if any(row.overhead for row in rows):
        texts.append("What has a plus sign is more than with plain Tensors; times between minima.")
    yield from wrap(" ".join(texts), width)
    yield from explain_marks(summaries, width)
    yield from explain_environments(summaries, width)


def _explain_stages(width: int) -> list[str]:
    long = [f"{short} is {stage}" for stage, short in SHORT_STAGES.items() if short in ("interp", "t_func", "alloc")]
    return wrap(f"{', '.join(long)}. Functions by stage are in the JSON.", width)


def word_finding(finding: OverrideFinding) -> str:
    """A finding as a sentence that begins with whether it is met."""
    return f"{'Met' if finding.is_met else 'Not met'}: {_WORDS[finding.expectation](finding)}"


def _word_cheapest(finding: OverrideFinding) -> str:
    least = finding.least
    end = f"closest is {_name(least)}, with {least.value:+,.0f} instructions"
    if finding.is_met:
        return f"plain Tensors are cheapest in every call. {_capitalise(end)}."
    return f"plain Tensors are cheapest, except in {finding.of - finding.met} of {finding.of} cases; {end}."


def _word_nothing(finding: OverrideFinding) -> str:
    most = finding.most
    return (
        "overrides cost plain Tensors next to nothing. Functions for them take at most "
        f"{most.value:,.0f} instructions of a call ({most.row.call}); expected are less than {finding.limit:,.0f}."
    )


def _word_limit(finding: OverrideFinding, whom: str, expected: str) -> str:
    least, most = finding.least, finding.most
    pay = f"{_time(least)} to {_time(most)} more ({_name(least)}; {_name(most)})"
    if finding.of == 1:
        pay = f"{_time(most)} more ({_name(most)})"
    return (
        f"{whom} pay {pay}. Expected is {expected}, less than {format_time(finding.limit)}: "
        f"{finding.met} of {count(finding.of, 'case')}."
    )


def _word_order(finding: OverrideFinding) -> str:
    names = ", ".join(f"{one.row.operands} ({_time(one)})" for one in finding.order)
    return f"the overhead of torch.add should grow from Tensor to subclasses to Tensor-likes. It grows so: {names}."


_WORDS = {
    Expectation.PLAIN_IS_CHEAPEST: _word_cheapest,
    Expectation.NOTHING_FOR_PLAIN: _word_nothing,
    Expectation.SMALL_FOR_SUBCLASSES: lambda finding: _word_limit(finding, "subclasses of Tensor", "little"),
    Expectation.COUPLE_FOR_TENSOR_LIKES: lambda finding: _word_limit(finding, "Tensor-likes", "a couple of us"),
    Expectation.ORDER: _word_order,
}


def _name(extreme: Extreme) -> str:
    return f"{extreme.row.call} / {extreme.row.operands}"


def _time(extreme: Extreme) -> str:
    return format_time(extreme.value) if extreme.value else "0"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def list_classic_lines(rows: Sequence[OverrideRow]) -> list[str]:
    """The lines that reports on a change have always had, word for word."""
    lines = []
    for row in rows:
        if row.has(CLASSIC) and row.summary.wall is not None:
            name = MAKER_OF_PLAIN if row.has(PLAIN) else row.operands
            times = row.summary.wall.times
            std = math.nan if times.std is None else times.std
            lines.append(
                f"Type {name} had a minimum time of {times.minimum / MICROSECOND:.6g} us and a standard deviation of "
                f"{std / MICROSECOND:.6g} us."
            )
    return lines
