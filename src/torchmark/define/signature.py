"""The signature of a computation, `f(x, w) -> y`: what goes in and what comes out."""

from __future__ import annotations

import keyword
import re
from typing import NamedTuple, NoReturn

from torchmark.errors import DefinitionError

# The name that every signature has.
NAME = "f"
NOTHING = "None"

_TOKEN = re.compile(r"\s*(?:(?P<name>\w+)|(?P<sign>->|[(),])|(?P<other>\S))")


class Signature(NamedTuple):
    """Names of the arguments, and of the outputs: none, one, or several that are a tuple.

    >>> str(Signature(("x", "w"), ("y",)))
    'f(x, w) -> y'
    """

    args: tuple[str, ...]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        return f"{NAME}({', '.join(self.args)}) -> {', '.join(self.outputs) or NOTHING}"


def parse_signature(text: str) -> Signature:
    """Read a signature; whatever does not belong there is a DefinitionError that points at it.

    >>> parse_signature("f( x,w )->y")
    Signature(args=('x', 'w'), outputs=('y',))
    >>> parse_signature("f() -> None")
    Signature(args=(), outputs=())
    """
    if not isinstance(text, str):
        raise DefinitionError(f"A signature is a text such as `f(x, w) -> y`, not {type(text)}.")
    return _Parser(text).parse()


class _Token(NamedTuple):
    text: str
    position: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [_Token(match[0].strip(), match.end() - len(match[0].strip())) for match in _scan(text)]
        self._next = 0

    def parse(self) -> Signature:
        self._take(NAME, f"the name `{NAME}`")
        self._take("(", "`(`")
        args = self._names(")")
        self._take("->", "`->`")
        outputs = self._outputs()
        if self._token.text:
            self._refuse("nothing more")
        for names in (args, outputs):
            for number, (position, name) in enumerate(names):
                if name in [earlier for _, earlier in names[:number]]:
                    self._refuse_at(position, f"`{name}` is there twice")
        return Signature(tuple(name for _, name in args), tuple(name for _, name in outputs))

    def _outputs(self) -> list[tuple[int, str]]:
        if self._token.text == NOTHING:
            self._advance()
            return []
        if self._token.text == "(":
            self._advance()
            if self._token.text == ")":
                self._refuse("an output")
            return self._names(")")
        outputs = [self._name("an output")]
        while self._token.text == ",":
            self._advance()
            outputs.append(self._name("an output"))
        return outputs

    def _names(self, end: str) -> list[tuple[int, str]]:
        """Names separated by commas, up to and including the sign that ends them; a last comma does no harm."""
        names: list[tuple[int, str]] = []
        while self._token.text != end:
            names.append(self._name(f"a name or `{end}`" if not names else "a name"))
            if self._token.text != end:
                self._take(",", f"`,` or `{end}`")
        self._advance()
        return names

    def _name(self, wanted: str) -> tuple[int, str]:
        token = self._token
        if not token.text.isidentifier() or keyword.iskeyword(token.text):
            self._refuse(wanted)
        self._advance()
        return token.position, token.text

    @property
    def _token(self) -> _Token:
        """The next one; an empty one at the end."""
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return _Token("", len(self._text.rstrip()))

    def _advance(self) -> None:
        self._next += 1

    def _take(self, text: str, wanted: str) -> None:
        if self._token.text != text:
            self._refuse(wanted)
        self._advance()

    def _refuse(self, wanted: str) -> NoReturn:
        found = f"`{self._token.text}`" if self._token.text else "the end"
        self._refuse_at(self._token.position, f"expected {wanted}, found {found}")

    def _refuse_at(self, position: int, problem: str) -> NoReturn:
        raise DefinitionError(f"Invalid signature: `{self._text}`: {problem}.", text=self._text, position=position)


def _scan(text: str) -> list[re.Match[str]]:
    return [match for match in _TOKEN.finditer(text) if match[0].strip()]
