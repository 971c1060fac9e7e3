"""Tables on a terminal: columns give way where it is narrow, and no two names are cut to the same text.

A name is shown whole: one that does not fit beside its numbers stands above them, on as many lines as it takes. Only
names that have a short form, such as those of C++ functions, are shortened, as long as no other row looks the same.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from torchmark.report.text.terminal import BOLD, cut, measure, pad, paint, wrap

# Where there is less for names than this, no word would be whole: they stand on lines of their own.
LEAST_NAME_ROOM = 10
INDENT = "  "
# Names that begin with more blanks are not indented any further on their next lines.
MOST_INDENT = 4


@dataclasses.dataclass(frozen=True)
class TextColumn:
    """A column; `head` is its key unless another one is given."""

    key: str
    head: str | None = None
    _: dataclasses.KW_ONLY
    gap: int = 2
    """Blanks between the column before and this one."""
    left: bool = False
    """Whether its texts begin below each other, as numbers do not."""
    least: int | None = None
    """The width to which it may shrink. Without it, a column that has to give way is left out."""
    wide: int = 0
    """How wide it is at least where there is room."""
    spare: bool = False
    """Whether it is only shown in what room the others leave, if that is its least width."""


@dataclasses.dataclass(frozen=True)
class TextRow:
    """A row with its text for each column that has one, by key."""

    cells: Mapping[str, str]
    _: dataclasses.KW_ONLY
    heading: str = ""
    """A bold line before the first of all rows that have it one after the other."""
    above: str = ""
    aside: str = ""
    """The end of the name, which stands at the right, next to the numbers."""
    instead: Sequence[str] = ()
    """Lines in place of all columns but the first one."""
    style: str = ""
    """Of the text in the first column."""


class TextTable:
    """A table that is laid out; `name` is the key of the column with names, which is the first to give way."""

    def __init__(
        self,
        columns: Iterable[TextColumn],
        rows: Sequence[TextRow],
        width: int,
        *,
        name: str | None = None,
        gives_way: Iterable[str] = (),
        shorten: Callable[[str, int], str] | None = None,
        colour: bool = False,
    ) -> None:
        self._columns = {column.key: column for column in columns}
        self._rows, self._width, self._name, self._colour = rows, width, name, colour
        self._heads = TextRow({key: key if one.head is None else one.head for key, one in self._columns.items()})
        self._wanted = {
            key: max(column.wide, *(measure(self._read(row, key)) for row in (self._heads, *rows)))
            for key, column in self._columns.items()
        }
        self._sizes = {key: size for key, size in self._wanted.items() if not self._columns[key].spare}
        order = [key for key in (name, *gives_way) if key in self._sizes]
        self.left_out = tuple(self._give_way(order))
        self._grow(order)
        self._short_names = {} if shorten is None or name is None else self._shorten_names(shorten, name)

    @property
    def is_tight(self) -> bool:
        return self._name is not None and self._sizes[self._name] < self._wanted[self._name]

    @property
    def is_cramped(self) -> bool:
        """Whether names have less than the least that their column asks for."""
        return self.is_tight and self._sizes[self._name or ""] < (self._columns[self._name or ""].least or 0)

    def lines(self) -> list[str]:
        heads = self._render(self._heads) if any(self._heads.cells.values()) else []
        lines = [paint(line, BOLD, self._colour) for line in heads]
        heading = ""
        for row in self._rows:
            if row.heading not in ("", heading):
                lines += [paint(line, BOLD, self._colour) for line in wrap(row.heading, self._width, 2)]
            heading = row.heading
            lines += _wrap_name(row.above, self._width)
            first, *others = self._render(row)
            if row.style:
                word = row.cells[next(iter(self._sizes))]
                first = paint(word, row.style, self._colour) + first.removeprefix(word)
            lines += [first, *others]
        return lines

    def _read(self, row: TextRow, key: str) -> str:
        text = row.cells.get(key, "")
        return " ".join(filter(None, (text, row.aside))) if key == self._name else text

    def _measure_gap(self, key: str) -> int:
        return 0 if key == next(iter(self._sizes)) else self._columns[key].gap

    def _find_room(self) -> int:
        return self._width - sum(self._measure_gap(key) + size for key, size in self._sizes.items())

    def _give_way(self, order: Iterable[str]) -> Iterator[str]:
        """Shrink and leave out columns until the others fit; the keys of those that are left out."""
        for key in order:
            missing = -self._find_room()
            if missing <= 0:
                return
            least = self._columns[key].least
            if least is None and key != self._name:
                del self._sizes[key]
                yield key
            else:
                self._sizes[key] = max(self._sizes[key] - missing, min(self._sizes[key], least or 0))

    def _grow(self, order: Sequence[str]) -> None:
        """Give what columns that were left out no longer need to those that shrank, and to the spare ones."""
        for key in reversed([key for key in order if key in self._sizes]):
            self._sizes[key] = min(self._wanted[key], self._sizes[key] + max(self._find_room(), 0))
        if self._name is not None:
            # Names can stand above their numbers: they never take the room of these.
            self._sizes[self._name] = max(self._sizes[self._name] + min(self._find_room(), 0), 0)
        for key, column in self._columns.items():
            room = self._find_room() - column.gap
            if column.spare and room >= (column.least or 0):
                self._sizes[key] = min(self._wanted[key], room)

    def _shorten_names(self, shorten: Callable[[str, int], str], name: str) -> dict[str, str]:
        room = self._sizes[name]
        if room < LEAST_NAME_ROOM:
            return {}
        short = {text: shorten(text, room) for text in dict.fromkeys(self._read(row, name) for row in self._rows)}
        alike = Counter(short.values())
        return {text: form for text, form in short.items() if alike[form] == 1}

    def _render(self, row: TextRow) -> list[str]:
        keys = list(self._sizes)
        if row.instead:
            lead = self._join(keys[:1], row) + " " * self._measure_gap(keys[1])
            return [lead + row.instead[0], *(" " * measure(lead) + line for line in row.instead[1:])]
        if self._name is None:
            return [self._join(keys, row).rstrip()]
        place = keys.index(self._name)
        lead = self._join(keys[:place], row) + " " * self._measure_gap(self._name)
        whole = self._width - measure(lead)
        crowded = whole < LEAST_NAME_ROOM
        names, beside = self._place_name(row, self._sizes[self._name], self._width - len(INDENT) if crowded else whole)
        lines = []
        if names and crowded:
            lines, lead = [cut(lead.rstrip(), self._width)], INDENT
        for text in names:
            lines.append(lead + text)
            lead = " " * measure(lead)
        rest = (lead + beside + self._join(keys[place + 1 :], row)).rstrip()
        return [*lines, cut(rest, self._width)] if rest or not lines else lines

    def _place_name(self, row: TextRow, room: int, whole: int) -> tuple[list[str], str]:
        """What stands above the numbers, on lines that are a `whole` one wide, and what stands beside them."""
        name, aside = row.cells.get(self._name or "", ""), row.aside
        name = self._short_names.get(name, name)
        if measure(" ".join(filter(None, (name, aside)))) <= room:
            return [], pad(name, room - measure(aside)) + aside
        above = _wrap_name(name, whole)
        if measure(aside) <= room:
            return above, pad(aside, room, right=True)
        return [*above, *_wrap_name(aside, whole)], " " * room

    def _join(self, keys: Iterable[str], row: TextRow) -> str:
        return "".join(
            " " * self._measure_gap(key)
            + pad(cut(row.cells.get(key, ""), self._sizes[key]), self._sizes[key], right=not self._columns[key].left)
            for key in keys
        )


def _wrap_name(name: str, width: int) -> list[str]:
    return wrap(name, width, min(len(name) - len(name.lstrip(" ")), MOST_INDENT))
