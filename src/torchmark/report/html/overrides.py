"""What overrides cost as a section of a report, and as a folder of files.

Apart from the report, in which it is one section of many.
"""

from __future__ import annotations

import io
import statistics
import zipfile
from collections.abc import Mapping, Sequence

from torchmark.analysis.overrides import CLASSIC, PLAIN, SUBCLASS, TENSOR_LIKE, OverrideRow
from torchmark.analysis.summarise import summarise
from torchmark.model.costs import Flame
from torchmark.model.environment import Environment
from torchmark.model.judgement import CaseJudgement, Side, Verdict
from torchmark.model.plan import Case
from torchmark.model.report_data import Section
from torchmark.report.flame.labels import gauge_of, label_of
from torchmark.report.flame.page import rank_growth
from torchmark.report.text.gate import summarise_markdown
from torchmark.report.text.grid import escape_markdown, markdown_row
from torchmark.report.text.judgements import close
from torchmark.report.text.names import join_label
from torchmark.report.text.units import format_delta

# The first moment that the format knows.
BEGINNING = (1980, 1, 1, 0, 0, 0)
READABLE = 0o644 << 16


def pack_bundle(folder: str, files: Mapping[str, str | bytes]) -> bytes:
    """All files below one folder, so that unpacking makes no mess."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(f"{folder}/{name}", BEGINNING)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = READABLE
            # Characters that no encoding has, such as halves of pairs, are no reason to write nothing.
            archive.writestr(info, content.encode(errors="replace") if isinstance(content, str) else content)
    return packed.getvalue()


SECTION_TITLE = "What overriding costs, in base and in branch"
ABOUT = (
    "How much more a call costs than the same call with plain Tensors: nanoseconds between minimum times, and "
    "instructions. The first rows are torch.add with the types of PyTorch's own benchmark; of the others it is the "
    "median over all calls."
)
COLUMNS = ("operands", "base, ns", "branch, ns", "base, instructions", "branch, instructions", "change")
NANO = 1e9
# What the kinds are called, by the tag of their cases.
KINDS = {SUBCLASS: "subclasses, all calls", TENSOR_LIKE: "Tensor-likes, all calls"}


def make_override_section(base: Sequence[OverrideRow], head: Sequence[OverrideRow]) -> Section | None:
    """A table of both sides; None where there is nothing to tell."""
    before = {row.case: row for row in base}
    both = [(before[row.case], row) for row in head if row.case in before]
    rows = [_list_cells(row.operands, [(old, row)]) for old, row in both if row.has(CLASSIC) and not row.has(PLAIN)]
    found = {name: [pair for pair in both if pair[1].has(tag)] for tag, name in KINDS.items()}
    rows += [_list_cells(name, pairs) for name, pairs in found.items() if len(pairs) > 1]
    return Section(SECTION_TITLE, (ABOUT,), COLUMNS, tuple(rows)) if rows else None


def _list_cells(name: str, pairs: Sequence[tuple[OverrideRow, OverrideRow]]) -> tuple[str, ...]:
    overheads = [[overhead for pair in pairs if (overhead := pair[side].overhead)] for side in (0, 1)]
    times = [_median([one.seconds for one in side]) for side in overheads]
    base, head = counts = [_median([one.instructions for one in side]) for side in overheads]
    change = "" if base is None or head is None or not base else f"{(head - base) / base:+.0%}".replace("%", " %")
    return (
        name,
        *(_describe_finding(time, NANO) for time in times),
        *(_describe_finding(count, 1.0) for count in counts),
        change,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _describe_finding(value: float | None, scale: float) -> str:
    return "not measured" if value is None else format_delta(value * scale)


TITLE = "What __torch_function__ costs: branch against base"
MICRO = 1e6
# The graphs of each case that became slower, in the order in which one looks at them; each is an SVG and a PNG.
DIFFERENCE, BASE, BRANCH = "difference-{}", "base-{}", "branch-{}"


def write_tables(judgements: Sequence[CaseJudgement]) -> str:
    """All judgements, then minima and standard deviations of both sides, as Markdown that is ready to be pasted."""
    timed = [one for one in judgements if one.time is not None and one.time.visits]
    verdicts = summarise_markdown(judgements, title=TITLE, base="base", head="branch")
    if not timed:
        return verdicts
    heads = ["case", *(f"{side} {what}" for side in ("base", "branch") for what in ("minimum, us", "std, us"))]
    lines = ["### Times of a call", "", markdown_row(heads), markdown_row(["---", *["---:"] * 4])]
    for one in timed:
        cells = [text for side in Side for text in _format_times(one, side)]
        lines.append(markdown_row([escape_markdown(join_label(one.case.label)), *cells]))
    note = "A time is the median of one visit's blocks: both sides took turns in each visit."
    return verdicts + "\n" + "\n".join([*lines, "", note]) + "\n"


def _format_times(judgement: CaseJudgement, side: Side) -> tuple[str, str]:
    assert judgement.time is not None
    if not (times := judgement.time.list_times(side)):
        return "", ""
    found = summarise(times)
    return f"{found.minimum * MICRO:.3f}", "" if found.std is None else f"{found.std * MICRO:.3f}"


def write_guide(
    judgements: Sequence[CaseJudgement],
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
        grown = _describe_growth(differences[one.case]) if one.case in differences else ""
        link = _link(one.case, names, untraced, png=not no_png)
        lines.append(f"- {escape_markdown(join_label(one.case.label))}{grown}{link}")
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


def _describe_growth(flame: Flame) -> str:
    first = next(iter(rank_growth(flame)), None)
    if first is None or first.change <= 0:
        return ""
    more = gauge_of(flame).format_change(first.change)
    return f", most in {escape_markdown(label_of(first.frame))} ({more} instructions)"


def _link(case: Case, names: Mapping[Case, str], untraced: Mapping[Case, str], *, png: bool) -> str:
    if case not in names:
        reason = untraced.get(case)
        return "" if reason is None else f" (no flame graph: {escape_markdown(reason)})"
    files = [kind.format(names[case]) for kind in (DIFFERENCE, BASE, BRANCH)]
    return ": " + ", ".join(
        f"[{file}.svg](flames/{file}.svg)" + (f" ([PNG](flames/{file}.png))" if png else "") for file in files
    )
