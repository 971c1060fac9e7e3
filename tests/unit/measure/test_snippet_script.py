from __future__ import annotations

import pytest

from torchmark.measure.snippet import write_script


def test_texts_are_joined_without_touching_strings() -> None:
    script = write_script('s = """a\n  b"""\nlen(s)', "# nothing")
    compile(script, "x", "exec")
    assert "'a\\n  b'" in script
    assert "pass" in script


def test_what_is_no_statement_by_itself_is_refused() -> None:
    with pytest.raises(SyntaxError, match="'return' outside function"):
        write_script("return 1", "pass")
