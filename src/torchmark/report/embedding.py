"""What pages carry inside themselves: scripts and styles of our own, and values as JSON within a script."""

from __future__ import annotations

import functools
import json
from importlib import resources

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
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)
