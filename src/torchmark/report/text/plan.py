"""Cases as a tree by label, and what a run would do: what, where, how often, for how long."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from torchmark.analysis.estimate import Estimate
from torchmark.model.plan import AutogradMode, Case, Metric, Plan
from torchmark.report.text.names import AS_WRITTEN, name_target
from torchmark.report.text.terminal import DEFAULT_WIDTH, LEAST_WIDTH, count, group, measure, pad, printable, wrap
from torchmark.report.text.units import format_duration, format_time

# The tree of cases is laid out on narrower terminals than tables are.
LEAST_TREE_WIDTH = 20
INDENT = 2
GAP = "  "
SEPARATOR = " · "

_SPACE_WITHIN = re.compile("(?<![,;:]) ")


def render_cases(cases: Sequence[Case], width: int = DEFAULT_WIDTH) -> str:
    """The tree; what labels have in common is shown once. Cases of several suites are apart, below the suite's name."""
    width = max(width, LEAST_TREE_WIDTH)
    suites: dict[str, _Node] = {}
    for case in cases:
        suites.setdefault(case.suite, _Node()).add(case.label, case)
    rows: list[_Row] = []
    for suite, root in suites.items():
        if len(suites) > 1:
            rows.append((0, printable(suite), ()))
        rows += root.rows(int(len(suites) > 1))
    # Few long names are no reason to push all variants to the right.
    widths = (INDENT * depth + measure(name) for depth, name, own in rows if own)
    longest = max((taken for taken in widths if taken <= width * 2 // 5), default=width // 4)
    return "\n".join(line for row in rows for line in _lay_out(*row, longest + len(GAP), width))


_Row = tuple[int, str, tuple[Case, ...]]
"""How deep it is, its name, and the cases whose label ends with it."""


class _Node:
    """A part of labels, the cases whose label ends with it, and what may follow it."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self.children: dict[str, _Node] = {}

    def add(self, path: Sequence[str], case: Case) -> None:
        node = self
        for part in path:
            node = node.children.setdefault(part, _Node())
        node.cases.append(case)

    def rows(self, depth: int) -> Iterator[_Row]:
        for name, child in self.children.items():
            # A branch that does not fork is one row.
            path = [name]
            while not child.cases and len(child.children) == 1:
                ((name, child),) = child.children.items()
                path.append(name)
            yield depth, printable(" / ".join(path)), tuple(child.cases)
            yield from child.rows(depth + 1)


def _lay_out(depth: int, name: str, cases: Sequence[Case], column: int, width: int) -> list[str]:
    """A name, and to the right of it the variants; below it where it is too long."""
    indent = min(INDENT * depth, width // 2)
    names = wrap(name, width - indent - INDENT) or [""]
    lines = [" " * indent + names[0], *(" " * (indent + INDENT) + line for line in names[1:])]
    texts = _fold(_describe_variants(cases), width - column) if cases else []
    if texts and measure(lines[-1]) + len(GAP) <= column:
        lines[-1] = pad(lines[-1], column) + texts.pop(0)
    return [*lines, *(" " * column + text for text in texts)]


def _wrap_list(text: str, width: int, hanging: int = 0) -> list[str]:
    """Wrap, where there is room for that, behind commas and the like alone."""
    glued = _SPACE_WITHIN.sub("\xa0", text)
    if max(map(measure, glued.split(" "))) > width - hanging:
        glued = text
    return [line.replace("\xa0", " ") for line in wrap(glued, width, hanging)]


def _fold(segments: Iterable[str], width: int) -> list[str]:
    """As many segments a line as fit, with separators between them."""
    lines: list[str] = []
    for segment in segments:
        if lines and measure(lines[-1] + SEPARATOR + segment) <= width:
            lines[-1] += SEPARATOR + segment
        else:
            lines += _wrap_list(segment, width)
    return lines


def _describe_variants(cases: Sequence[Case]) -> list[str]:
    """Languages by runtime; thread counts and autograd modes behind them all, or at the runtimes that differ."""
    variants = list(_group(cases))
    modes = {(autograd, threads) for _, autograd, threads, _ in variants}
    nameless = AS_WRITTEN if len({runtime for runtime, *_ in variants}) > 1 else ""
    segments = []
    for runtime, autograd, threads, languages in variants:
        told = _describe_modes(autograd, threads) if len(modes) > 1 else ""
        head = " ".join(filter(None, (runtime or nameless, f"({told})" if told else "")))
        segments.append(": ".join(filter(None, (head, ", ".join(languages)))))
    common = _describe_modes(*modes.pop()) if len(modes) == 1 else ""
    return [*segments, *(["each " + common] if common else [])]


_Texts = tuple[str, ...]
_Variant = tuple[str, _Texts, tuple[int, ...], _Texts]


def _group(cases: Sequence[Case]) -> Iterator[_Variant]:
    """Cases as products: a runtime with autograd modes, thread counts and languages, all of them combined."""
    labels = [(case.autolabels.as_dict, case.args.num_threads) for case in cases]
    languages = group(((one["runtime"], one["autograd"], n), one["language"]) for one, n in labels)
    threads = group(((runtime, autograd, tuple(spoken)), n) for (runtime, autograd, n), spoken in languages.items())
    modes = group(
        ((runtime, spoken, tuple(sorted(numbers))), autograd)
        for (runtime, autograd, spoken), numbers in threads.items()
    )
    for (runtime, spoken, numbers), several in modes.items():
        yield runtime, tuple(several), numbers, spoken


def _describe_modes(autograd: _Texts, threads: tuple[int, ...]) -> str:
    """What is not the usual of forward alone and one thread."""
    parts = []
    if autograd not in ((AutogradMode.FORWARD.value,), (AutogradMode.EXPLICIT.value,)):
        parts.append(", ".join(name or AS_WRITTEN for name in autograd))
    if threads != (1,):
        parts.append(f"{', '.join(map(str, threads))} threads")
    return "; ".join(parts)


def summarise_cases(cases: Sequence[Case], of: int | None = None, width: int = DEFAULT_WIDTH) -> str:
    """How many there are, of how many, and of which kinds; tags on a line of their own."""
    width = max(width, LEAST_TREE_WIDTH)
    number = count(len(cases), "case") if of is None or of == len(cases) else f"{len(cases)} of {count(of, 'case')}"
    labels = [case.autolabels.as_dict for case in cases]
    kinds = [_tally(label["language"] for label in labels)]
    if any(label["runtime"] for label in labels):
        kinds.append(_tally(label["runtime"] for label in labels))
    if {label["autograd"] for label in labels} - {AutogradMode.FORWARD.value, AutogradMode.EXPLICIT.value}:
        kinds.append(_tally(label["autograd"] for label in labels))
    threads = Counter(case.args.num_threads for case in cases)
    if set(threads) - {1}:
        kinds.append(", ".join(f"{n} with {count(size, 'thread')}" for size, n in sorted(threads.items())))
    lines = _wrap_list(f"{number}: {'; '.join(kinds)}", width, INDENT)
    tags = _tally(tag for case in cases for tag in case.tags)
    return "\n".join([*lines, *_wrap_list(f"Tags: {tags}", width, INDENT)] if tags else lines)


def _tally(texts: Iterable[str]) -> str:
    return ", ".join(f"{n} {text or AS_WRITTEN}" for text, n in Counter(texts).items())


def render_plan(plan: Plan, expected: Estimate, cores: int, width: int, *, of: int | None = None) -> str:
    """The cases, how each is measured, where, and how long that will take. `of` is how many there were to select."""
    width = max(width, LEAST_WIDTH)
    lines = summarise_cases(plan.cases, of, width).split("\n")
    for text in (*_describe_sampling(plan), _describe_places(plan, cores), _describe_estimate(expected)):
        lines += wrap(text, width, 2)
    return "\n".join(lines)


def _describe_sampling(plan: Plan) -> list[str]:
    sampling, texts = plan.sampling, []
    if Metric.WALL in sampling.metrics:
        texts.append(f"Timed: one after the other, each for {format_time(sampling.min_run_time_s)} or more")
    if Metric.COUNT in sampling.metrics:
        texts.append(f"Counted: in {count(len(sampling.layouts), 'memory layout')}")
    if sampling.repeat > 1:
        texts.append(f"Rounds: {sampling.repeat}")
    return texts


def _describe_places(plan: Plan, cores: int) -> str:
    names = ", ".join(map(name_target, plan.targets))
    several = f"; {len(plan.targets)} environments: {names}" if len(plan.targets) > 1 else ""
    return f"Where: {count(cores, 'core')}{several}"


def _describe_estimate(expected: Estimate) -> str:
    if not expected.total:
        return "Nothing is left to measure."
    basis = f"from {expected.known} of {expected.total} earlier durations"
    if not expected.known:
        basis = "a rough guess: none of these has been measured here"
    times = f"about {format_duration(expected.clock_s)}, {format_duration(expected.cpu_s)} of processor time"
    return f"{count(expected.total, 'result')}: {times} ({basis})"
