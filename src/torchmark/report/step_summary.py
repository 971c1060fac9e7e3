"""Judgements as a page of GitHub's Markdown, for the summary of a step of continuous integration.

Names of cases are other people's: none can end its cell, turn into markup or become a link.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchmark.model.judgement import Judgement, Verdict
from torchmark.report.causes import explain_cause
from torchmark.report.cells import cut, cut_middle
from torchmark.report.comparison_marks import explain_doubts
from torchmark.report.judgement_rows import MARKS, JudgementRow, find_columns, make_rows, order_judgements
from torchmark.report.judgements import close
from torchmark.report.markdown import escape_markdown, markdown_row
from torchmark.report.printable import printable

# GitHub takes a mebibyte. Escaping makes a character five bytes at most, so that four tables of so many rows, each with
# a name and a sentence of these lengths, take less than 0.8 of it.
MOST_ROWS = 100
LONGEST_NAME = 120
LONGEST_SENTENCE = 240
CHANGED = (Verdict.SLOWER, Verdict.FASTER)
# What is there to be unfolded, in this order.
FOLDED = {Verdict.FAILED: "failed", Verdict.UNDECIDED: "undecided", Verdict.SAME: "the same"}


def summarise_markdown(
    judgements: Sequence[Judgement],
    *,
    title: str,
    gate: Sequence[str] = (),
    base: str = "base",
    head: str = "head",
) -> str:
    """A headline, what the gate says, how many cases are what, tables of them, and what is to be doubted.

    `gate` has a sentence for each regression and each request to accept a count.
    """
    rows = make_rows(order_judgements(judgements), judgements)
    parts = [f"## {_quote(title)}", _quote(close(judgements))]
    parts.append("\n".join(f"- {_quote(text)}" for text in gate[:MOST_ROWS]) + _tell_rest(len(gate)))
    changed = [row for row in rows if row.judgement.verdict in CHANGED]
    if changed:
        parts.append(f"Changes are of {_quote(head)} against {_quote(base)}, for one run.")
        parts.append(_render_table(changed))
    for verdict, words in FOLDED.items():
        found = [row for row in rows if row.judgement.verdict is verdict]
        if found:
            parts.append(f"<details><summary>{len(found)} {words}</summary>\n\n{_render_table(found)}\n\n</details>")
    doubts = [f"- {f'`{mark}` ' if mark else ''}{_quote(text)}" for mark, text in explain_doubts(judgements)]
    parts.append("\n".join(doubts))
    return "\n\n".join(filter(None, parts)) + "\n"


def _render_table(rows: Sequence[JudgementRow]) -> str:
    """The rows with those columns that have something to say, and a sentence on each."""
    columns = [column for column in find_columns(rows) if column != "why"]
    heads = ["verdict", "case", *columns, "why"]
    sides = ["---", "---", *("---" if column == MARKS else "---:" for column in columns), "---"]
    lines = [markdown_row(heads), markdown_row(sides)]
    for row in rows[:MOST_ROWS]:
        name = escape_markdown(cut_middle(row.name, LONGEST_NAME))
        why = _quote(explain_cause(row.judgement))
        lines.append(markdown_row([row.judgement.verdict.value, name, *(row.cells[column] for column in columns), why]))
    return "\n".join(lines) + _tell_rest(len(rows))


def _quote(text: str) -> str:
    return escape_markdown(printable(cut(text, LONGEST_SENTENCE)))


def _tell_rest(number: int) -> str:
    return f"\n\n{number - MOST_ROWS} more are not shown." if number > MOST_ROWS else ""
