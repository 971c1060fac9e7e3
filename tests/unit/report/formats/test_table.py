"""Markdown."""

from __future__ import annotations

import dataclasses

from tests.sample_runs import ADD, CASES, COUNT, FAILURE, only, sample_run
from torchmark.report.formats.tables import write_markdown


def test_markdown_is_a_table_of_the_columns_that_tell_something() -> None:
    lines = write_markdown(sample_run()).splitlines()
    assert lines[0] == (
        "| benchmark | runtime | language | threads | time | 95 % interval | compile (empty cache, again) "
        "| instructions | spread | notes |"
    )
    assert len(lines) == 2 + len(CASES)
    assert lines[2].startswith("| Pointwise / add | Eager | Python | 1 | 1.55 us | 1.500 to 1.600 us | – | 5,000 |")
    assert lines[3].startswith('| =cmd()\\|"x" / naïve, <br>\\*new\\* line | Eager | C++ | 2 | 250 ms |')
    assert lines[4].endswith(
        "| wall failed: -1 is no size ...<br>count failed: -1 is no size ...<br>count incomplete |"
    )
    assert lines[5].endswith("| wall missing<br>count missing |")
    assert "| 2.00 s, 1.00 s |" in lines[7]
    assert lines[7].endswith("| wall incomplete<br>count missing |")


def test_markdown_of_one_case_is_short_and_of_one_metric_shorter() -> None:
    lines = write_markdown(only(ADD, COUNT, FAILURE, FAILURE)).splitlines()
    assert lines[0] == "| benchmark | instructions | notes |"
    assert lines[2] == "| Pointwise / add | – | count failed: -1 is no size ... |"


def test_names_are_neither_mentions_nor_links_nor_invisible() -> None:
    case = dataclasses.replace(ADD, label=("@everyone", "https://evil.example #1", "\x1b[2J\u202e~a~"))
    text = write_markdown(only(case, COUNT, FAILURE, FAILURE))
    assert "&#64;everyone / https&#58;//evil.example \\#1 /  \\[2J \\~a\\~" in text
    assert not set(text) & set("@\x1b\u202e")
