"""The formats that a run can be written in for other programs, by name.

Apart from the formats, so that a new one is a function there and a line here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from torchmark.model.plan import Metric
from torchmark.model.run import Run
from torchmark.report.formats.programs import (
    write_bmf,
    write_github_action,
    write_google,
    write_pyperf,
    write_pytest_benchmark,
    write_upstream,
)
from torchmark.report.formats.tables import write_csv, write_markdown


@dataclasses.dataclass(frozen=True)
class Format:
    """A way to write a run down. `suffix` is what its files' names end with."""

    name: str
    description: str
    suffix: str
    write: Callable[[Run], str]
    profiles: bool = False
    """Whether it has a place for costs by function."""
    failures: bool = False
    """Whether it has a place for cases that failed."""
    needs: tuple[Metric, ...] = tuple(Metric)
    """Of these a case must have one to get a place."""


FORMATS = {
    entry.name: entry
    for entry in (
        Format("csv", "a line for each case, for spreadsheets", ".csv", write_csv, failures=True),
        Format("markdown", "a table to paste on GitHub", ".md", write_markdown, failures=True),
        Format("pyperf", "for python -m pyperf compare_to", ".json", write_pyperf),
        Format(
            "google", "the JSON of Google Benchmark, for its compare.py", ".json", write_google, needs=(Metric.WALL,)
        ),
        Format(
            "pytest-benchmark", "for pytest-benchmark compare", ".json", write_pytest_benchmark, needs=(Metric.WALL,)
        ),
        Format("github-action", "for github-action-benchmark, customSmallerIsBetter", ".json", write_github_action),
        Format("bmf", "Bencher Metric Format, for bencher run --adapter json", ".json", write_bmf),
        Format("upstream", "as PyTorch's instruction count benchmarks in its CI", ".json", write_upstream),
    )
}
