"""What a comparison of overrides is handed in with: tables to paste, and a page that says what is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmark.analysis.summarise import summarise
from torchmark.model.case import Case
from torchmark.model.environment import Environment
from torchmark.model.flame import Flame
from torchmark.model.judgement import Judgement, Side, Verdict
from torchmark.report.flame_names import label_of
from torchmark.report.flame_numbers import gauge_of
from torchmark.report.flame_ranking import rank_growth
from torchmark.report.judgements import close
from torchmark.report.markdown import escape_markdown, markdown_row
from torchmark.report.step_summary import summarise_markdown
from torchmark.report.variants import join_label

TITLE = "What __torch_function__ costs: branch against base"
MICRO = 1e6
# The graphs of each case that became slower, in the order in which one looks at them; each is an SVG and a PNG.
DIFFERENCE, BASE, BRANCH = "difference-{}", "base-{}", "branch-{}"


def write_tables(judgements: Sequence[Judgement]) -> str:
    """All judgements, then minima and standard deviations of both sides, as Markdown that is ready to be pasted."""
    timed = [one for one in judgements if one.time is not None and one.time.visits]
    verdicts = summarise_markdown(judgements, title=TITLE, base="base", head="branch")
    if not timed:
        return verdicts
    heads = ["case", *(f"{side} {what}" for side in ("base", "branch") for what in ("minimum, us", "std, us"))]
    lines = ["### Times of a call", "", markdown_row(heads), markdown_row(["---", *["---:"] * 4])]
    for one in timed:
        cells = [text for side in Side for text in _show_times(one, side)]
        lines.append(markdown_row([escape_markdown(join_label(one.case.label)), *cells]))
    note = "A time is the median of one visit's blocks: both sides took turns in each visit."
    return verdicts + "\n" + "\n".join([*lines, "", note]) + "\n"


def _show_times(judgement: Judgement, side: Side) -> tuple[str, str]:
    assert judgement.time is not None
    times = judgement.time.list_times(side)
    if not times:
        return "", ""
    found = summarise(times)
    return f"{found.minimum * MICRO:.3f}", "" if found.std is None else f"{found.std * MICRO:.3f}"


def write_guide(
    judgements: Sequence[Judgement],
    names: Mapping[Case, str],
    differences: Mapping[Case, Flame],
    environments: Mapping[str, Environment | None],
    command: str,
    untraced: Mapping[Case, str],
    no_png: str = "",
) -> str:
    """The page that explains the bundle. `names` are those of the files of cases that were traced.

    `differences` are their graphs; `no_png` says why these are there as SVG only.
    """
    slower = [one for one in judgements if one.verdict is Verdict.SLOWER]
    lines = [f"# {TITLE}", "", escape_markdown(close(judgements)), ""]
    lines += [f"- {side}: {_describe(environment)}" for side, environment in environments.items()]
    lines += ["", "## Became slower", ""] + ([] if slower else ["Nothing."])
    for one in slower:
        grown = _tell_growth(differences[one.case]) if one.case in differences else ""
        lines.append(
            f"- {escape_markdown(join_label(one.case.label))}{grown}{_link(one.case, names, untraced, png=not no_png)}"
        )
    lines += [
        "",
        "## Files",
        "",
        "- `report.html`: all of it on one page; open it in any browser, it needs nothing else.",
        "- `tables.md`: the tables, ready to be pasted into a pull request.",
        "- `results.json`: the judgements with all that they rest on; `run.json`: the counts with costs by function, "
        "for `torchmark import run.json`.",
        "- `flames/`: of each case that became slower, a graph of base, one of the branch, one of their difference"
        + (f". There are no PNG files: {escape_markdown(no_png)}" if no_png else ", as SVG and as PNG."),
        "",
        "## Again",
        "",
        "```sh",
        *command.splitlines(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _describe(environment: Environment | None) -> str:
    if environment is None:
        return "not known"
    commit = f" ({environment.torch_commit[:12]})" if environment.torch_commit else ""
    return escape_markdown(f"torch {environment.torch_version}{commit}, Python {environment.python_version}")


def _tell_growth(flame: Flame) -> str:
    """The function whose own cost grew most."""
    first = next(iter(rank_growth(flame)), None)
    if first is None or first.change <= 0:
        return ""
    more = gauge_of(flame).show_change(first.change)
    return f", most in {escape_markdown(label_of(first.frame))} ({more} instructions)"


def _link(case: Case, names: Mapping[Case, str], untraced: Mapping[Case, str], *, png: bool) -> str:
    if case not in names:
        reason = untraced.get(case)
        return "" if reason is None else f" (no flame graph: {escape_markdown(reason)})"
    files = [kind.format(names[case]) for kind in (DIFFERENCE, BASE, BRANCH)]
    return ": " + ", ".join(
        f"[{file}.svg](flames/{file}.svg)" + (f" ([PNG](flames/{file}.png))" if png else "") for file in files
    )
