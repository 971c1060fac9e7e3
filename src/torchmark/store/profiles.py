"""Costs by function as plain values, and anything plain as a small piece of bytes that is found by its content."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from torchmark.errors import StoreError
from torchmark.model.costs import INSTRUCTIONS, Call, Costs, Function, Profile, add_calls
from torchmark.store.definitions import hash_text
from torchmark.store.fields import check_kind, take, take_integers
from torchmark.store.plain import dump, parse

# Costs by function of a case of the standard suite are a text of 0.1 MB, those of a whole training step with
# torch.compile below 1 MB.
MOST_BYTES = 32 << 20
# Such texts are 3 to 13 times as long as what they are compressed to. zlib could claim a thousand, so that a small file
# could fill the memory: values of JSON take up to 26 times as much of it as their text.
MOST_RATIO = 50
# Below this, anything may be as regular as it likes.
SMALL = 64 << 10


def pack(part: object) -> tuple[str, bytes]:
    """The hash of plain values, and their compressed text."""
    text = dump(part)
    if len(text) > MOST_BYTES:
        raise StoreError(f"A profile of {len(text)} bytes is too large to be kept.")
    content = text.encode("ascii")
    body = zlib.compress(content)
    # What is more regular than `unpack` believes is kept as it is.
    return hash_text(text), body if len(content) <= _bound(body) else zlib.compress(content, 0)


def _bound(body: bytes) -> int:
    """How long the text may be that this was compressed from."""
    return min(MOST_BYTES, SMALL + MOST_RATIO * len(body))


def unpack(name: str, body: bytes) -> Any:
    """The plain values that `pack` gave this for, if the bytes are still the same."""
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(body, _bound(body))
    except zlib.error as error:
        raise StoreError(f"It is damaged: what was compressed cannot be read: {error}.") from error
    if not reader.eof:
        raise StoreError(f"It is damaged: a compressed text is cut off, or longer than {_bound(body)} bytes.")
    if not text.isascii() or hash_text(text.decode("ascii")) != name:
        raise StoreError("It is damaged: a compressed text has another content than it had.")
    return parse(text, "blob")


def plain_profile(profile: Profile) -> dict[str, Any]:
    """A profile with each text once. Inclusive costs are derived from the rest, unless they are something else."""
    functions = list(
        dict.fromkeys([*profile.exclusive, *profile.inclusive, *(f for pair in profile.calls for f in pair)])
    )
    numbers = {function: number for number, function in enumerate(functions)}
    texts = {text: number for number, text in enumerate(dict.fromkeys(text for f in functions for text in f))}
    derived = _derive(profile.exclusive, profile.calls)
    return {
        "events": list(profile.events),
        "trigger": profile.trigger,
        "texts": list(texts),
        "functions": [[texts[text] for text in function] for function in functions],
        "exclusive": [list(costs) for costs in profile.exclusive.values()],
        "calls": [[numbers[one], numbers[two], c.times, *c.costs] for (one, two), c in profile.calls.items()],
        "inclusive": None
        if derived == profile.inclusive
        else [[numbers[function], *costs] for function, costs in profile.inclusive.items()],
    }


def read_profile(data: object) -> Profile:
    """The profile that `plain_profile` gave this for."""
    found: Mapping[str, Any] = check_kind(data, "profile", dict)
    events = tuple(check_kind(event, "events", str) for event in take(found, "events", list))
    if INSTRUCTIONS not in events or len(set(events)) < len(events):
        raise StoreError(f"The field 'events' is not what it should be; expected {INSTRUCTIONS}, and each event once.")
    texts = [check_kind(text, "texts", str) for text in take(found, "texts", list)]
    rows = _take_rows(found, "functions", width=3, references=3, known=len(texts))
    functions = [Function(*(texts[number] for number in row)) for row in rows]
    known, size = len(functions), len(events)
    own = _take_rows(found, "exclusive", width=size, references=0, known=known)
    if len(own) > known:
        raise StoreError("The field 'exclusive' has more rows than there are functions.")
    exclusive: dict[Function, Costs] = {function: tuple(row) for function, row in zip(functions, own, strict=False)}
    calls = {
        (functions[caller], functions[callee]): Call(times, tuple(costs))
        for caller, callee, times, *costs in _take_rows(found, "calls", width=3 + size, references=2, known=known)
    }
    if take(found, "inclusive", list, optional=True) is None:
        inclusive = _derive(exclusive, calls)
        if inclusive is None:
            raise StoreError("The field 'calls' has functions without costs of their own.")
    else:
        given = _take_rows(found, "inclusive", width=1 + size, references=1, known=known)
        inclusive = {functions[number]: tuple(costs) for number, *costs in given}
    return Profile(events, exclusive, inclusive, calls, take(found, "trigger", str, optional=True))


def _derive(
    exclusive: Mapping[Function, Costs], calls: Mapping[tuple[Function, Function], Call]
) -> dict[Function, Costs] | None:
    """Inclusive costs as the parser of profiles computes them; None where a function has no costs of its own."""
    numbers = {function: number for number, function in enumerate(exclusive)}
    if not all(function in numbers for pair in calls for function in pair):
        return None
    edges = ((numbers[caller], numbers[callee], call.costs) for (caller, callee), call in calls.items())
    totals = add_calls(list(exclusive.values()), edges)
    return {function: tuple(costs) for function, costs in zip(exclusive, totals, strict=True)}


def _take_rows(
    data: Mapping[str, Any], name: str, *, width: int, references: int, known: int
) -> Sequence[Sequence[int]]:
    """Rows of whole numbers, the first of which point at something that is known."""
    rows: list[list[int]] = take(data, name, list)
    for row in rows:
        take_integers({name: row}, name)
        fits = len(row) == width and all(number < known for number in row[:references])
        if not fits or any(number < 0 for number in row):
            raise StoreError(f"The field {name!r} has a row {row!r:.40} that does not fit the others.")
    return rows
