"""What the front end of `torch.compile` has done in this process so far, by its own account."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from torchmark.measure.source import locate

ACCOUNT = "torch._dynamo.utils"

# A sentence of many reasons is read by nobody.
MOST_REASONS = 3
ADVICE = "Keep shapes, types and other values that it depends on the same."
# In the text by which torch counts functions that it had to compile again too often; from then on it leaves them alone.
LIMIT = "recompile limit exceeded"


class CompilerCounters(NamedTuple):
    """Numbers that only grow. One that has grown says that the compiler has been at work."""

    frames: int = 0
    """Functions, and parts of functions behind a graph break, that it tried to compile."""
    abandoned: int = 0
    graphs: int = 0
    graph_breaks: int = 0
    lowered: int = 0
    """Graphs that were prepared for a back end, backward passes among them."""
    cache_hits: int = 0
    cache_misses: int = 0

    def since(self, earlier: CompilerCounters) -> CompilerCounters:
        """What has been added.

        >>> CompilerCounters(3, 0, 2).since(CompilerCounters(1, 0, 1))
        CompilerCounters(frames=2, abandoned=0, graphs=1, graph_breaks=0, lowered=0, cache_hits=0, cache_misses=0)
        """
        return CompilerCounters(*(now - then for now, then in zip(self, earlier)))


def read_tally() -> CompilerCounters:
    """The numbers as they are now: all zero where the compiler was never loaded."""
    account = sys.modules.get(ACCOUNT)
    return CompilerCounters() if account is None else make_tally(account.counters)


def make_tally(counters: Mapping[str, Mapping[str, int]]) -> CompilerCounters:
    frames, stats, autograd, inductor = (
        counters.get(group, {}) for group in ("frames", "stats", "aot_autograd", "inductor")
    )
    hits, misses = inductor.get("fxgraph_cache_hit", 0), inductor.get("fxgraph_cache_miss", 0)
    total = frames.get("total", 0)
    return CompilerCounters(
        frames=total,
        abandoned=total - frames.get("ok", 0),
        graphs=stats.get("unique_graphs", 0),
        graph_breaks=sum(counters.get("graph_break", {}).values()),
        lowered=autograd.get("total", 0) + hits + misses + inductor.get("fxgraph_cache_bypass", 0),
        cache_hits=hits,
        cache_misses=misses,
    )


def reached_limit() -> bool:
    """Whether the compiler has given up on some function, because no two calls of it were alike."""
    reasons = getattr(sys.modules.get(ACCOUNT), "counters", {}).get("unimplemented", {})
    return any(LIMIT in str(reason) for reason in reasons)


class Watch:
    """Notes what the compiler has done until now, to tell later what it has done since."""

    def __init__(self) -> None:
        clear = getattr(sys.modules.get(ACCOUNT), "clear_compilation_metrics", None)
        if clear is not None:
            # The list is of limited length: what is in it later is new.
            clear()
        self._breaks = len(_list_breaks())
        self._tally = read_tally()

    def added(self) -> CompilerCounters:
        return read_tally().since(self._tally)

    def breaks(self) -> tuple[str, ...]:
        return tuple(map(describe_break, _list_breaks()[self._breaks :]))

    def find_compiling(self) -> str | None:
        """What was compiled since, and why; None if nothing was, and if what was compiled before is still used."""
        if reached_limit():
            return f"torch.compile had to compile it again too often, and has left it to the interpreter. {ADVICE}"
        if not any(self.added()):
            return None
        listed: Sequence[Any] = getattr(sys.modules.get(ACCOUNT), "get_compilation_metrics", list)()
        return describe_compiling(listed, self.breaks())


def _list_breaks() -> Sequence[Any]:
    return getattr(sys.modules.get(ACCOUNT), "graph_break_reasons", ())


def describe_compiling(compilations: Sequence[Any], breaks: Sequence[str]) -> str:
    """A sentence from records of compilations and graph breaks. Records need not have all that we look for."""
    reasons = [*map(describe_compilation, compilations), *(f"graph break: {text}" for text in breaks)]
    # The same function may have been compiled many times for the same reason.
    reasons = list(dict.fromkeys(reasons))
    more = f" ({len(reasons) - MOST_REASONS} more)" if len(reasons) > MOST_REASONS else ""
    told = f": {'; '.join(reasons[:MOST_REASONS])}{more}" if reasons else ""
    return f"torch.compile was at work while the statement was measured{told}. {ADVICE}"


def describe_compilation(compilation: Any) -> str:
    """Which function was compiled, and which guard asked for it.

    >>> class Record: co_name, recompile_reason = "f", "0/1: n == 1      # return x + n  # a.py:3"
    >>> describe_compilation(Record)
    'f was compiled again, for a guard failed: n == 1'
    """
    name = getattr(compilation, "co_name", None)
    if name is None:
        return "a backward pass was compiled"
    file, line = getattr(compilation, "co_filename", None), getattr(compilation, "co_firstlineno", None)
    place = f" ({describe_place(file, line)})" if file is not None and line is not None else ""
    if not hasattr(compilation, "recompile_reason"):
        # An older torch, which does not tell.
        return f"{name}{place} was compiled"
    guard = compilation.recompile_reason
    if guard is None:
        return f"{name}{place} was compiled for the first time"
    # Behind the number of the code that was guarded; then come the source line and where it stands.
    text = str(guard).split("\n")[0].split(" # ")[0].strip()
    number, colon, rest = text.partition(": ")
    return f"{name}{place} was compiled again, for a guard failed: {rest if colon and '/' in number else text}"


def describe_break(reason: Any) -> str:
    text = str(reason.reason).split("\n")[0].strip()
    stack = reason.user_stack
    return f"{text} ({describe_place(stack[-1].filename, stack[-1].lineno)})" if stack else text


def describe_place(file: str, line: int) -> str:
    """A line as a person knows it.

    >>> describe_place("model.py", 3)
    'model.py, line 3'
    """
    name, number = locate(file, line)
    return f"{name}, line {number}"
