from __future__ import annotations

import keyword
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.define.signature import Signature, parse_signature
from torchmark.errors import DefinitionError

NAMES = st.text(string.ascii_letters + "_é", min_size=1, max_size=4).filter(lambda name: not keyword.iskeyword(name))
SPACE = st.sampled_from(["", " ", "  ", "\t", "\n"])


@pytest.mark.parametrize(
    ("text", "args", "outputs"),
    [
        ("f(x, w) -> y", ("x", "w"), ("y",)),
        ("f(x,w)->y", ("x", "w"), ("y",)),
        (" f ( x , w ) -> y ", ("x", "w"), ("y",)),
        ("f() -> y", (), ("y",)),
        ("f(x) -> None", ("x",), ()),
        ("f(x,) -> y", ("x",), ("y",)),
        ("f(x) -> a, b", ("x",), ("a", "b")),
        ("f(x) -> (a, b)", ("x",), ("a", "b")),
        ("f(f) -> x", ("f",), ("x",)),
        ("f(x) -> x", ("x",), ("x",)),
    ],
)
def test_signatures_are_read_whatever_their_spaces(text: str, args: tuple[str, ...], outputs: tuple[str, ...]) -> None:
    assert parse_signature(text) == Signature(args, outputs)


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected the name `f`, found the end"),
        ("   ", 0, "expected the name `f`, found the end"),
        ("g(x) -> y", 0, "expected the name `f`, found `g`"),
        ("ff(x) -> y", 0, "expected the name `f`, found `ff`"),
        ("f", 1, "expected `(`, found the end"),
        ("f(x", 3, "expected `,` or `)`, found the end"),
        ("f(x w) -> y", 4, "expected `,` or `)`, found `w`"),
        ("f(,) -> y", 2, "expected a name or `)`, found `,`"),
        ("f(x,, w) -> y", 4, "expected a name, found `,`"),
        ("f(1x) -> y", 2, "expected a name or `)`, found `1x`"),
        ("f(x: int) -> y", 3, "expected `,` or `)`, found `:`"),
        ("f(x=1) -> y", 3, "expected `,` or `)`, found `=`"),
        ("f(lambda) -> y", 2, "expected a name or `)`, found `lambda`"),
        ("f(None) -> y", 2, "expected a name or `)`, found `None`"),
        ("f(x)", 4, "expected `->`, found the end"),
        ("f(x) - > y", 5, "expected `->`, found `-`"),
        ("f(x) ->", 7, "expected an output, found the end"),
        ("f(x) -> y,", 10, "expected an output, found the end"),
        ("f(x) -> ()", 9, "expected an output, found `)`"),
        ("f(x) -> None, y", 12, "expected nothing more, found `,`"),
        ("f(x) -> y z", 10, "expected nothing more, found `z`"),
        ("f(x, w, x) -> y", 8, "`x` is there twice"),
        ("f(x) -> y, y", 11, "`y` is there twice"),
    ],
)
def test_a_caret_stands_where_a_signature_goes_wrong(text: str, position: int, problem: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse_signature(text)
    assert (caught.value.position, caught.value.text) == (position, text)
    assert caught.value.problem == f"Invalid signature: `{text}`: {problem}."
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * position}^")


@pytest.mark.parametrize("signature", [None, 3, b"f(x) -> y", ("f(x) -> y",)])
def test_a_signature_is_a_text(signature: object) -> None:
    with pytest.raises(DefinitionError, match="A signature is a text"):
        parse_signature(signature)  # type: ignore[arg-type]


def spell(signature: Signature) -> str:
    return f"f({', '.join(signature.args)}) -> {', '.join(signature.outputs) or 'None'}"


@given(st.lists(NAMES, unique=True, max_size=4), st.lists(NAMES, unique=True, max_size=3), st.data())
def test_what_is_printed_is_read_with_any_spaces(args: list[str], outputs: list[str], data: st.DataObject) -> None:
    signature = Signature(tuple(args), tuple(outputs))
    tokens = spell(signature).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    spaced = "".join(part for token in tokens for part in (data.draw(SPACE), token))
    assert parse_signature(spaced) == parse_signature(spell(signature)) == signature


@given(st.one_of(st.text(), st.text(alphabet="fxy,()-> \n"), st.text(alphabet="fxy,()->1").map("f(x) -> y".__add__)))
def test_any_text_is_a_signature_or_has_a_place_where_it_goes_wrong(text: str) -> None:
    position = 0
    try:
        assert parse_signature(spell(parse_signature(text))) == parse_signature(text)
    except DefinitionError as error:
        position = -1 if error.position is None or error.text != text else error.position
    assert 0 <= position <= len(text)
