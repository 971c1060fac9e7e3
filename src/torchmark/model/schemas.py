"""The kinds of JSON documents that torchmark writes, with their versions."""

from __future__ import annotations

from typing import Any

# What `--json` of a command writes, what results in Python give, an exported run, and an entry of the ledger. A new
# field does not change a version; another layout of the fields that are there does.
VERSIONS = {
    "ab": 1,
    "cache": 1,
    "callgrind": 1,
    "compare": 1,
    "count": 1,
    "doctor": 1,
    "fuzz": 1,
    "history": 1,
    "ledger": 1,
    "list": 1,
    "measurement": 1,
    "overrides": 1,
    "run": 1,
    "runs": 1,
    "selftest": 1,
    "show": 1,
    "time": 1,
}


def begin_document(kind: str) -> dict[str, Any]:
    """The fields that every document begins with.

    >>> begin_document("runs")
    {'schema': 'torchmark.runs', 'schema_version': 1}
    """
    return {"schema": f"torchmark.{kind}", "schema_version": VERSIONS[kind]}
