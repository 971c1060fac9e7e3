"""What pages carry inside themselves: scripts and styles of our own, and values as JSON within a script.

No text of a page has characters that cannot be seen, or that turn the direction of what follows.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib import resources

from torchmark.report.printable import show_lines

# What would end a script in HTML or in XML, or a line in JavaScript of before 2019.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@functools.cache
def load_asset(name: str) -> str:
    """The text of a file in `assets`."""
    return resources.files("torchmark.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


def script_json(value: object) -> str:
    """Values as JSON that is safe between the tags of a script, in HTML as in XML, and is ASCII only.

    >>> script_json(["</script>", "é"])
    '["\\\\u003c/script\\\\u003e","\\\\u00e9"]'
    """
    return json.dumps(_clean(value), separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return [_clean(one) for one in value] if isinstance(value, (list, tuple)) else value


def clean_text(text: str) -> str:
    """A text as pages show it; blanks at which no line may end stay.

    >>> clean_text("5\\xa0%\\x1b[2J\\n\\u202eb")
    '5\\xa0% [2J\\n b'
    """
    return text if text.isprintable() else "\xa0".join(map(show_lines, text.split("\xa0")))


def write_policy(script: str) -> str:
    """A Content-Security-Policy for a page that loads nothing and runs this script and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
