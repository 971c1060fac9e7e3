"""The options of `torchmark run`, and the request that they make.

Apart from the command, which stays short enough to be read at once.
"""

from __future__ import annotations

import click

from torchmark.api.runs import RunRequest, plan_targets
from torchmark.cli.cases import cases_argument, choice_options
from torchmark.cli.options import (
    INTERPRETER,
    SECONDS,
    Parsed,
    WholeNumber,
    cores_option,
    give_together,
    layouts_option,
    metric_option,
    python_option,
    timeout_option,
)
from torchmark.model.plan import SUITE_LAYOUTS
from torchmark.model.run import parse_shard

# The options of a run, of which `name` and `cores` are no part of what is asked for.
run_options = give_together(
    "request",
    RunRequest,
    cases_argument,
    choice_options,
    metric_option("What to measure (wall,count).", "wall,count"),
    give_together(
        "targets",
        plan_targets,
        python_option(),
        click.option(
            "--env",
            "envs",
            type=INTERPRETER,
            multiple=True,
            help="An interpreter under a name; give several to measure every case in each.",
        ),
    ),
    click.option("--name", metavar="NAME", help="What to call this run; with --resume, which run to go on with."),
    click.option("--repeat", type=WholeNumber(1, 10_000), default=1, metavar="N", help="Rounds over all cases (1)."),
    click.option("--min-run-time", type=SECONDS, default=0.2, help="Seconds to time each case for, at least (0.2)."),
    layouts_option(SUITE_LAYOUTS, "Memory layouts to take the median count of (3); 1 gives the bare count."),
    timeout_option("a case"),
    cores_option,
    click.option(
        "--shard",
        type=Parsed("I/N", parse_shard),
        help="Only the I-th of N parts; 'torchmark merge' puts parts that several machines have measured together.",
    ),
)
