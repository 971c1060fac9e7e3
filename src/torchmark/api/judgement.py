"""`Judgement`: a judgement as users hold it. It is the value itself, with texts for people and for programs."""

from __future__ import annotations

import dataclasses
from typing import Any

from torchmark.model.judgement import Judgement as Value
from torchmark.model.line import name_value
from torchmark.report.judgement_facts import say_verdict
from torchmark.report.judgement_page import render_judgement
from torchmark.report.judgement_plain import plain_judgement
from torchmark.report.judgements import describe_judgement
from torchmark.report.variants import name_case

WIDTH = 80


@dataclasses.dataclass(frozen=True, repr=False)
class Judgement(Value):
    """What is said of one case, and why: `verdict`, `cause`, and the evidence in `time` and `count`.

    >>> from torchmark.model.case import AutogradMode, AutoLabels, Case, RuntimeMode, TimerArgs
    >>> from torchmark.model.judgement import Cause, CountEvidence, Spread, Verdict
    >>> from torchmark.model.task import Language
    >>> case = Case(("add",), AutoLabels(RuntimeMode.EAGER, AutogradMode.FORWARD, Language.PYTHON), TimerArgs("x + 1"))
    >>> count = CountEvidence(Spread(1000, 1000, 1000), Spread(1050, 1050, 1050), 3, 3, 1, 1)
    >>> judgement = Judgement(case, Verdict.SLOWER, Cause.COUNT_ALONE, count=count)
    >>> judgement
    Judgement(add, Python: slower, +5.0 % instructions)
    >>> print(judgement)
    add, Python: slower, +5.0 % instructions
      instructions  +50 (+5.0 %), from 1,000 to 1,050
      allocations   3 on both sides
      tensors       1 on both sides
      why           +50 instructions (+5.0 %); it was not timed.
    """

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, as `torchmark ab --json` writes them."""
        return plain_judgement(self)

    def __repr__(self) -> str:
        return name_value(self, f"{name_case(self.case)}: {say_verdict(self)}")

    def __str__(self) -> str:
        return describe_judgement(self, WIDTH, "python")

    def _repr_html_(self) -> str:
        return render_judgement(self)


def from_judgement(judgement: Value) -> Judgement:
    """The same with a face."""
    return Judgement(**{field.name: getattr(judgement, field.name) for field in dataclasses.fields(Value)})
