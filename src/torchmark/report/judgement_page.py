"""A judgement as an HTML fragment for notebooks. Every text goes through the templates' autoescaping."""

from __future__ import annotations

from torchmark.model.judgement import Judgement, Verdict
from torchmark.report.judgement_facts import say_verdict, tell_facts, tell_notes
from torchmark.report.page import load_templates
from torchmark.report.variants import name_case

COLOURS = {
    Verdict.SLOWER: "#d62728",
    Verdict.FASTER: "#2ca02c",
    Verdict.SAME: "#7f7f7f",
    Verdict.UNDECIDED: "#d39e00",
    Verdict.FAILED: "#d62728",
}


def render_judgement(judgement: Judgement) -> str:
    """The verdict, what it rests on, and what is to be doubted."""
    html: str = (
        load_templates()
        .get_template("judgement.html")
        .render(
            name=name_case(judgement.case),
            verdict=say_verdict(judgement),
            colour=COLOURS[judgement.verdict],
            facts=tell_facts(judgement),
            notes=tell_notes(judgement),
        )
    )
    return html
