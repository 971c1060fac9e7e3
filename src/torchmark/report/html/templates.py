"""Templates of pages, with embedded styles and scripts and a content policy that allows nothing else."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from torchmark.analysis.grid import Grid, has_several_envs, name_env
from torchmark.analysis.summarise import find_caveats, find_median_interval, summarise
from torchmark.model.task import Summary, TaskSpec, Times
from torchmark.report.caveats import describe_caveat
from torchmark.report.plots.svg import style_sheet
from torchmark.report.text.grid import Style, explain, format_columns, rank_cells
from torchmark.report.text.terminal import count, format_lines
from torchmark.report.text.units import choose_scale, format_deviation, format_range, select_unit
from torchmark.stats.distribution import histogram

# What would end a script in HTML or in XML, or a line in JavaScript of before 2019.
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@functools.cache
def load_asset(name: str) -> str:
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
    return text if text.isprintable() else "\xa0".join(map(format_lines, text.split("\xa0")))


def write_policy(script: str) -> str:
    """A Content-Security-Policy for a page that loads nothing and runs this script and no other."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def fill_template(name: str, values: Mapping[str, object]) -> str:
    text: str = load_templates().get_template(name).render(values)
    return text


def render_page(name: str, styles: Sequence[str], scripts: Sequence[str], values: Mapping[str, object]) -> str:
    """A whole page from a template that extends `page.html`, with these assets in it. It loads nothing else."""
    script, style = "\n".join(map(load_asset, scripts)), "\n".join([style_sheet(), *map(load_asset, styles)])
    return fill_template(name, {**values, "styles": style, "script": script, "policy": write_policy(script)})


# Size of the histogram in pixels, and of the room for its axis below.
WIDTH, HEIGHT, AXIS = 240, 48, 16
_CODE = re.compile(r"`([^`\n]+)`")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")
# Behind these a long name may go on in the next line.
_SEPARATORS = re.compile(r"(?<=::)|(?<=[<>(,/])")


@functools.cache
def load_templates() -> Any:
    # Loaded at first use: most sessions never show HTML, and importing the template engine takes some five times
    # as long as starting Python.
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("torchmark.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        # What is markup already is ours, or has gone through here.
        finalize=lambda value: clean_text(value) if type(value) is str else value,
    )
    templates.filters["prose"] = lambda text: jinja2.filters.do_mark_safe(format_code(text))
    templates.filters["sentences"] = split_first_sentence
    templates.filters["split_name"] = split_name
    return templates


def format_code(text: str) -> str:
    """A sentence as markup, with code for what stands in backticks. Everything is escaped.

    >>> format_code("Try `a < b` & wait.")
    'Try <code>a &lt; b</code> &amp; wait.'
    """
    parts = [html.escape(part) for part in _CODE.split(clean_text(text))]
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def split_first_sentence(text: str) -> tuple[str, str]:
    """The first sentence, and what follows it.

    >>> split_first_sentence("It drifts by 1.5 %. Run it again.")
    ('It drifts by 1.5 %.', 'Run it again.')
    """
    first, *rest = _SENTENCE.split(text, maxsplit=1)
    return first, "".join(rest)


def split_name(name: str) -> list[str]:
    """The name of a function in parts, between which a line may end.

    >>> split_name("at::add<int>(a, b)")
    ['at::', 'add<', 'int>', '(', 'a,', ' b)']
    """
    return _SEPARATORS.split(name)


def render_measurement(spec: TaskSpec, times: Times) -> str:
    per_run = times.per_run
    summary = summarise(per_run) if per_run else None
    sizes = count(len(per_run), "sample"), count(times.number_per_run, "run"), count(spec.num_threads, "thread")
    scale = choose_scale(max(per_run)) if len(per_run) > 1 else None
    values = {
        "title": spec.title,
        "description": spec.description,
        "setup": spec.setup_str(),
        "facts": _facts(summary, per_run) if summary else [],
        "sizes": "{} of {}, {}".format(*sizes),
        "bars": draw_histogram(per_run) if scale else [],
        "width": WIDTH,
        "height": HEIGHT,
        "axis": AXIS,
        "ends": [f"{scale.show(end)} {scale.unit}" for end in (min(per_run), max(per_run))] if scale else ("", ""),
        "caveats": [describe_caveat(caveat, "python") for caveat in find_caveats(times)],
    }
    return fill_template("measurement.html", values)


def _facts(summary: Summary, per_run: Sequence[float]) -> list[tuple[str, str]]:
    scale = choose_scale(summary.median)
    facts = [("median", f"{scale.show(summary.median)} {scale.unit}")]
    if interval := find_median_interval(per_run, 0.95):
        facts.append(("95 % interval", format_range(interval.low, interval.high)))
    if summary.std is not None:
        facts.append(("mean ± std", format_deviation(summary.mean, summary.std)))
        facts.append(("range", format_range(summary.minimum, summary.maximum)))
    return facts


def draw_histogram(values: Sequence[float]) -> list[dict[str, float | str]]:
    """The bars of a histogram of times, scaled to the drawing's size in pixels; titles show when pointing at them."""
    bins = histogram(values)
    unit, scale = select_unit(max(values))
    tallest = max(b.samples for b in bins)
    step = WIDTH / len(bins)
    return [
        {
            "x": round(i * step, 2),
            "y": round(HEIGHT * (1 - b.samples / tallest), 2),
            "width": round(max(step - 1, 1), 2),
            "height": round(HEIGHT * b.samples / tallest, 2),
            "title": f"{b.low / scale:.4g} to {b.high / scale:.4g} {unit}: {b.samples}",
        }
        for i, b in enumerate(bins)
    ]


def render_grids(grids: Sequence[Grid], style: Style) -> str:
    return fill_template("compare.html", {"tables": [_table(grid, style) for grid in grids]})


def _table(grid: Grid, style: Style) -> dict[str, Any]:
    texts, ranks = format_columns(grid, style), rank_cells(grid, style.colour)
    rows = [
        {
            "threads": row.num_threads,
            "env": name_env(row.env),
            "name": row.name,
            "cells": [
                (column[i].strip(), rank.name.lower() if rank else "")
                for column, rank in zip(texts, ranks[i], strict=True)
            ],
        }
        for i, row in enumerate(grid.rows)
    ]
    return {
        "label": grid.label,
        "columns": grid.columns,
        "show_env": has_several_envs(grid),
        "rows": rows,
        "legend": explain(grid, style),
    }
