"""What the program writes on stored runs and on made-up measurements: the scenes that `test_outputs.py` compares.

`python -m tests.outputs` writes all of `tests/golden/outputs/` anew; with names of scenes, or what they begin with,
only those. Nothing is measured and no program is started, so that the texts are the same on every machine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
import re
import shlex
import sys
import tempfile
import time
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import click
import pytest

from tests.fake_backend import FakeBackend
from tests.made_contrasts import count_functions, run_of
from tests.made_flames import BASE as BASE_STACKS
from tests.made_flames import HEAD as HEAD_STACKS
from tests.made_flames import compared_flame, hostile_flame, inflate, plain_flame
from tests.made_histories import ADD as DAILY
from tests.made_histories import make_days
from tests.made_judgements import DOUBTS, LACKING, fail, make_count, make_judgement, make_time, make_visits
from tests.made_overrides import make_override_rows, make_override_run, make_tally
from tests.made_reports import make_hostile, make_many, make_small, make_uncompared, make_uncounted
from tests.made_shards import run_shards
from tests.made_summaries import make_case
from tests.mock_engine import MULTI_LINE, MockTimer, measure_implementations
from tests.sample_runs import (
    ADD,
    COUNT,
    ENVIRONMENT,
    FAILING,
    FAILURE,
    HOST,
    MODEL,
    ODD,
    WALL,
    compile_costs,
    sample_run,
    tally,
    times,
)
from tests.stored_runs import BEGAN, FIRST_CALL, GOLDEN, PROFILE, TALLY
from tests.stored_runs import make_run as make_golden_run
from tests.unit.test_reprs import RESULTS, VALUES
from torchmark import Compare, Measurement
from torchmark.analysis.overrides import hold_to_expectations
from torchmark.api.ab import from_judgement
from torchmark.api.callgrind_stats import make_stats
from torchmark.api.inputs import make_result
from torchmark.cli.main import main as run_program
from torchmark.cli.program import program
from torchmark.cli.startup import COMMANDS, overview
from torchmark.compare.comparison import Comparison, Evidence
from torchmark.compare.session import ComparisonResult
from torchmark.model.costs import Costs, Function, Profile, Stacks
from torchmark.model.environment import Machine, Tool, TorchBuild
from torchmark.model.gate import Trial
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import PairedSide, RaceJob, TimeJob
from torchmark.model.judgement import Side, Verdict
from torchmark.model.outcome import Failure, FailureKind, Result
from torchmark.model.plan import Case, Metric, Node, Order, Target
from torchmark.model.run import Run
from torchmark.model.task import TaskSpec, Times
from torchmark.native.cache import CacheState
from torchmark.report.flame.formats import as_collapsed
from torchmark.report.flame.page import render_html, render_svg
from torchmark.report.html.overrides import write_guide, write_tables
from torchmark.report.html.report_page import render_report
from torchmark.report.text.gate import summarise_markdown
from torchmark.report.text.judgements import describe_judgement, render_judgements
from torchmark.report.text.overrides import render_overrides
from torchmark.report.text.run_table import describe_compile_costs
from torchmark.runner.lab import Lab
from torchmark.store.runs import open_store

FOLDER = GOLDEN / "outputs"
WIDTHS = (60, 80, 120, 200)
STORE = ".torchmark/results.db"
NOW = BEGAN + 86_400
# What a scene that has the working folder in it shows instead.
HERE = "/the/working/folder"
# Of the environment nothing else is left: not what colours, folders and programs there are.
VARIABLES = {
    "PATH": "/nowhere",
    "HOME": f"{HERE}/home",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
}
# The last digits of what is computed depend on the processor's way to add and on the version of Python.
DIGITS = 10
_LONG_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")
_ADDRESS = re.compile(r"<[\w.]+ object at 0x[0-9a-f]+>")
_PACKED_FLAMES = re.compile(r'(?<=id="torchmark-flames">)[\w+/=]+')

Act = Callable[["Stage"], None]
SCENES: dict[str, Act] = {}


class Stage:
    """A folder and a clock of its own for a scene, and the texts that come of it."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch = patch
        self.texts: dict[str, str] = {"txt": ""}
        self._folder = folder
        self._path = list(sys.path)

    def run(self, *arguments: str, columns: int = 80, text: str = "", terminal: bool = False) -> int:
        """Run the program: its arguments, all it writes, and the exit code become part of the text.

        On a `terminal`, standard output has colours.
        """
        self.patch.setenv("COLUMNS", str(columns))
        self.patch.setattr(sys, "path", list(self._path))
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(open_stream()) for _ in range(3)]
            if terminal:
                self.patch.setattr(streams[1], "isatty", lambda: True)
            streams[0].write(text)
            streams[0].seek(0)
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                self.patch.setattr(sys, name, stream)
            try:
                code = run_program(list(arguments))
            except SystemExit as ended:
                # So completion ends.
                code = int(ended.code or 0)
            out, err = (read_stream(stream) for stream in streams[1:])
            # Nothing else may write to what is closed now.
            for name, outer in zip(("stdin", "stdout", "stderr"), self._streams, strict=True):
                self.patch.setattr(sys, name, outer)
        head = f"$ {shlex.join(['torchmark', *arguments])}"
        self.add(head if columns == 80 else f"{head}  # {columns} columns", out)
        if err:
            self.add("--- on standard error", err)
        if code:
            self.add(f"--- exit code {code}", "")
        return code

    @property
    def _streams(self) -> tuple[IO[str] | None, IO[str] | None, IO[str] | None]:
        return OUTER_STREAMS[-1]

    def add(self, heading: str, text: str) -> None:
        """A text with a line above it."""
        end = "" if not text or text.endswith("\n") else "\n--- without a line break\n"
        self.texts["txt"] += f"{heading}\n{text}{end}"

    def keep(self, *paths: str) -> None:
        """Files that a command has written, as texts of their own, by their names."""
        for path in paths:
            self.texts[path] = Path(path).read_bytes().decode()

    def store(self, *runs: Run, path: str = STORE) -> None:
        """Add runs to the store, each a minute after the one before."""
        with open_store(Path(path), create=True) as store:
            for run in runs:
                known = len(store.list_runs())
                info = dataclasses.replace(run.info, created=BEGAN + 60 * known, id=f"{known + 1:08x}{run.info.id[8:]}")
                store.add(dataclasses.replace(run, info=info))

    def finish(self) -> dict[str, str]:
        """All texts, without what differs from machine to machine."""
        return {name: self._settle(text) for name, text in self.texts.items() if text}

    def _settle(self, text: str) -> str:
        for folder in (os.path.realpath(self._folder), str(self._folder)):
            text = text.replace(folder, HERE)
        text = _ADDRESS.sub("<object>", text)
        # Implementations of the packing differ in their bytes.
        text = _PACKED_FLAMES.sub(lambda found: inflate(found[0]), text)
        return _LONG_NUMBER.sub(lambda match: shorten(match[0]), text)


OUTER_STREAMS: list[tuple[IO[str] | None, IO[str] | None, IO[str] | None]] = []


def shorten(number: str) -> str:
    """As many digits as are the same everywhere.

    >>> shorten("0.1234567890123"), shorten("1.50"), shorten("2.5000000000000004e-08")
    ('0.123456789', '1.50', '2.5e-08')
    """
    digits = number.partition("e")[0].replace(".", "").lstrip("0")
    return number if len(digits) <= DIGITS else f"{float(number):.{DIGITS}g}"


def open_stream() -> IO[str]:
    """A stream with a file behind it, as commands need that send others' output elsewhere."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="", errors="replace")


def read_stream(stream: IO[str]) -> str:
    """All that was written to it."""
    stream.flush()
    with open(os.dup(stream.fileno()), "rb") as file:
        file.seek(0)
        return file.read().decode()


def perform(name: str) -> dict[str, str]:
    """The texts of a scene, by what their files' names end with."""
    outer = Path.cwd()
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        # Before the clock is stopped, which temporary folders need.
        OUTER_STREAMS.append((sys.stdin, sys.stdout, sys.stderr))
        try:
            for variable in os.environ:
                patch.delenv(variable)
            for variable, value in VARIABLES.items():
                patch.setenv(variable, value.replace(HERE, folder))
            patch.chdir(folder)
            time.tzset()
            stop_clocks(patch)
            make_machine(patch)
            stage = Stage(patch, Path(folder))
            SCENES[name](stage)
            return stage.finish()
        finally:
            OUTER_STREAMS.pop()
            patch.undo()
            os.chdir(outer)
            time.tzset()


def stop_clocks(patch: pytest.MonkeyPatch) -> None:
    """It is always the same moment, and runs have the same ids each time."""
    numbers = iter(range(1, 1_000_000))
    patch.setattr(time, "time", lambda: NOW)
    patch.setattr(time, "perf_counter", lambda: 1000.0)
    patch.setattr(time, "monotonic", lambda: 1000.0)
    patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(numbers) << 96))
    patch.setattr(platform, "node", lambda: "a-machine")


def make_machine(patch: pytest.MonkeyPatch) -> None:
    """Another machine than this one, on which no program is started."""
    patch.setattr(sys, "executable", "/opt/own/python")
    for name in COMMANDS:
        # click keeps the option as a command that is used by itself has it, and then help has no -h.
        command = program.get_command(click.Context(program), name)
        patch.setattr(command, "_help_option", None)
    patch.setattr("torchmark.api.runs.describe_host", lambda environ: HOST)
    patch.setattr("torchmark.api.report_data.describe_host", lambda environ: HOST)
    patch.setattr("torchmark.api.resume.read_cpu_model", lambda root: HOST.cpu_model)
    patch.setattr("torchmark.api.selftest.read_cpu_model", lambda root: HOST.cpu_model)
    patch.setattr("torchmark.cli.ab_options.check_interpreters", lambda *pythons: None)
    patch.setattr("torchmark.cli.commands.cmd_run.choose_cores", lambda cores: [0, 1])
    patch.setattr("torchmark.cli.commands.cmd_ab.choose_cores", lambda cores: [0, 1])
    patch.setattr("torchmark.cli.commands.cmd_overrides.choose_cores", lambda cores: [0, 1])
    patch.setattr("torchmark.cli.commands.cmd_selftest.choose_cores", lambda cores: [0, 1])


def scene(name: str) -> Callable[[Act], Act]:
    """Note what makes the texts of a scene."""

    def note(act: Act) -> Act:
        assert name not in SCENES
        SCENES[name] = act
        return act

    return note


def paths_of(name: str) -> Callable[[str], Path]:
    """Where a text of a scene is kept, by what its file's name ends with."""
    return lambda ending: FOLDER / f"{name}.{ending}"


def pick(prefixes: Sequence[str]) -> list[str]:
    """Names of scenes that begin with one of these; all, if there is none."""
    return [name for name in SCENES if not prefixes or name.startswith(tuple(prefixes))]


def read_stored(name: str) -> dict[str, str]:
    """The texts of a scene as they were when they were last written."""
    folder = FOLDER / os.path.dirname(name)
    start = os.path.basename(name) + "."
    found = folder.iterdir() if folder.is_dir() else []
    return {path.name[len(start) :]: path.read_bytes().decode() for path in found if path.name.startswith(start)}


def write(prefixes: Sequence[str]) -> None:
    """Write the texts of scenes anew; what is of no scene is removed."""
    written = set()
    for name in pick(prefixes):
        for ending, text in perform(name).items():
            path = paths_of(name)(ending)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
            written.add(path)
    for path in FOLDER.rglob("*") if not prefixes else ():
        if path.is_file() and path not in written:
            path.unlink()


# Help, and what is refused.


@scene("help/overview")
def _overview(stage: Stage) -> None:
    stage.run()
    stage.run("--help")
    stage.add("overview()", overview())


def _add_help(command: str) -> None:
    @scene(f"help/{command}")
    def _help(stage: Stage) -> None:
        for columns in (80, 120):
            stage.run(command, "--help", columns=columns)


for _command in COMMANDS:
    _add_help(_command)


@scene("help/cache-commands")
def _cache_help(stage: Stage) -> None:
    for command in ("info", "warm", "clear"):
        stage.run("cache", command, "--help")


@scene("help/completion")
def _completion(stage: Stage) -> None:
    stage.store(make_golden_run())
    stage.patch.setenv("_TORCHMARK_COMPLETE", "zsh_complete")
    for words in ("torchmark ", "torchmark co", "torchmark show ", "torchmark list ", "torchmark run --me"):
        stage.patch.setenv("COMP_WORDS", words)
        stage.patch.setenv("COMP_CWORD", str(words.count(" ")))
        stage.add(f"completing {words!r}", "")
        stage.run()


@scene("help/refused")
def _refused(stage: Stage) -> None:
    stage.store(make_golden_run())
    for line in (
        "nonsense",
        "sho",
        "--nonsense",
        "show --nonsense",
        "show a b",
        "show nowhere",
        "show --store none.db",
        "show --metric time",
        "show @ --inclusive",
        "show @ --functions add",
        "show @ -k linaer",
        "show @ -k '(add'",
        "list -k add -k sub",
        "list nowhere.py",
        "time",
        "time x --number 5 --adaptive",
        "time x --number 0",
        "time x --timeout 0",
        "time no/such-step.py",
        "time x --threads 0",
        "count x --diff",
        "count x --layouts many",
        "ab HEAD~1 HEAD",
        "ab --base /some/python x+1",
        "ab 1 2 --limit Ir:lots",
        "ab 1 2 --fail-on faster",
        "fuzz x --only 1,x",
        "fuzz x --only 1 -n 3",
        "overrides --base a --nreps 5",
        "overrides --base a --python b",
        "overrides -o x.zip",
        "overrides --type Mine",
        "flame x y",
        "flame standard",
        "flame x --head b",
        "flame x -o x.gif",
        "run nowhere.py",
        "run --resume",
        "run --shard 3/2",
        "run --timeout 0",
        "report nowhere",
        "report -o .",
        "compare @",
        "compare @ @",
        "accept add",
        "accept --why x",
        "accept add --why ' '",
        "history nothing_like_it",
        "history --html - --json -",
        "export --format nonsense",
        "export nowhere",
        "import nowhere.json",
        "merge -o x.db",
        "merge nowhere.db -o x.db",
        "rm",
        "rm nowhere --yes",
        "cache nonsense",
    ):
        stage.run(*shlex.split(line))


# Stored runs.

STEADY = tuple(1e-6 * (1 + i / 1000) for i in range(9))
SAME, FASTER, GONE = (
    make_case("Pointwise", name, suite="standard", stmt=f"x.{name}()") for name in ("mul", "div", "pow")
)


def make_side(name: str, loop: int, seconds: float = 1.0, more: Iterable[Case] = (), **changes: Any) -> Run:
    """A run of which `loop` is what one of its functions takes; with a failure, a model and a case in C++."""
    results: dict[tuple[Case, Metric, int], Result] = {
        (ADD, WALL, 0): times(1000, *(one * seconds for one in STEADY)),
        (ADD, WALL, 1): times(1000, *(one * seconds * 1.002 for one in STEADY)),
        (ADD, COUNT, 0): count_functions(loop, 90_000),
        (SAME, WALL, 0): times(1000, *STEADY),
        (SAME, COUNT, 0): count_functions(20_000, 90_000),
        (FASTER, COUNT, 0): count_functions(40_000 - loop, 90_000),
        (ODD, COUNT, 0): dataclasses.replace(TALLY, totals=(loop, loop, loop), noisy=()),
        (FAILING, WALL, 0): FAILURE,
        (MODEL, WALL, 0): compile_costs(times(10, *(2e-3 * seconds * one / 1e-6 for one in STEADY))),
    }
    results |= {(case, COUNT, 0): count_functions(1000, 2000) for case in more}
    return run_of(results, name, **changes)


def split_targets(run: Run) -> Run:
    """The same in two environments."""
    targets = Target("left", "/a/python"), Target("right", "/b/python")
    outcomes = tuple(
        dataclasses.replace(one, order=dataclasses.replace(one.order, target=target))
        for target in targets
        for one in run.outcomes
    )
    info = dataclasses.replace(run.info, name="pair", id=f"{7:032x}")
    return dataclasses.replace(run, info=info, plan=dataclasses.replace(run.plan, targets=targets), outcomes=outcomes)


def split_nodes(run: Run) -> Run:
    """Its rounds measured by two nodes, of which one has another Valgrind."""
    outcomes = []
    for number, one in enumerate(run.outcomes):
        assert one.environment is not None
        newer = dataclasses.replace(one.environment, valgrind="valgrind-3.22.0")
        place, where = (Node("b", "EPYC"), newer) if number % 2 else (Node("a", "EPYC"), one.environment)
        outcomes.append(dataclasses.replace(one, node=place, environment=where))
    info = dataclasses.replace(run.info, name="nodes", id=f"{9:032x}")
    return dataclasses.replace(run, info=info, outcomes=tuple(outcomes))


def store_sides(stage: Stage) -> None:
    """`before`, `after` with more to do and a case less, `elsewhere` on another processor, and `pair`."""
    stage.store(
        make_side("before", 10_000, more=(GONE,)),
        make_side("after", 30_000, 1.08),
        make_side("elsewhere", 10_000, cpu_capability="AVX512"),
        split_targets(make_side("pair", 10_000)),
        split_nodes(make_side("nodes", 10_000)),
    )


def use_golden(stage: Stage) -> None:
    """The store that an early version has written."""
    stage.patch.setenv("TORCHMARK_STORE", "v1.db")
    Path("v1.db").write_bytes((GOLDEN / "store_v1.db").read_bytes())


@scene("show/golden")
def _show_golden(stage: Stage) -> None:
    use_golden(stage)
    for columns in WIDTHS:
        stage.run("show", columns=columns)
    for line in (
        "show before --failures",
        "show @ -k add",
        "show @ -k 'add and python' --metric wall",
        "show @ --metric count",
        "show @ --language cpp",
        "show @ --runtime compile",
        "show @ --threads 2",
        "show @ --tag small",
        "show @ --functions 'add and python'",
        "show @ --functions 'nn Modules / add, Python' --inclusive",
        "show @ --json -",
        "show @ -k add --functions 'add and python' --json -",
    ):
        stage.run(*shlex.split(line))


@scene("show/sample")
def _show_sample(stage: Stage) -> None:
    stage.store(sample_run(), sample_run((Target("base", "/base"), Target("head", "/head"))))
    for columns in WIDTHS:
        stage.run("show", "@", columns=columns)
        stage.run("show", "@1", columns=columns)
    stage.run("show", "@1", "--failures")
    stage.run("show", "@", "--json", "-")


@scene("show/nodes")
def _show_nodes(stage: Stage) -> None:
    store_sides(stage)
    for columns in (80, 120):
        stage.run("show", "nodes", columns=columns)
        stage.run("show", "pair", columns=columns)
    stage.run("show", "nodes", "--functions", "mul")
    stage.run("show", "nodes", "--json", "-")


@scene("show/unfinished")
def _show_unfinished(stage: Stage) -> None:
    run = make_golden_run()
    newer = dataclasses.replace(run.info, orders=12, outcomes=0, failures=0)
    stage.store(run, dataclasses.replace(run, info=newer, outcomes=(), activities=()))
    for line in ("show", "show @1", "show --failures", "show @1 -k add --language python --metric wall", "runs"):
        stage.run(*shlex.split(line), columns=100)


@scene("runs")
def _runs(stage: Stage) -> None:
    stage.run("runs")
    store_sides(stage)
    stage.store(make_golden_run(), sample_run())
    for columns in WIDTHS:
        stage.run("runs", columns=columns)
    stage.run("runs", "--json", "-")
    use_golden(stage)
    stage.run("runs")


@scene("rm")
def _rm(stage: Stage) -> None:
    store_sides(stage)
    stage.run("rm", "before", text="n\n")
    stage.run("rm", "before", "--yes")
    stage.run("rm", "@", "@1", "--yes")
    stage.run("runs")


@scene("import")
def _import(stage: Stage) -> None:
    text = (GOLDEN / "run_v1.json").read_text()
    Path("run.json").write_text(text)
    stage.run("import", "run.json")
    stage.run("import", "run.json")
    stage.run("import", "-", "--store", "other.db", text=text)
    stage.run("runs", "--store", "other.db")
    for name, wrong in (("no.json", "{"), ("empty.json", "{}"), ("list.json", "[1]")):
        Path(name).write_text(wrong)
        stage.run("import", name)


@scene("export/golden")
def _export_golden(stage: Stage) -> None:
    use_golden(stage)
    for kind in FORMATS:
        stage.run("export", "--format", kind)
    stage.run("export", "--env", "torch 2.1", "--format", "csv")
    stage.run("export", "-o", "run.csv", "--metric", "wall", "-k", "add")
    stage.keep("run.csv")


FORMATS = ("json", "csv", "markdown", "pyperf", "google", "pytest-benchmark", "github-action", "bmf", "upstream")


@scene("export/sample")
def _export_sample(stage: Stage) -> None:
    stage.store(sample_run())
    for kind in FORMATS:
        stage.run("export", "--format", kind)


@scene("export/nodes")
def _export_nodes(stage: Stage) -> None:
    store_sides(stage)
    for kind in FORMATS[1:]:
        stage.run("export", "nodes", "--format", kind)
        stage.run("export", "pair", "--format", kind, "--metric", "count")


@scene("compare/runs")
def _compare_runs(stage: Stage) -> None:
    store_sides(stage)
    for columns in WIDTHS:
        stage.run("compare", "before", "after", columns=columns)
    for line in (
        "compare after before --all",
        "compare before after --explain 'add or div'",
        "compare before after --no-explain",
        "compare before after --metric wall",
        "compare before after -k add",
        "compare before after --fail-on slower --limit Ir:0.3%",
        "compare before after --fail-on slower,undecided,failed,missing --limit 'time:2%@Pointwise/*'",
        "compare before after --limit Ir:50",
        "compare before elsewhere",
        "compare before elsewhere --force",
        "compare pair",
        "compare pair:right before",
        "compare before nodes",
    ):
        stage.run(*shlex.split(line))


@scene("compare/json")
def _compare_json(stage: Stage) -> None:
    store_sides(stage)
    stage.run("compare", "before", "after", "--fail-on", "slower", "--json", "-")
    stage.run("compare", "before", "elsewhere", "--force", "--json", "out.json", "--summary", "out.md")
    stage.run("compare", "before", "after", "--limit", "Ir:0", "--summary", "gate.md")
    stage.keep("out.json", "out.md", "gate.md")


@scene("compare/files")
def _compare_files(stage: Stage) -> None:
    machine = Timing(stage.patch)
    stage.run("time", "x + y", "x * y", "--json", "a.json")
    machine.factor = 1.1
    stage.run("time", "x + y", "x * y", "--json", "b.json")
    count_made_up(stage.patch)
    stage.run("count", "x + y", "x * y", "--json", "c.json")
    for name in "abc":
        os.utime(f"{name}.json", (BEGAN, BEGAN))
    for columns in (80, 120):
        stage.run("compare", "a.json", "b.json", columns=columns)
    stage.run("compare", "a.json", "b.json", "--json", "-")
    stage.run("compare", "c.json", "c.json", "--all")
    stage.run("compare", "a.json", "c.json")
    stage.run("compare", "a.json", "none.json")
    # Made of the file's whole path.
    stage.texts["txt"] = re.sub(r'"id": "[0-9a-f]{32}"', '"id": "(of the path)"', stage.texts["txt"])


@scene("accept")
def _accept(stage: Stage) -> None:
    store_sides(stage)
    stage.run("accept", "--run", "after", "--why", "More to do.", "Pointwise / add, Python")
    stage.run("compare", "before", "after", "--fail-on", "slower", "--limit", "Ir:0", "--no-explain")
    stage.run("compare", "after", "before", "--fail-on", "slower", "--limit", "Ir:0", "--no-explain")
    stage.run("accept", "--run", "pair", "--env", "left", "--all", "--why", "All of it.", "--ledger", "ours")
    stage.run("accept", "--run", "after", "--why", "x", "Pointwise")
    for path in sorted(Path("torchmark-ledger").iterdir()):
        # The day is that of the machine's own clock.
        stage.add(str(path), re.sub(r"\d{4}-\d\d-\d\d", "(today)", path.read_text()))


@scene("merge")
def _merge(stage: Stage) -> None:
    run_shards(Path(), 3)
    stage.run("merge", "1_3.db", "2_3.db", "3_3.db", "-o", "all.db")
    stage.run("merge", "3_3.db", "-o", "lone.db")
    stage.run("merge", "1_3.db", "3_3.db", "-o", "lone.db")
    stage.run("merge", "1_3.db", "3_3.db", "-o", "lone.db", "--force")
    for store in ("1_3.db", "lone.db", "all.db"):
        stage.run("runs", "--store", store)
        stage.run("show", "--store", store)
    # What a run is called that is merged is drawn at random.
    stage.run("show", "--store", "all.db", "--json", "-")


def store_days(stage: Stage) -> None:
    """A step in times, one in counts, and a failure."""
    levels = [1.0] * 6 + [1.2] * 6 + [None, 1.2, 1.21]
    counts = [5000] * 6 + [6000] * 8 + [None]
    with open_store(Path(STORE), create=True) as store:
        for run in make_days(levels, counts, [1.0] * 9 + [1.05] * 6):
            store.add(run)


@scene("history/text")
def _history(stage: Stage) -> None:
    store_days(stage)
    for columns in WIDTHS:
        stage.run("history", columns=columns)
    for line in (
        "history add",
        f"history '{DAILY.label[0]} / {DAILY.label[1]}, Python' --anchor day-3",
        "history -k mul --metric wall",
        "history --metric count --limit 4",
        "history add --json -",
        "history --env nothing",
    ):
        stage.run(*shlex.split(line))


@scene("history/page")
def _history_page(stage: Stage) -> None:
    store_days(stage)
    stage.run("history", "--html", "page.html")
    stage.run("history", "add", "--metric", "count", "--html", "-")
    stage.keep("page.html")


@scene("terminal")
def _terminal(stage: Stage) -> None:
    store_sides(stage)
    store_days(stage)
    stage.patch.setenv("TERM", "xterm-256color")
    stage.patch.setattr("torchmark.cli.commands.cmd_doctor.probe_machine", lambda: RICH)
    stage.patch.setattr(
        "torchmark.cli.commands.cmd_ab.run_comparison", lambda comparison, *_, **__: make_found(comparison, 0.05, -0.02)
    )
    for line in (
        "show before",
        "show nodes --failures",
        "show before --functions 'Pointwise / add, Python'",
        "compare before after --fail-on slower",
        "history add",
        "runs",
        "list modern",
        "doctor",
        "ab a b c --metric wall,count",
        "ab a b --metric wall,count",
    ):
        for columns in (80, 120):
            stage.run(*shlex.split(line), columns=columns, terminal=True)
    stage.patch.setenv("NO_COLOR", "1")
    stage.run("show", "before", terminal=True)
    stage.run("doctor", terminal=True)


@scene("report/one")
def _report_one(stage: Stage) -> None:
    store_sides(stage)
    stage.run("report", "before", "-o", "page.html", "--title", "A <title>")
    stage.run("report", "nodes", "-o", "nodes.html", "--no-flames", "-k", "add or mul")
    stage.keep("page.html", "nodes.html")


@scene("report/two")
def _report_two(stage: Stage) -> None:
    store_sides(stage)
    stage.run("report", "after", "before", "-o", "page.html")
    stage.run("report", "elsewhere", "before", "-o", "apart.html", "-k", "add or odd")
    stage.run("report", "elsewhere", "before", "--force", "--no-flames", "-o", "forced.html", "-k", "add")
    stage.run("report", "pair", "-o", "pair.html", "--no-flames", "-k", "add")
    stage.run("report", "after", "-k", "nothing_like_it")
    stage.keep("page.html", "apart.html", "forced.html", "pair.html")


@scene("report/golden")
def _report_golden(stage: Stage) -> None:
    use_golden(stage)
    stage.run("report", "@:torch 2.1", "@:", "-o", "pair.html")
    stage.run("report", "-o", "page.html")
    if Path("page.html").exists():
        stage.keep("page.html")


def _add_page(name: str, make: Callable[[], Any]) -> None:
    @scene(f"report/made-{name}")
    def _page(stage: Stage) -> None:
        stage.texts["html"] = render_report(make())


_add_page("compared", make_small)
_add_page("single", lambda: make_small(compared=False))
_add_page("uncounted", make_uncounted)
_add_page("uncompared", make_uncompared)
_add_page("hostile", make_hostile)
_add_page("many", lambda: make_many(24))


# What there is to measure.

SUITE = """
from torchmark import GroupedModules, GroupedSetup, GroupedStmts, GroupedVariants
BENCHMARKS = {
    "add": GroupedStmts("x + 1", "x.add(1);", setup=GroupedSetup("x = torch.ones(4)", "auto x = torch::ones(4);")),
    "fine": GroupedStmts("1 + 1", num_threads=(1, 2)),
    "raises": GroupedStmts("1 / 0"),
}
"""


@scene("list/suites")
def _list_suites(stage: Stage) -> None:
    for columns in WIDTHS:
        stage.run("list", columns=columns)
    for suite in ("modern", "overrides"):
        for columns in (80, 120):
            stage.run("list", suite, columns=columns)


@scene("list/selected")
def _list_selected(stage: Stage) -> None:
    Path("bench_mine.py").write_text(SUITE)
    for line in (
        "list standard -k 'nn and not c++'",
        "list standard --language cpp --autograd backward",
        "list standard --runtime torchscript",
        "list standard --threads 2",
        "list standard modern --tag nothing",
        "list standard -k 'liner and add'",
        "list bench_mine.py",
        "list . --json -",
        "list standard -k 'linear and python' --json -",
        "list modern -k 'compile' --json -",
    ):
        stage.run(*shlex.split(line))


RAISED = Failure(
    FailureKind.RAISED, "ZeroDivisionError: division by zero", "Traceback:\nZeroDivisionError: division by zero"
)


def measure(order: Order) -> Result:
    """The same number for every case but those that fail."""
    if order.case.label[0] == "raises":
        return RAISED
    if order.metric is Metric.COUNT:
        return dataclasses.replace(tally(100, 500_000, 500_300, 500_100), profile=PROFILE)
    if order.case.parts is not None:
        return compile_costs(times(10, 2e-3, 2.1e-3, 2.2e-3))
    return times(1000, *STEADY)


def measure_nothing(stage: Stage) -> None:
    """Results of `torchmark run` are made up."""
    stage.patch.setattr("torchmark.runner.local.LocalBackend", lambda cores: FakeBackend(measure, ENVIRONMENT))
    Path("bench_mine.py").write_text(SUITE)


@scene("run/file")
def _run_file(stage: Stage) -> None:
    measure_nothing(stage)
    for line in (
        "run bench_mine.py --dry-run",
        "run bench_mine.py --metric wall --dry-run --shard 1/2",
        "run bench_mine.py --name first",
        "run bench_mine.py --name first --resume",
        "run bench_mine.py --quiet --metric wall -k fine --json -",
        "run bench_mine.py --metric count --fail-fast --json out.json",
        "run bench_mine.py --shard 2/2 --store shard.db --repeat 2",
        "run bench_mine.py --shard 9/9 --store shard.db",
        "run --resume --repeat 7",
        "runs",
        "show first",
        "show first --json -",
    ):
        stage.run(*shlex.split(line))
    stage.keep("out.json")


@scene("run/standard")
def _run_standard(stage: Stage) -> None:
    measure_nothing(stage)
    stage.run("run", "standard", "-k", "linear", "--dry-run")
    for columns in WIDTHS:
        stage.run("run", "standard", "-k", "linear", columns=columns)
    stage.run("run", "standard", "-k", "add", "--env", "base=/a/python", "--env", "branch=/b/python", columns=120)
    stage.run("run", "modern", "-k", "compile", "--metric", "wall", columns=120)
    stage.run("runs")


class Timing:
    """Answers at once for `torchmark time`: each statement has its own time, and one fails."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.factor = 1.0
        patch.setattr("torchmark.runner.worker.measure_time", self.measure)
        patch.setattr("torchmark.api.statements.race", self.race)
        patch.setattr("torchmark.runner.worker.Worker", NoWorker)
        patch.setattr("torchmark.api.statements.make_parts", make_no_parts)

    def _take(self, stmt: str, number: int, blocks: int) -> Times | Failure:
        if stmt == "bad()":
            return Failure(
                FailureKind.RAISED, "NameError: name 'bad' is not defined", "Traceback:\nNameError: name 'bad'"
            )
        if stmt == "crash()":
            return Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")
        spread = 0.4 if "noisy" in stmt else 0.002
        once = len(stmt) * 3e-7 * self.factor * number
        return Times(number, tuple(once * (1 + spread * (i * 7 % 10) / 10) for i in range(blocks)))

    def measure(self, worker: object, job: TimeJob, timeout_s: float) -> Times | Failure:
        return self._take(job.stmt, job.number or 100, job.blocks or (3 if "short" in job.stmt else 40))

    def race(self, worker: object, job: RaceJob, timeout_s: float) -> tuple[Times, ...] | Failure:
        found = [self._take(stmt, job.number or 100, 40) for stmt in job.stmts]
        failure = next((one for one in found if isinstance(one, Failure)), None)
        if failure is None and len(found) > 1 and "apart()" in job.stmts:
            failure = Failure(FailureKind.CRASHED, "The process was ended by SIGSEGV.")
        return failure or tuple(one for one in found if isinstance(one, Times))


class NoWorker:
    """A process that is not started."""

    environment = dataclasses.replace(ENVIRONMENT, native_capability="AVX512", valgrind="valgrind-3.19.0")
    is_up = True

    def __init__(self, *_: object) -> None: ...

    def close(self) -> None:
        """There is nothing to start or to end."""

    start = abandon = close


def make_no_parts(cases: Iterable[Case], lab: Lab, *_: object, **__: object) -> dict[Case, PairedSide]:
    """Nothing is compiled."""
    return {case: lab.make_side(case) for case in cases}


@scene("time")
def _time(stage: Stage) -> None:
    Timing(stage.patch)
    Path("step.py").write_text("y = x + 1\ny = y * 2\n")
    for columns in WIDTHS:
        stage.run("time", "x + 1", "x.add(1)", "torch.add(x, 1)", "--setup", "x = torch.ones(8)", columns=columns)
    for line in (
        "time 'x + 1' --setup 'x = torch.ones(8)' --label 'A title'",
        "time 'noisy(x)'",
        "time 'short(x)'",
        "time 'short(x)' 'noisy(x)' ab cd",
        "time pass",
        "time 'x @ x' --threads 1,2,4",
        "time ab cd --threads 1,2",
        "time 'bad()' ab cd",
        "time 'crash()'",
        "time 'apart()' 'x.y.z()'",
        "time step.py 'x + 1'",
        "time --number 50 ab 'x + 1'",
        "time 'x.add(1);' 'x + 1;' --setup 'auto x = torch::ones(8);' --language cpp",
        "time ab cd --python /other/python --min-run-time 1",
        "time 'x + 1' 'x.add(1)' 'bad()' --json -",
        "time 'short(x)' --json -",
    ):
        stage.run(*shlex.split(line))
    stage.run("time", "-", "x + 1", text="x * 2\n")


def count_made_up(patch: pytest.MonkeyPatch) -> None:
    """Answers at once for `torchmark count`."""
    at_add = Function("add.cpp", "at::add(at::Tensor const&)", "/lib/libtorch_cpu.so")
    loop = Function("Python/ceval.c", "_PyEval_EvalFrameDefault", "/bin/python")

    def count(lab: Lab, side: PairedSide, worker: object, layouts: tuple[int, ...], *_: object, number: int) -> Any:
        if side.stmt == "bad()":
            return RAISED
        own: dict[Function, Costs] = {at_add: (100 * len(side.stmt),), loop: (90_000,)}
        total = 90_000 + 100 * len(side.stmt)
        totals = tuple(total + (37 * i if "noisy" in side.stmt else 0) for i in range(len(layouts)))
        profile = Profile(("Ir",), own, own, {})
        return dataclasses.replace(tally(number, *totals), profile=profile, noisy=("ceval.c:_PyEval",))

    patch.setattr("torchmark.runner.worker.Worker", NoWorker)
    patch.setattr("torchmark.api.statements.find_valgrind", lambda path: "/usr/bin/valgrind")
    patch.setattr("torchmark.runner.worker.measure_time", lambda *_, **__: Times(1, (1.0,)))
    patch.setattr("torchmark.runner.lab.Lab.count_side", count)


@scene("count")
def _count(stage: Stage) -> None:
    count_made_up(stage.patch)
    for columns in WIDTHS:
        stage.run("count", "x * 2", "x + x + x", "--setup", "x = torch.ones(8)", "--diff", columns=columns)
    for line in (
        "count 'x * 2'",
        "count 'noisy(x)' 'x * 2' --threads 1,2",
        "count 'noisy(x)' --layouts 1",
        "count 'bad()' 'x * 2'",
        "count 'bad()'",
        "count 'x * 2' 'x + x' --diff --json -",
        "count 'x * 2' 'bad()' --json -",
    ):
        stage.run(*shlex.split(line))


@scene("fuzz")
def _fuzz(stage: Stage) -> None:
    def race_on(inputs: Iterable[FuzzedInput], job: RaceJob, *_: object) -> Iterator[Any]:
        for one in inputs:
            found: tuple[Times, ...] | Failure = RAISED
            if one.index != 3 and "bad()" not in job.stmts:
                slow = 1.0 if one.features["x is contiguous"] else 3.0
                ratios = [1.0, slow, 1 + one.index / 1000][: len(job.stmts)]
                base = 1e-6 + one.elements * 1e-10
                found = tuple(Times(10, tuple(10 * base * r * (1 + i / 5000) for i in range(8))) for r in ratios)
            yield make_result(one, job, found, ENVIRONMENT)

    stage.patch.setattr("torchmark.api.inputs.race_on", race_on)
    for columns in WIDTHS:
        stage.run("fuzz", "x + y", "torch.add(x, y)", "-n", "60", "-q", columns=columns)
    for line in (
        "fuzz 'x.neg()' -n 20 --top 2",
        "fuzz 'x + 1' 'x.add(1)' 'torch.add(x, 1)' -n 40 --seed 3 --dtype float32,int32 --setup 'z = 1' --threads 2 -q",
        "fuzz 'x + 1' 'x.add(1)' --only 2,5 -q",
        "fuzz 'bad()' x -n 30",
        "fuzz x x -n 4 -q --preset medium",
        "fuzz 'x @ y' 'torch.mm(x, y)' -n 6 -q --json -",
    ):
        stage.run(*shlex.split(line))


# Comparisons that were just made.


def make_found(comparison: Comparison, *changes: float) -> ComparisonResult:
    """What would come of a comparison; the entries change by these shares in turn."""
    evidence, judgements = Evidence(), []
    for number, entry in enumerate(comparison.entries):
        change = changes[number % len(changes)]
        for case, target, factor in ((entry.base, comparison.base, 1.0), (entry.head, comparison.head, 1 + change)):
            order = Order(case, target, Metric.COUNT)
            evidence.counted[order] = make_tally(round(900 * factor), 37, 63)
            evidence.environments[order] = ENVIRONMENT
        judgements.append(
            make_judgement(
                case=entry.head,
                base_case=entry.base if entry.is_of_two else None,
                time=dataclasses.replace(
                    make_time(change, confirmed=True, needed_s=3.0 if number else None),
                    visits=make_visits([[change, change + 0.001], [change - 0.001]], [[change]]),
                ),
                count=make_count(1000, 900 * change),
                caveats=DOUBTS[number % len(DOUBTS) :][:1] if number else (),
                failures=fail(Side.HEAD) if number == 4 else (),
            )
        )
    return ComparisonResult(evidence, tuple(judgements), "ab", None)


@scene("ab/statements")
def _ab_statements(stage: Stage) -> None:
    stage.patch.setattr(
        "torchmark.cli.commands.cmd_ab.run_comparison", lambda comparison, *_, **__: make_found(comparison, 0.05, -0.02)
    )
    for columns in WIDTHS:
        stage.run("ab", "x + y", "torch.add(x, y)", "--setup", "x, y = 1, 2", "--metric", "wall,count", columns=columns)
    for line in (
        "ab a b c",
        "ab a b c --metric wall,count --fail-on slower --limit time:2%",
        "ab a b --metric wall,count --json -",
        "ab a b --metric wall,count --html page.html --summary out.md --no-explain",
        "ab --base /a/python --stmt 'x + y' --metric wall,count",
    ):
        stage.run(*shlex.split(line))
    stage.keep("page.html", "out.md")


@scene("ab/suite")
def _ab_suite(stage: Stage) -> None:
    changes = (0.05, 0.0, -0.04, 0.006, 0.0, 0.3)
    stage.patch.setattr(
        "torchmark.cli.commands.cmd_ab.run_comparison", lambda comparison, *_, **__: make_found(comparison, *changes)
    )
    suite = ("ab", "--base", "/a/python", "--head", "/b/python", "standard", "-k", "linear", "--metric", "wall,count")
    for columns in WIDTHS:
        stage.run(*suite, columns=columns)
    stage.run(*suite, "--all", "--fail-on", "slower,failed", "--limit", "Ir:1%")
    stage.run(*suite, "--json", "-", "--language", "python")


@scene("overrides/run")
def _overrides(stage: Stage) -> None:
    def take(order: Order) -> Result:
        factor = 1 if "plain" in order.case.tags else 2
        if order.case.label == ("neg", "SubTensor"):
            return RAISED
        if order.metric is Metric.COUNT:
            return make_tally(900 * factor, 37, 63)
        return Times(500, tuple(factor * 500 * us * 1e-6 for us in (1.0, 1.1, 1.2, 1.1, 1.0, 1.3)))

    stage.patch.setattr("torchmark.api.override_comparison.LocalBackend", lambda cores: FakeBackend(take, ENVIRONMENT))
    stage.patch.setattr("torchmark.api.override_comparison.find_faults", lambda cases, target: {})
    for columns in WIDTHS:
        stage.run("overrides", "-k", "add or neg", "-q", columns=columns)
    stage.run("overrides", "--nreps", "500", "--nrepreps", "6")
    stage.run("overrides", "--type", "here:Mine", "-k", "Mine", "-q")
    stage.run("overrides", "-k", "neg", "-q", "--json", "-")
    stage.run("overrides", "-k", "nothing_like_it")


class NoTracer:
    """Traces nothing: all cases have the same stacks."""

    is_up = True
    environment = ENVIRONMENT

    def __init__(self, target: Target) -> None:
        self.worker = self
        self._stacks = BASE_STACKS if target.name == "base" else HEAD_STACKS

    def trace(self, cases: Sequence[Case], number: int) -> Iterator[tuple[Case, Stacks | Failure]]:
        """As a tracer does."""
        for case in cases:
            yield case, RAISED if case.args.stmt == "bad()" else self._stacks


@contextlib.contextmanager
def open_no_tracer(target: Target) -> Iterator[NoTracer]:
    """Instead of one that starts a process."""
    yield NoTracer(target)


@scene("overrides/compared")
def _overrides_compared(stage: Stage) -> None:
    changes = (0.05, 0.0, -0.04)
    for name, value in (
        (
            "torchmark.api.override_comparison.run_comparison",
            lambda comparison, *_, **__: make_found(comparison, *changes),
        ),
        ("torchmark.api.override_comparison.Tracer", open_no_tracer),
        ("torchmark.api.override_comparison.start_together", lambda base, head: None),
    ):
        stage.patch.setattr(name, value)
    stage.patch.setitem(sys.modules, "resvg_py", None)
    stage.run("overrides", "--base", "/a/python", "-k", "neg", "-q", "-o", "x.zip", "--summary", "out.md", "--all")
    with zipfile.ZipFile("x.zip") as archive:
        for name in sorted(archive.namelist()):
            stage.add(f"--- in x.zip: {name}", "")
            if name.endswith((".md", ".html")) or "difference-add" in name:
                stage.texts[Path(name).name] = archive.read(name).decode()
    stage.run("overrides", "--base", "/a/python", "-k", "neg", "-q", "--json", "-")
    stage.keep("out.md")


@scene("flame/command")
def _flame(stage: Stage) -> None:
    stage.patch.setattr("torchmark.api.flames.Tracer", open_no_tracer)
    stage.patch.setattr("torchmark.api.flames.start_together", lambda *_: None)
    stage.patch.setattr("torchmark.api.flames.find_faults", lambda cases, target: {})
    stage.patch.setattr("torchmark.api.flames.sample_case", lambda *_, **__: HEAD_STACKS)
    names = ("one.svg", "one.html", "one.speedscope.json", "one.txt")
    for name in names:
        stage.run("flame", "x + y", "-o", name)
        stage.run("flame", "x + y", "--base", "/a/python", "-o", f"two{name[3:]}")
    for line in (
        "flame 'x + y' -o -",
        "flame 'x + y' --no-native --format collapsed -o -",
        "flame 'x + y' --sampled --seconds 2 --format collapsed -o -",
        "flame 'bad()' --format collapsed -o -",
        "flame standard -k 'linear and python' --format collapsed -o graphs/",
    ):
        stage.run(*shlex.split(line))
    stage.keep(*names, *(f"two{name[3:]}" for name in names))


@scene("selftest")
def _selftest(stage: Stage) -> None:
    trials = [
        *[Trial(0.0, Verdict.SAME, ratio, 0.5) for ratio in (-0.002, -0.001, 0.0, 0.001, 0.002)],
        *[Trial(1e-8, Verdict.UNDECIDED, 0.01, 1.0)] * 3,
        *[Trial(5e-8, Verdict.SLOWER, 0.05, 0.75)] * 4,
    ]
    for name, value in (
        ("torchmark.api.selftest.PairedWorkers", lambda *_, **__: NoWorkers()),
        ("torchmark.cli.commands.cmd_selftest.claim_machine", lambda *_: None),
        ("torchmark.api.selftest.gauge_statement", lambda workers: 1e-6),
        ("torchmark.api.selftest.choose_slowings", lambda workers, sizes: {3: 1e-8, 9: 5e-8}),
        ("torchmark.api.selftest.run_trials", lambda *_: iter(trials)),
    ):
        stage.patch.setattr(name, value)
    for columns in WIDTHS:
        stage.run("selftest", "--quiet", columns=columns)
    stage.run("selftest", "--quick")
    stage.run("selftest", "--quick", "-q", "--json", "-")


class NoWorkers:
    """Processes that were not started."""

    def start(self, seeds: object) -> None:
        """Nothing starts."""

    def close(self) -> None:
        """Nothing ends."""


POOR = Machine("Linux 6.1 x86_64", "CPython 3.11.7", torch_problem="ModuleNotFoundError: No module named 'torch'")
RICH = Machine(
    "Linux 6.1 x86_64",
    "CPython 3.11.7",
    cpu_model="A Fine CPU @ 2.30GHz",
    cores_online=8,
    cores_allowed=4,
    cpu_quota=2.5,
    governor="powersave",
    turbo=True,
    load=3.7,
    virtual=True,
    steal_share=0.04,
    aslr=True,
    aslr_can_be_disabled=True,
    valgrind=Tool("/usr/bin/valgrind", "valgrind-3.19.0"),
    compiler=Tool("/usr/bin/g++", "g++ (Debian) 12.2.0"),
    py_spy=Tool("/usr/bin/py-spy", "py-spy 0.4.0"),
    ptrace_allowed=False,
    torch=TorchBuild("2.13.0", debug=False, cpu_capability="AVX2", num_threads=4, accelerator=None),
)
FINE = dataclasses.replace(
    RICH,
    cores_allowed=8,
    cpu_quota=None,
    governor="performance",
    turbo=False,
    load=0.1,
    virtual=False,
    steal_share=0.0,
    ptrace_allowed=True,
)


@scene("doctor")
def _doctor(stage: Stage) -> None:
    for machine in (POOR, RICH, FINE):
        stage.patch.setattr("torchmark.cli.commands.cmd_doctor.probe_machine", lambda found=machine: found)
        for columns in WIDTHS:
            stage.run("doctor", columns=columns)
        stage.run("doctor", "--json", "-")


@scene("cache")
def _cache(stage: Stage) -> None:
    for state in (
        CacheState(folder="/a/cache", snippets=0, libraries=0, preludes=0, size_bytes=0, limit_bytes=2 << 30),
        CacheState(
            folder="/a/cache", snippets=21, libraries=3, preludes=1, size_bytes=123_456_789, limit_bytes=2 << 30
        ),
    ):
        stage.patch.setattr("torchmark.cli.commands.cmd_cache.inspect_cache", lambda environ, found=state: found)
        stage.patch.setattr("torchmark.cli.commands.cmd_cache.clear_cache", lambda environ, found=state: found)
        stage.run("cache", "info")
        stage.run("cache", "info", "--json", "-")
        stage.run("cache", "clear")
    stage.patch.setattr("torchmark.cli.commands.cmd_cache.warm_cache", lambda environ: None)
    stage.run("cache", "warm")


@scene("schema")
def _schema(stage: Stage) -> None:
    stage.run("schema", "cache")
    stage.run("schema", "rm")


# What is used from Python, and what only measuring leads to.


@scene("python/timer")
def _timer(stage: Stage) -> None:
    for stmt in ("pass", "cheap_fn()", "expensive_fn()", MULTI_LINE):
        timer = MockTimer(stmt, label="A label", sub_label=stmt[:4], description="d", env="branch")
        measured = timer.blocked_autorange(min_run_time=10)
        for one in (measured, timer.timeit(7), Measurement(1, [], measured.task_spec)):
            show_value(stage, one)
            stage.add("as a dictionary", json.dumps(one.to_dict(), indent=1))


@scene("python/compare")
def _compare(stage: Stage) -> None:
    results = measure_implementations()
    for change in ("nothing", "trim_significant_figures", "colorize", "rowwise", "highlight_warnings"):
        comparison = Compare(results)
        if change == "trim_significant_figures":
            comparison.trim_significant_figures()
        elif change == "colorize":
            comparison.colorize()
        elif change == "rowwise":
            comparison.colorize(rowwise=True)
        elif change == "highlight_warnings":
            comparison.highlight_warnings()
        stage.add(f"with {change}", str(comparison))
        stage.add("as Markdown", comparison.to_markdown())
        stage.add("as HTML", comparison._repr_html_())
    stage.add("as CSV", Compare(results).to_csv())
    stage.add("as a dictionary", json.dumps(Compare(results).to_dict(), indent=1))


@scene("python/counts")
def _counts(stage: Stage) -> None:
    stats = [
        make_stats(TaskSpec("x + 1", "x = torch.ones(4)"), one, NoWorker.environment)
        for one in (TALLY, tally(100, 1000, 1100, 1200), count_functions(400, 1000))
    ]
    for one in stats:
        show_value(stage, one)
        for table in (
            one.stats(),
            one.stats(inclusive=True),
            one.as_standardized().stats().denoise(),
            one.delta(stats[0]),
        ):
            show_value(stage, table)
        stage.add("as a dictionary", json.dumps(one.to_dict(), indent=1))


def show_value(stage: Stage, one: Any) -> None:
    """As it is shown on a terminal and in a notebook."""
    stage.add(f"--- {type(one).__name__}", repr(one))
    if str(one) != repr(one):
        stage.add("as a text", str(one))
    if hasattr(one, "_repr_html_"):
        stage.add("as HTML", one._repr_html_())


def _add_values(name: str, values: Sequence[Any]) -> None:
    @scene(f"python/values-{name}")
    def _values(stage: Stage) -> None:
        for one in values:
            show_value(stage, one)


for _name, _shown in {**RESULTS, **VALUES}.items():
    _add_values(_name, _shown)


@scene("made/judgements")
def _judgements(stage: Stage) -> None:
    changes = (0.2, 0.03, 0.004, 0.0, -0.006, -0.1)
    judgements = [
        make_judgement("Pointwise", f"op {i}", time=make_time(change), count=make_count(1000, 1000 * change))
        for i, change in enumerate(changes)
    ]
    judgements += [
        make_judgement("timed", time=make_time(0.03, needed_s=12.0)),
        make_judgement("counted", count=make_count(1e6, -5, (3, 4), spread=2)),
        make_judgement("nothing"),
        make_judgement("fails", failures=fail(Side.HEAD)),
        make_judgement("both fail", failures=fail(*Side, failure=LACKING)),
        make_judgement("doubtful", time=make_time(0.02), count=make_count(1000, 50), caveats=DOUBTS),
    ]
    for width in WIDTHS:
        for colour in (False, True):
            stage.add(f"--- {width} columns", render_judgements(judgements, width, colour=colour, all_cases=True))
    for one in judgements:
        stage.add("---", describe_judgement(one, 80))
        show_value(stage, from_judgement(one))
    stage.add("--- Markdown", summarise_markdown(judgements, title="A title", gate=["It stops."]))
    stage.add("--- tables", write_tables(judgements))
    guide = write_guide(
        judgements, {}, {}, {"base": None, "branch": ENVIRONMENT}, "torchmark overrides", {}, "No font."
    )
    stage.add("--- guide", guide)


@scene("made/overrides")
def _made_overrides(stage: Stage) -> None:
    rows = make_override_rows()
    run = make_override_run(rows)
    for width in WIDTHS:
        for colour in (False, True):
            text = render_overrides(
                run, rows, hold_to_expectations(rows), width, colour=colour, shown=run.info, store="a.db"
            )
            stage.add(f"--- {width} columns", text)


@scene("made/flames")
def _made_flames(stage: Stage) -> None:
    for name, flame in (("plain", plain_flame()), ("compared", compared_flame()), ("hostile", hostile_flame())):
        stage.texts[f"{name}.svg"] = render_svg(flame)
        stage.texts[f"{name}.html"] = render_html(flame)
    stage.add("collapsed", as_collapsed(HEAD_STACKS, BASE_STACKS))


@scene("made/compiling")
def _compiling(stage: Stage) -> None:
    costs = compile_costs(times(10, 2e-3, 2.1e-3))
    for one in (costs, dataclasses.replace(costs, cold=FIRST_CALL)):
        stage.add("---", describe_compile_costs(one))


if __name__ == "__main__":
    write(sys.argv[1:])
