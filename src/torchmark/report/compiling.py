"""What compiling costs, as text."""

from __future__ import annotations

from torchmark.model.compiling import CompileCosts
from torchmark.model.times import Times
from torchmark.report.printable import count
from torchmark.report.units import format_time
from torchmark.stats.order import quantile


def describe_compile_costs(costs: CompileCosts) -> str:
    """A line for each cost, then what was compiled and what was not; nothing at the end."""
    rows = tell_compile_costs(costs)
    width = max(len(name) for name, _ in rows)
    lines = [f"  {name:<{width}}  {text}" for name, text in rows]
    return "\n".join([*lines, *(f"    break: {text}" for text in costs.cold.breaks)])


def tell_compile_costs(costs: CompileCosts) -> tuple[tuple[str, str], ...]:
    """Each cost by its name."""
    return (
        ("steady call", _median(costs.steady)),
        ("guards and call", _median(costs.call)),
        ("compile, empty cache", format_time(costs.cold_s)),
        _word_warm(costs),
        ("graphs", _word_graphs(costs)),
    )


def _median(times: Times) -> str:
    return format_time(quantile(sorted(times.per_run), 0.5))


def _word_warm(costs: CompileCosts) -> tuple[str, str]:
    """Back ends other than Inductor keep nothing, and Inductor may refuse to."""
    if costs.warm.cache_hits:
        return "compile, from cache", format_time(costs.warm_s)
    return "compile, again", f"{format_time(costs.warm_s)} (nothing was found in the cache)"


def _word_graphs(costs: CompileCosts) -> str:
    breaks = count(costs.graph_breaks, "break") if costs.graph_breaks else "no breaks"
    text = f"{costs.graphs}, {breaks}"
    if costs.cold.abandoned:
        text += f", {count(costs.cold.abandoned, 'function')} left to the interpreter"
    return text
