"""What compiling costs before the first result is there: a small table with a line a case."""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.model.compiling import CompileCosts
from torchmark.model.summary import CaseSummary
from torchmark.report.cells import cut, cut_middle, measure, pad, wrap
from torchmark.report.failed import join_reason
from torchmark.report.printable import count, printable
from torchmark.report.units import show_time
from torchmark.report.variants import Variants, name_target
from torchmark.stats.order import quantile

HEADS = ("guards, call", "first compile", "from cache", "graphs", "breaks")
# Heads for terminals without much room.
SHORT_HEADS = ("guards", "first", "cached", "graphs", "breaks")
LEAST_NAME = 36
MOST_BREAKS = 5
TITLE = "torch.compile"


def render_compile_costs(summaries: Sequence[CaseSummary], width: int) -> list[str]:
    """The table with its explanation; nothing where nothing was compiled."""
    compiled = [(summary, summary.wall.compiling) for summary in summaries if summary.wall and summary.wall.compiling]
    if not compiled:
        return []
    names = _name(compiled, several=len({summary.target for summary in summaries}) > 1)
    cells = [_fill(costs) for _, costs in compiled]
    heads = HEADS if width - sum(map(len, HEADS)) - 2 * len(HEADS) >= LEAST_NAME else SHORT_HEADS
    sizes = [max(len(head), *map(len, column)) for head, column in zip(heads, zip(*cells, strict=True), strict=True)]
    while sizes and width - sum(sizes) - 2 * len(sizes) < LEAST_NAME // 2:
        sizes.pop()
    room = width - sum(sizes) - 2 * len(sizes)
    size = min(room, max(len(TITLE), *map(measure, names)))
    lines = [_join(TITLE, heads, sizes, size)]
    lines += [_join(cut_middle(name, size), row, sizes, size) for name, row in zip(names, cells, strict=True)]
    lines += [join_reason(names[i], text, width) for i, text in _tell_breaks([costs for _, costs in compiled])]
    text = "Besides the steady time above: guards and the way in and out of each call; compiling with an empty cache, "
    return [*(cut(line, width) for line in lines), *wrap(f"{text}and in another process with a filled one.", width)]


def _name(compiled: Sequence[tuple[CaseSummary, CompileCosts]], *, several: bool) -> list[str]:
    """What stands in the table's corner need not be said again in every line."""
    variants = Variants(summary.case for summary, _ in compiled)
    names = [variants.name(summary.case).replace(f", {TITLE}", "", 1) for summary, _ in compiled]
    targets = [f" ({name_target(summary.target)})" if several else "" for summary, _ in compiled]
    return [name + target for name, target in zip(names, targets, strict=True)]


def _fill(costs: CompileCosts) -> tuple[str, ...]:
    calls = costs.call.per_run
    return (
        show_time(quantile(sorted(calls), 0.5)) if calls else "",
        show_time(costs.cold_s),
        show_time(costs.warm_s) if costs.warm.cache_hits else "no cache",
        str(costs.graphs),
        str(costs.graph_breaks),
    )


def _tell_breaks(all_costs: Sequence[CompileCosts]) -> list[tuple[int, str]]:
    """What broke graphs and what was not compiled at all, of the first few cases that had it."""
    told = []
    for i, costs in enumerate(all_costs):
        texts = list(map(printable, costs.cold.breaks))
        if costs.cold.abandoned:
            texts.append(f"{count(costs.cold.abandoned, 'function')} left to the interpreter")
        if texts:
            told.append((i, "; ".join(texts)))
    return told[:MOST_BREAKS]


def _join(name: str, cells: Sequence[str], sizes: Sequence[int], size: int) -> str:
    return pad(name, size) + "".join("  " + pad(cell, n, right=True) for cell, n in zip(cells, sizes, strict=False))
