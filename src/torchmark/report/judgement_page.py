"""A judgement as an HTML fragment for notebooks. Every text goes through the templates' autoescaping."""

from __future__ import annotations

from collections.abc import Iterator

from torchmark.model.judgement import Judgement, Side, TimeEvidence
from torchmark.report.judgement_facts import say_verdict, tell_facts, tell_notes
from torchmark.report.page import load_templates
from torchmark.report.plots.differences import draw_differences
from torchmark.report.plots.distributions import draw_distributions
from torchmark.report.plots.palette import colour
from torchmark.report.plots.stages import draw_stages, stack_sides
from torchmark.report.plots.strips import Strip
from torchmark.report.plots.svg import Markup
from torchmark.report.variants import name_case
from torchmark.report.wording import Face


def render_judgement(judgement: Judgement, face: Face = "python") -> str:
    """The verdict, what it rests on in words and as drawings, and what is to be doubted."""
    html: str = (
        load_templates()
        .get_template("judgement.html")
        .render(
            name=name_case(judgement.case),
            verdict=say_verdict(judgement),
            colour=colour(judgement.verdict),
            facts=tell_facts(judgement),
            drawings=tuple(draw_evidence(judgement)),
            notes=tell_notes(judgement, face),
        )
    )
    return html


def draw_evidence(judgement: Judgement) -> Iterator[Markup]:
    """What there is to look at: differences by layout, times of both sides, instructions by stage."""
    name, time = name_case(judgement.case), judgement.time
    if time is not None:
        yield draw_differences(time, name=f"{name}: difference in time by layout of memory")
        strips = strip_sides(time)
        if strips is not None:
            yield draw_distributions(strips, name=f"{name}: times of both sides, one for each visit")
    if judgement.explanation is not None:
        yield draw_stages(stack_sides(judgement.explanation), name=f"{name}: instructions by stage")


def strip_sides(time: TimeEvidence) -> tuple[Strip, Strip] | None:
    """The times of both sides, visit by visit; None where these were not kept."""
    base_s = [seconds for layout in time.visits for seconds in layout.base_s]
    head_s = [seconds for layout in time.visits for seconds in layout.head_s]
    if not base_s or not head_s:
        return None
    return Strip(Side.BASE.value, base_s), Strip(Side.HEAD.value, head_s)
