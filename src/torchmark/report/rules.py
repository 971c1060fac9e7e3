"""Rules on inputs in plain sentences."""

from __future__ import annotations

import math

from torchmark.analysis.contest import NOTABLE
from torchmark.model.rule import Condition, Relation, Rule, RuleSearch
from torchmark.report.printable import count

# Effects nearer to zero are called equal speed: half of the 3 % that the sides of a rule differ by, so that at most one
# of them is.
EQUAL = NOTABLE / 2

# Where a name says what is, so that "not" can be put behind it.
_VERBS = {" is ": " is not ", " are ": " are not ", " has ": " does not have ", " have ": " do not have "}


def word_condition(condition: Condition) -> str:
    """A condition as people say it.

    >>> word_condition(Condition("x is contiguous", Relation.IS, False))
    'x is not contiguous'
    >>> word_condition(Condition("k0", Relation.ABOVE, 1024))
    'k0 > 1024'
    """
    if isinstance(condition.value, bool) and condition.relation in (Relation.IS, Relation.IS_NOT):
        holds = condition.value is (condition.relation is Relation.IS)
        return condition.feature if holds else _deny(condition.feature)
    return f"{condition.feature} {condition.relation.value} {_show(condition.value)}"


def _deny(claim: str) -> str:
    places = [(claim.index(verb), verb) for verb in _VERBS if verb in claim]
    if not places:
        return f"not {claim}"
    _, verb = min(places)
    return claim.replace(verb, _VERBS[verb], 1)


def _show(value: float | str) -> str:
    """A number without needless zeros, and never in powers of ten as long as it is whole."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def word_conditions(conditions: tuple[Condition, ...]) -> str:
    """All of them in one clause."""
    words = [word_condition(condition) for condition in conditions]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def word_rule(rule: Rule, subject: str, other: str | None = None) -> str:
    """A rule as a sentence on one statement held against another, or on one alone if there is no other.

    Effects are those of the subject's time over the other's; without another, of its time per element.
    """
    when = word_conditions(rule.conditions)
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
    if ratio < 0.1:
        return f"{ratio:.2g}"
    return f"{ratio:.{2 if ratio < 1.995 else 1 if ratio < 9.95 else 0}f}"


def word_search(search: RuleSearch, subject: str, other: str | None = None) -> list[str]:
    """All rules, a sentence each, or the one sentence why there is none."""
    if search.rules:
        first, *more = (word_rule(rule, subject, other) for rule in search.rules)
        return [first, *(f"Of the other inputs: {sentence}" for sentence in more)]
    inputs = search.searched + search.held_back
    if search.too_few:
        return [f"Too few inputs to look for rules: {inputs}. Try -n 200."]
    if search.candidate:
        clause = f"{word_conditions(search.candidate)}, seen in {count(search.searched, 'input')}"
        held = f"the {search.held_back} that were held back"
        return [f"No rule explains it: {clause}, did not hold up in {held}. More may tell: try -n {2 * inputs}."]
    return ["No rule: nothing that is known of the inputs goes with it."]
