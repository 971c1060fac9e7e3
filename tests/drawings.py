"""Reading drawings: whether they are well-formed, and what is in them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# Attributes that hold coordinates, and nothing but numbers and letters of commands.
_PLACES = ("x", "y", "width", "height", "d", "viewBox", "transform", "font-size", "stroke-width")


class Drawing:
    """An SVG that has been checked for what all of them have in common."""

    def __init__(self, text: str) -> None:
        self.root = ElementTree.fromstring(text)
        assert self.root.tag == f"{SVG}svg"
        assert self.root.get("role") == "img"
        assert self.root.get("aria-label")
        assert self.root.find(f"{SVG}title") is not None
        left, top, self.width, self.height = map(float, str(self.root.get("viewBox")).split())
        assert (left, top) == (0, 0)
        assert self.width > 0
        assert self.height > 0
        for one in self.root.iter():
            assert one.get("id") is None
            for name in _PLACES:
                assert not re.search(r"nan|inf|e[+-]?\d", one.get(name, "").removeprefix("translate")), (one.tag, name)

    @property
    def words(self) -> str:
        """What those hear who do not see it."""
        return str(self.root.get("aria-label"))

    @property
    def texts(self) -> list[str]:
        """All texts that are to be seen."""
        return [str(one.text) for one in self.root.iter(f"{SVG}text")]

    @property
    def titles(self) -> list[str]:
        """What is told to those who point at something, that of the whole drawing first."""
        return [str(one.text) for one in self.root.iter(f"{SVG}title")]

    def count(self, tag: str) -> int:
        """How many elements of a kind there are."""
        return sum(1 for _ in self.root.iter(f"{SVG}{tag}"))

    def list_places(self) -> list[tuple[float, float]]:
        """Where rectangles and texts begin."""
        return [
            (float(one.get("x", "0")), float(one.get("y", "0")))
            for one in self.root.iter()
            if one.tag in (f"{SVG}rect", f"{SVG}text")
        ]

    def check_bounds(self) -> None:
        """Nothing begins outside."""
        for x, y in self.list_places():
            assert -0.1 <= x <= self.width + 0.1
            assert -0.1 <= y <= self.height + 0.1
