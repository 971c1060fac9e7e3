"""Reports that somebody made up: of any number of cases, with everything in them, and with texts that mean harm."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from tests.made_judgements import LACKING, fail, make_count, make_judgement, make_time
from tests.made_overrides import make_override_rows
from tests.made_summaries import make_case, make_summary
from tests.sample_runs import ENVIRONMENT, HOST
from torchmark.analysis.flames import shorten
from torchmark.model.caveats import Drift, Incomparable, LayoutSensitive, NotInTurns, OtherInstructionSet, Variation
from torchmark.model.costs import Flame, FlameNode, FlameUnit, Frame, FrameKind, Method
from torchmark.model.judgement import CaseJudgement, Explanation, FunctionChange, Side, StageChange
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import AutogradMode, Case, Metric, RuntimeMode, TimerArgs
from torchmark.model.report_data import Breakdown, Command, Drawing, ReportData, ReportEntry, ReportSide, Section
from torchmark.model.run import CaseSummary, Source
from torchmark.model.task import Language
from torchmark.report.html.overrides import make_override_section

CREATED = 1.7e9
BASE = ReportSide(
    name="before",
    title="before (0001), 2023-11-14",
    environments=(ENVIRONMENT,),
    host=HOST,
    sources=(Source("standard", "c0ffee"),),
)
HEAD = dataclasses.replace(
    BASE,
    name="after",
    environments=(
        dataclasses.replace(
            ENVIRONMENT, torch_version="2.14.0", valgrind="valgrind-3.19.0", variables=(("OMP_NUM_THREADS", "2"),)
        ),
    ),
)
# What would do something if it were taken for anything but text.
HOSTILE = (
    "<script>window.harmed = 1</script>",
    "</script><script>window.harmed = 2</script>",
    "<!--<script>",
    "-->]]></style></table>",
    '"><img src=x onerror="window.harmed = 3">',
    "javascript:window.harmed=4",
    "'; window.harmed = 5; '",
    "{{ 7 * 7 }} {% raw %} ${window.harmed = 6} `x`",
    "\u202ereversed\u2066 \u200f\x00\x1b[31m\x07",
    "half \ud83d of a pair \udcff",
    "line\u2028separator\u2029and\r\nnew\tline",
    "<svg onload=window.harmed=7>&lt;&amp;&#60;",
)
VICTIMS = ("x" * 400, "w i d e " * 40, "加算" * 60)


def make_breakdown(base: float, delta: float, only: Side | None = None) -> Breakdown:
    """Three stages, of which the second takes so much more, and fifteen functions."""
    rest = base - 400
    functions = [FunctionChange(f"at::native::f{i}<int>", "kernel", rest / 14, rest / 14) for i in range(14)]
    functions.append(FunctionChange("torch::PythonArgParser::parse", "argument parsing", 400, 400 + delta))
    stages = (
        StageChange("interpreter", 0.0, 0.0),
        StageChange("argument parsing", 400, 400 + delta),
        StageChange("kernel", rest, rest),
    )
    return shorten(Explanation(tuple(sorted(functions, key=lambda one: -abs(one.delta))), stages), only)


def make_flame(title: str = "a case", *, compared: bool = False, name: str = "at::add") -> Flame:
    """Four frames below all; of a difference, one of them has grown."""

    def node(frame: Frame, own: int, children: tuple[FlameNode, ...] = (), base: int | None = None) -> FlameNode:
        both = (base, base + sum(one.base_value or 0 for one in children)) if base is not None else (None, None)
        return FlameNode(frame, own, own + sum(one.value for one in children), children, *both)

    leaf = node(Frame(name, FrameKind.NATIVE, "libtorch_cpu.so"), 700, (), 500 if compared else None)
    side = node(Frame("free", FrameKind.NATIVE, "libc.so.6"), 200, (), 200 if compared else None)
    call = node(Frame("THPVariable_add"), 100, (leaf, side), 100 if compared else None)
    python = node(Frame("f", FrameKind.PYTHON, "bench.py:3"), 50, (call,), 50 if compared else None)
    root = node(Frame("all", FrameKind.OTHER), 0, (python,), 0 if compared else None)
    return Flame(root=root, title=title, unit=FlameUnit.INSTRUCTIONS, method=Method.CALL_GRAPH, number=1)


def make_entry(case: Case, change: float = 0.0, *, compared: bool = True, flame: bool = True) -> ReportEntry:
    """A case whose time and instructions have changed by this share."""
    base, head = make_summary(case, 1e-6, 10_000.0), make_summary(case, 1e-6 * (1 + change), 10_000.0 * (1 + change))
    judgement = make_judgement(case=case, time=make_time(change), count=make_count(10_000, 10_000 * change))
    return ReportEntry(
        case=case,
        summaries=(base, head) if compared else (head,),
        judgement=judgement if compared else None,
        breakdown=make_breakdown(
            10_000 if compared else 10_000 * (1 + change),
            10_000 * change if compared else 0,
            None if compared else Side.HEAD,
        ),
        flames=(make_flame(compared=compared),) if flame else (),
        commands=(Command("Measure it again:", "torchmark run standard -k 'a b'"),),
    )


def make_failed(case: Case, failure: Failure = LACKING, *, compared: bool = True) -> ReportEntry:
    """A case that failed in head, in every way of measuring."""
    failures = tuple((metric, failure) for metric in Metric)
    head = make_summary(case, None, None, failures=failures)
    judgement = make_judgement(case=case, failures=fail(Side.HEAD, failure=failure))
    return ReportEntry(case, (make_summary(case), head) if compared else (head,), judgement if compared else None)


def make_report(entries: Sequence[ReportEntry], *, compared: bool = True, title: str = "A report") -> ReportData:
    """A report on these."""
    return ReportData(
        title=title,
        sides=(BASE, HEAD) if compared else (HEAD,),
        entries=tuple(entries),
        created=CREATED,
        torchmark="0.1.0",
        method=("By looking at it.",),
    )


def make_small(*, compared: bool = True) -> ReportData:
    """A few cases, one of each kind."""
    python = [make_case("Pointwise", name, suite="standard", stmt=f"x.{name}()") for name in ("add", "mul", "div")]
    cpp = make_case("Pointwise", "add", language=Language.CPP, suite="standard", stmt="x.add(1);")
    model = make_case(
        "nn Modules", "Linear", runtime=RuntimeMode.JIT, autograd=AutogradMode.FORWARD_BACKWARD, threads=2
    )
    entries = [
        make_entry(python[0], 0.12, compared=compared),
        make_entry(python[1], -0.05, compared=compared),
        make_entry(python[2], 0.0, compared=compared),
        make_entry(cpp, 0.02, compared=compared, flame=False),
        make_failed(dataclasses.replace(model, suite="standard"), compared=compared),
    ]
    entries[2] = _doubt(entries[2])
    return make_report(entries, compared=compared)


def make_uncounted() -> ReportData:
    """Four cases with many instructions, of which base was not counted; a caveat, and the overheads of overrides."""
    entries = []
    for i, name in enumerate(("add", "mul", "div", "sqrt")):
        entry = make_entry(make_case("Pointwise", name, suite="standard", stmt=f"x.{name}()"), 0.12 * i)
        base, head = entry.summaries
        assert base is not None
        base = dataclasses.replace(base, count=None, caveats=(Drift(0.2),) if i == 0 else ())
        breakdown = make_breakdown(1_234_567_890, 150_000_000, Side.HEAD)
        entries.append(dataclasses.replace(entry, summaries=(base, head), breakdown=breakdown))
    section = make_override_section(make_override_rows(), make_override_rows())
    assert section is not None
    return dataclasses.replace(make_report(entries), sections=(section,))


def make_uncompared() -> ReportData:
    """A case whose statement is another one in base, so that its sides are shown alone."""
    obstacle = Incomparable("definition", "x.add()", "x.add(1)")
    flames = tuple(make_flame(title=side.name, compared=False) for side in (BASE, HEAD))
    entry = make_entry(make_case("Pointwise", "add", stmt="x.add(1)"), 0.12)
    return make_report([dataclasses.replace(entry, judgement=None, flames=flames, obstacles=(obstacle,))])


def _doubt(entry: ReportEntry) -> ReportEntry:
    """The same with something to be doubted of every side."""
    caveats = (Drift(0.2), Variation(0.5), OtherInstructionSet("AVX512", "AVX2"))
    summaries = tuple(dataclasses.replace(one, caveats=caveats) for one in entry.summaries if one is not None)
    judgement = entry.judgement and dataclasses.replace(entry.judgement, caveats=(LayoutSensitive(0.014), NotInTurns()))
    return dataclasses.replace(entry, summaries=summaries, judgement=judgement)


def make_many(number: int) -> ReportData:
    """So many cases, nearly all of which are the same."""
    drawn = random.Random(7)
    entries = []
    for i in range(number):
        case = make_case(
            ("Pointwise", "Reduction", "Indexing", "nn Modules")[i % 4],
            f"operator {i // 8}",
            language=list(Language)[i % 2],
            runtime=(RuntimeMode.EAGER, RuntimeMode.JIT)[i // 2 % 2],
            autograd=(AutogradMode.FORWARD, AutogradMode.FORWARD_BACKWARD)[i // 4 % 2],
            suite="standard",
            stmt=f"y = f{i}(x, {i})",
        )
        entries.append(make_entry(case, drawn.gauss(0, 0.003) if i % 20 else drawn.uniform(0.02, 0.3)))
    return make_report(entries, title="Many cases")


def make_hostile(*, compared: bool = True) -> ReportData:
    """A case for each text that means harm or takes much room, which is everywhere where a text can be."""
    entries = [_make_victim(text, compared=compared) for text in (*HOSTILE, *VICTIMS)]
    text = HOSTILE[1]
    whole = make_report(entries, compared=compared, title=text)
    side = dataclasses.replace(
        HEAD,
        name=HOSTILE[0],
        title=text,
        environments=tuple(
            dataclasses.replace(
                one, torch_version=one_text, torch_build=one_text, variables=((one_text, one_text),), python=one_text
            )
            for one in HEAD.environments
            for one_text in HOSTILE
        ),
        host=dataclasses.replace(HOST, cpu_model=HOSTILE[4]),
    )
    section = Section(text, HOSTILE, (text, text), tuple((one, one) for one in HOSTILE))
    return dataclasses.replace(
        whole,
        sides=(dataclasses.replace(BASE, name=text), side) if compared else (side,),
        method=HOSTILE,
        remarks=HOSTILE,
        sections=(section,),
        commands=tuple(Command(one, one) for one in HOSTILE),
        torchmark=text,
    )


def _make_victim(text: str, *, compared: bool) -> ReportEntry:
    case = dataclasses.replace(
        make_case(text, text, suite=text),
        args=TimerArgs(text, text, text),
        tags=(text,),
    )
    entry = make_entry(case, 0.1, compared=compared)
    failure = Failure(FailureKind.RAISED, text, traceback=text, stderr=text)
    functions = tuple(dataclasses.replace(one, function=text) for one in make_breakdown(10_000, 100).functions[:1])
    assert entry.breakdown is not None
    return dataclasses.replace(
        entry,
        summaries=tuple(_spoil(one, failure, text) for one in entry.summaries),
        judgement=_spoil_judgement(entry.judgement, failure),
        breakdown=dataclasses.replace(entry.breakdown, functions=functions),
        flames=(make_flame(text, compared=compared, name=text), make_flame(text, compared=compared, name=text)),
        commands=(Command(text, text),),
        notes=(text,),
        drawings=(Drawing(text, '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"></svg>'),),
    )


def _spoil(summary: CaseSummary | None, failure: Failure, text: str) -> CaseSummary | None:
    return summary and dataclasses.replace(summary, failures=((Metric.COUNT, failure),), unchecked=text)


def _spoil_judgement(judgement: CaseJudgement | None, failure: Failure) -> CaseJudgement | None:
    return judgement and dataclasses.replace(judgement, failures=fail(Side.HEAD, failure=failure))
