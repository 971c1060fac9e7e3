"""JSON documents in which some values have been replaced by hostile ones, by chance but the same for the same seed."""

from __future__ import annotations

import json
import random
from typing import Any

# Numbers as they stand in a document: some of them no Python value can be written as.
NUMBERS = (
    "1" + "0" * 400,
    "-1" + "0" * 400,
    "1" * 5000,
    "NaN",
    "Infinity",
    "-Infinity",
    "1e308",
    "-1e308",
    "1e999",
    "5e-324",
    "5e10",
    "6e10",
    "-1",
    "0",
    "-0.0",
    "0.5",
    "1",
    "2",
    "100001",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "253402300800",
    "-62135596801",
)
TEXTS = (
    "\x1b]0;PWN\x07\x1b[2J\x1b[31m",
    "\x9b31m",
    "\u202eevil\u2066",
    "\n::error title=evil::from the input",
    "::add-mask::a",
    "\r::stop-commands::x",
    "a\u2028::error::b\x85::error::c\x0b::error::d",
    "../../../../home/precious.txt",
    "/etc/passwd",
    "./tools/check",
    "bench_planted.py",
    "docs/conf_helper.py",
    "$(tools/check)",
    "; tools/check",
    "",
    " ",
    "-",
    "--help",
    "@",
    "base",
    "head",
    "nan",
    "1/0",
    "0/0",
    "1/2",
    "999999/999999",
    "a\x00b",
    "a\ud800b",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "[a](javascript:alert(1)) @everyone | `b` |",
    "[bold]{0}%s%n\\",
    "\u0301" * 3000,
    "x" * 200_000,
    "語" * 20_000,
    "[clone " * 10_000,
    " [" * 10_000,
    "a." * 20_000 + "<" * 5_000,
)
OTHERS = (
    "null",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    '[1, "a", {}]',
    '{"a": [1]}',
    '""',
    '"1"',
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    "[" + "0," * 100_000 + "0]",
    '["' + '","' * 20_000 + '"]',
)
# A value of its own kind gets past the first checks; one of another kind has to be refused there.
OF_ITS_KIND = 0.8
_DUPLICATE = "hostile duplicate of "


class Raw:
    """A value as it is to stand in the document, also where that is not JSON."""

    def __init__(self, text: str) -> None:
        self.text = text


def dump_raw(document: object) -> str:
    """The document as text, which need not be JSON that can be read."""
    raw: list[str] = []

    def note(value: object) -> str:
        assert isinstance(value, Raw)
        raw.append(value.text)
        return f"hostile value {len(raw) - 1} "

    text = json.dumps(document, default=note)
    for number, value in enumerate(raw):
        text = text.replace(f'"hostile value {number} "', value)
    return text.replace(f'"{_DUPLICATE}', '"')


def settle(document: object) -> Any:
    """The document as whoever reads it gets it; as it is if nobody can read it."""
    text = dump_raw(document)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return document


def mutate(document: Any, chance: random.Random, times: int | None = None) -> Any:
    """The document with one to three changes. It is changed in place, unless it is itself replaced."""
    for _ in range(chance.choice((1, 1, 1, 2, 3)) if times is None else times):
        places = list(_find_places(document))
        if not places:
            return _replace(document, chance)
        holder, key = chance.choice(places)
        _change(holder, key, chance)
    return document


def _find_places(value: Any) -> list[tuple[Any, Any]]:
    """All that can be replaced: what holds it, and where."""
    places = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict):
            keys: list[Any] = list(holder)
        elif isinstance(holder, list):
            keys = list(range(len(holder)))
        else:
            continue
        places += [(holder, key) for key in keys]
        waiting += [holder[key] for key in keys]
    return places


def _change(holder: Any, key: Any, chance: random.Random) -> None:
    kind = chance.random()
    if kind < 0.78:
        holder[key] = _replace(holder[key], chance)
    elif kind < 0.84:
        del holder[key]
    elif isinstance(holder, dict):
        if kind < 0.92:
            holder[chance.choice(("unknown", *TEXTS))] = _replace(None, chance)
        elif kind < 0.96:
            holder[_DUPLICATE + str(key)] = _replace(holder[key], chance)
        else:
            other = chance.choice(list(holder))
            holder[key], holder[other] = holder[other], holder[key]
    elif kind < 0.92:
        holder.extend([holder[key]] * chance.choice((1, 2, 1000)))
    else:
        other = chance.randrange(len(holder))
        holder[key], holder[other] = holder[other], holder[key]


def _replace(value: Any, chance: random.Random) -> Any:
    if chance.random() < OF_ITS_KIND:
        if isinstance(value, str):
            text = chance.choice(TEXTS)
            return chance.choice((text, text, value + text, text + value))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return Raw(chance.choice(NUMBERS))
        if isinstance(value, list) and value:
            return chance.choice(([], value * 2, value[:-1], value[::-1], [value], [*value, None]))
    kind = chance.random()
    if kind < 0.3:
        return Raw(chance.choice(NUMBERS))
    return chance.choice(TEXTS) if kind < 0.6 else Raw(chance.choice(OTHERS))
