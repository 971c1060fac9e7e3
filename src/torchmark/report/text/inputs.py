"""Inputs, statements compared over many inputs, and rules on inputs, as text."""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchmark.analysis.input_comparisons import NOTABLE, InputComparison, InputRatio
from torchmark.model.inputs import Condition, FuzzedInput, Relation, Rule, RuleSearch
from torchmark.report.progress import Advancing, Tried, draw_bar, format_rate
from torchmark.report.text.failures import sort_of, summarise_failure
from torchmark.report.text.table import TextColumn, TextRow, TextTable
from torchmark.report.text.terminal import count, cut, measure, one_line, wrap
from torchmark.report.text.units import format_duration, format_ratio, format_time


def describe_input(one: FuzzedInput) -> str:
    """All tensors of an input, and their type if that is one of its features.

    >>> tensor = {"size": (64, 3), "steps": (1, 2), "order": (1, 0)}
    >>> describe_input(FuzzedInput(7, {}, {"x": tensor, "y": {"size": (3,)}}, ""))
    'x 64x3 every 1,2 order 1,0; y 3'
    >>> describe_input(FuzzedInput(7, {"dtype": "int8"}, {"x": {"size": (3,)}}, ""))
    'int8 x 3'
    """
    tensors = "; ".join(describe_tensor_input(name, tensor) for name, tensor in one.tensors.items())
    # Told only where inputs differ in it.
    return f"{one.features['dtype']} {tensors}" if "dtype" in one.features else tensors


def describe_tensor_input(name: str, tensor: Mapping[str, Any]) -> str:
    """Its size, and whatever is not as usual: steps, the order in memory, what is sparse."""
    parts = [name, "x".join(map(str, tensor["size"])) or "scalar"]
    if any(step != 1 for step in tensor.get("steps", ())):
        parts.append(f"every {_join(tensor['steps'])}")
    order = tensor.get("order", ())
    if tuple(order) != tuple(range(len(order))):
        parts.append(f"order {_join(order)}")
    if "sparse_dim" in tensor:
        parts.append(f"sparse in {tensor['sparse_dim']}, density {tensor['density']:.2g}")
        parts += [] if tensor["is_coalesced"] else ["uncoalesced"]
    return " ".join(parts)


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


class InputAdvance(Advancing[Tried]):
    """How many inputs are done, and how many of these failed. Failures of the same sort are told once."""

    def __init__(self, total: int, clock: Callable[[], float]) -> None:
        super().__init__(total, clock)
        self._told: set[tuple[str, str, str]] = set()

    def add(self, event: Tried) -> str | None:
        one, failure = event
        self.done += 1
        if failure is None:
            return None
        self.failed += 1
        sort = sort_of(failure)
        if sort in self._told:
            return None
        self._told.add(sort)
        return f"Failed: input {one.index} ({describe_input(one)}): {summarise_failure(failure)}"

    def describe(self) -> str:
        text = f"{self.done} of {count(self.total, 'input')} measured"
        return f"{text}, {self.failed} failed" if self.failed else text

    def conclude(self) -> str:
        return f"{self.describe()}, in {format_duration(self.elapsed_s)}"

    def draw(self, width: int, *, fancy: bool) -> str:
        parts = [f"{self.done}/{self.total} inputs", f"{self.failed} failed" if self.failed else ""]
        parts.append(format_rate(self.done, self.elapsed_s))
        if 0 < self.done < self.total:
            parts.append(f"about {format_duration(self.elapsed_s / self.done * (self.total - self.done))} left")
        return draw_bar(self.done, self.total, width, fancy=fancy) + "  ".join(filter(None, parts))


# Statements longer than this make a sentence hard to read.
LONGEST_NAME = 48


def name_statement(position: int) -> str:
    """A letter for a statement, for tables in which there is no room for all of it."""
    turn, letter = divmod(position, len(string.ascii_uppercase))
    return string.ascii_uppercase[letter] + (str(turn) if turn else "")


def list_statements(stmts: Sequence[str], width: int) -> list[str]:
    return [cut(f"{name_statement(i)}  {one_line(stmt)}", width) for i, stmt in enumerate(stmts)]


def name_sides(comparison: InputComparison, letters: tuple[str, str]) -> tuple[str | None, str]:
    """The other side and the statement for a sentence: as they are, or by their letters if that would be too long."""
    base, stmt = comparison.base, comparison.stmt
    if any(len(text.splitlines()) > 1 or measure(text) > LONGEST_NAME for text in (stmt, base or "")):
        return None if base is None else letters[0], letters[1]
    return base, stmt


def render_comparison_on_inputs(
    comparison: InputComparison, letters: tuple[str, str], width: int, top: int
) -> list[str]:
    """The extremes as a table, and a sentence on the rest. `letters` stand for the other side and the statement."""
    if not comparison.entries:
        return ["Nothing was measured."]
    entries = comparison.entries
    shown = [*entries[:top], *entries[max(top, len(entries) - top) :]]
    hidden = len(entries) - len(shown)
    rows = [_fill(comparison, entry) for entry in shown]
    if hidden:
        rows.insert(top, TextRow({"ratio": "..."}, instead=[f"{count(hidden, 'input')} between these"]))
    table = TextTable(_list_columns(comparison, letters), rows, width, gives_way=("input", "interval"))
    return [*table.lines(), "", *wrap(describe_ratios(comparison, letters), width)]


def _list_columns(comparison: InputComparison, letters: tuple[str, str]) -> list[TextColumn]:
    a, b = letters
    alone = comparison.base is None
    ratio = TextColumn("ratio", "ns/element" if alone else f"{b}/{a}")
    times = [TextColumn("time")] if alone else [TextColumn("base", a), TextColumn("time", b)]
    # Its number tells an input from others also where the rest is cut.
    text = TextColumn("input", left=True, least=16)
    return [ratio, TextColumn("interval", "95 % interval"), *times, text]


def describe_ratios(comparison: InputComparison, letters: tuple[str, str]) -> str:
    """The middle, and on how many inputs there is a difference worth speaking of."""
    middle, p25, p75 = (format_ratio(comparison.quantile(q)) for q in (0.5, 0.25, 0.75))
    a, b = letters
    number = len(comparison.entries)
    if number == 1 and comparison.base is None:
        return f"It takes {middle} ns an element."
    if number == 1:
        return f"{b} takes {middle} times as long as {a}."
    if comparison.base is None:
        return f"In the middle it takes {middle} ns an element; half of {count(number, 'input')} take {p25} to {p75}."
    faster, slower = comparison.count_notable()
    share = f"{math.expm1(NOTABLE) * 100:.0f} %"
    return (
        f"In the middle {b} takes {middle} times as long as {a}; half of {count(number, 'input')} lie between {p25} "
        f"and {p75}. {b} is faster by more than {share} on {faster} of them, slower on {slower}."
    )


def _fill(comparison: InputComparison, entry: InputRatio) -> TextRow:
    low, high = entry.ratio.low, entry.ratio.high
    cells = {
        "ratio": format_ratio(math.exp(entry.ratio.log_ratio)),
        "time": format_time(entry.other_s),
        "input": f"#{entry.input.index}  {describe_input(entry.input)}",
    }
    if low is not None and high is not None:
        cells["interval"] = f"{format_ratio(math.exp(low))} to {format_ratio(math.exp(high))}"
    if comparison.base is not None:
        cells["base"] = format_time(entry.base_s)
    return TextRow(cells)


# Effects nearer to zero are called equal speed: half of the 3 % that the sides of a rule differ by, so that at most one
# of them is.
EQUAL = NOTABLE / 2


# Where a name says what is, so that "not" can be put behind it.
_VERBS = {" is ": " is not ", " are ": " are not ", " has ": " does not have ", " have ": " do not have "}


def describe_condition(condition: Condition) -> str:
    feature = condition.feature
    if isinstance(condition.value, bool) and condition.relation in (Relation.IS, Relation.IS_NOT):
        if condition.value is (condition.relation is Relation.IS):
            return feature
        verb = min((verb for verb in _VERBS if verb in feature), key=feature.index, default="")
        return feature.replace(verb, _VERBS[verb], 1) if verb else f"not {feature}"
    # Without needless zeros, and never in powers of ten as long as it is whole.
    is_whole = isinstance(condition.value, float) and condition.value.is_integer()
    return f"{feature} {condition.relation.value} {int(condition.value) if is_whole else condition.value}"


def describe_conditions(conditions: tuple[Condition, ...]) -> str:
    words = [describe_condition(condition) for condition in conditions]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def describe_rule(rule: Rule, subject: str, other: str | None = None) -> str:
    """A rule as a sentence on one statement held against another, or on one alone if there is no other.

    Effects are those of the subject's time over the other's; without another, of its time per element.
    """
    when = describe_conditions(rule.conditions)
    seen = f"({rule.inputs_inside} and {rule.inputs_outside} held-back inputs)"
    if other is None:
        more = "longer" if rule.inside > rule.outside else "less time"
        ratio = _times(rule.inside - rule.outside)
        return f'"{subject}" takes {more} per element when {when}: {ratio} times as long as elsewhere {seen}.'
    there, elsewhere = _times(rule.inside), _times(rule.outside)
    claim = _claim(rule.inside, rule.outside, f'"{other}"')
    return f'"{subject}" is {claim} when {when}: {there} times its time there, {elsewhere} times elsewhere {seen}.'


def _claim(inside: float, outside: float, other: str) -> str:
    """What is so inside and not outside, or is more so."""
    here, elsewhere = (0 if abs(effect) < EQUAL else math.copysign(1, effect) for effect in (inside, outside))
    if here == 0 and elsewhere != 0:
        return f"as fast as {other}" if elsewhere > 0 else f"no faster than {other}"
    if here != elsewhere or here == 0:
        return f"slower than {other}" if inside > outside else f"faster than {other}"
    more = "and more so" if abs(inside) > abs(outside) else "but less so"
    return f"slower than {other}, {more}" if here > 0 else f"faster than {other}, {more}"


def _times(effect: float) -> str:
    """A ratio to about two figures, and hundredths around one.

    >>> _times(0.0), _times(math.log(3.2)), _times(math.log(41)), _times(math.log(0.012))
    ('1.00', '3.2', '41', '0.012')
    """
    ratio = math.exp(effect)
    return f"{ratio:.2g}" if ratio < 0.1 else f"{ratio:.{2 if ratio < 1.995 else 1 if ratio < 9.95 else 0}f}"


def describe_search(search: RuleSearch, subject: str, other: str | None = None) -> list[str]:
    """All rules, a sentence each, or the one sentence why there is none."""
    if search.rules:
        first, *more = (describe_rule(rule, subject, other) for rule in search.rules)
        return [first, *(f"Of the other inputs: {sentence}" for sentence in more)]
    inputs = search.searched + search.held_back
    if search.too_few:
        return [f"Too few inputs to look for rules: {inputs}. Try -n 200."]
    if search.candidate:
        clause = f"{describe_conditions(search.candidate)}, seen in {count(search.searched, 'input')}"
        held = f"the {search.held_back} that were held back"
        return [f"No rule explains it: {clause}, did not hold up in {held}. More may tell: try -n {2 * inputs}."]
    return ["No rule: nothing that is known of the inputs goes with it."]
