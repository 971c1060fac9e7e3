"""JSON Schemas of the documents that `--json` writes, by command.

A field is required and null where nothing is known. Fields that a later version adds do not make a document invalid.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterable
from typing import Any, Union, get_args, get_origin, get_type_hints

from torchmark.analysis.overrides import Expectation
from torchmark.model.caveats import Caveat, ComparisonCaveat
from torchmark.model.environment import Environment, Finding, FindingStatus, Machine
from torchmark.model.gate import FailOn, Growth, Quantity
from torchmark.model.history import Difference, Ground, ShiftStanding
from torchmark.model.inputs import Relation
from torchmark.model.judgement import Cause, Side, Spread, Verdict
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.plan import Fault, Metric, Node
from torchmark.model.run import RunInfo
from torchmark.model.schemas import VERSIONS
from torchmark.model.task import TaskSpec
from torchmark.report.text.counts import FunctionRow

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}
_PRIMITIVE = {str: TEXT, float: NUMBER, int: WHOLE, bool: FLAG, type(None): NULL}


def optional(schema: Schema) -> Schema:
    """That, or null."""
    return {"anyOf": [schema, NULL]}


def each(schema: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": schema}


def mapping(schema: Schema) -> Schema:
    """Any names with such values."""
    return {"type": "object", "additionalProperties": schema}


def fields(**properties: Schema) -> Schema:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def extend(schema: Schema, **properties: Schema) -> Schema:
    """An object that has more fields, or others under the same names."""
    return fields(**{**schema["properties"], **properties})


def leave_out(schema: Schema, *names: str) -> Schema:
    return fields(**{name: kind for name, kind in schema["properties"].items() if name not in names})


def same(schema: Schema, *names: str) -> dict[str, Schema]:
    """The same for several fields."""
    return dict.fromkeys(names, schema)


def choice(values: Iterable[str | enum.Enum]) -> Schema:
    """One of these texts."""
    return {"enum": [value.value if isinstance(value, enum.Enum) else value for value in values]}


def describe(kind: Any) -> Schema:
    """A value of that type as `dataclasses.asdict` and JSON have it.

    >>> describe(tuple[str | None, ...])
    {'type': 'array', 'items': {'anyOf': [{'type': 'string'}, {'type': 'null'}]}}
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PRIMITIVE:
        return _PRIMITIVE[kind]
    if origin in (Union, types.UnionType):
        return {"anyOf": [describe(one) for one in arguments]}
    if origin is tuple and arguments[-1] is Ellipsis:
        return each(describe(arguments[0]))
    if origin is tuple:
        count = len(arguments)
        return {"type": "array", "items": [*map(describe, arguments)], "minItems": count, "maxItems": count}
    if issubclass(kind, enum.Enum):
        return choice(kind)
    hints = get_type_hints(kind)
    return fields(**{field.name: describe(hints[field.name]) for field in dataclasses.fields(kind)})


def _describe_caveats(family: Any, **more: Schema) -> Schema:
    return {"anyOf": [extend(describe(one), kind={"const": one.kind}, **more) for one in get_args(family)]}


def versioned(kind: str, **properties: Schema) -> Schema:
    """An object that tells its kind and the version of that."""
    head: dict[str, Schema] = {"schema": {"const": f"torchmark.{kind}"}, "schema_version": {"const": VERSIONS[kind]}}
    return fields(**head, **properties)


def document(kind: str, **properties: Schema) -> Schema:
    return {"$schema": DRAFT, "title": f"torchmark.{kind}", **versioned(kind, **properties)}


CAVEATS = each(_describe_caveats(Caveat))
DOUBTS = each(_describe_caveats(ComparisonCaveat, text=TEXT))
LANGUAGE = choice(["python", "cpp"])
ENVIRONMENT = describe(Environment)
FAILURE = describe(Failure)
SUMMARY = fields(
    samples=WHOLE,
    **same(NUMBER, "median_s", "mean_s", "p25_s", "p75_s", "min_s", "max_s"),
    std_s=optional(NUMBER),
    significant_figures=WHOLE,
)
AUTOLABELS = fields(runtime=TEXT, autograd=TEXT, language=choice(["Python", "C++"]))
_VARIANT = {"label": each(TEXT), "autolabels": AUTOLABELS, "num_threads": WHOLE}
RUN = leave_out(extend(describe(RunInfo), options=mapping(each(TEXT))), "seal")
RUN_NAME = fields(id=TEXT, name=TEXT, created=NUMBER)
IDENTITY = fields(case=TEXT, key=TEXT, suite=TEXT)

_WALL = extend(
    SUMMARY,
    interval=optional(fields(**same(NUMBER, "low_s", "high_s", "confidence"))),
    compiling=optional(
        fields(
            **same(NUMBER, "cold_s", "warm_s"),
            from_cache=FLAG,
            call_s=each(NUMBER),
            **same(WHOLE, "graphs", "graph_breaks"),
            breaks=each(TEXT),
            abandoned=WHOLE,
        )
    ),
)
_COUNT = fields(
    instructions_per_run=NUMBER,
    spread=optional(NUMBER),
    **same(NUMBER, "allocations_per_run", "tensor_allocations_per_run"),
    baseline_per_run=optional(NUMBER),
    number_per_run=WHOLE,
    totals=each(WHOLE),
)
CASE_SUMMARY = fields(
    key=TEXT,
    **_VARIANT,
    suite=TEXT,
    tags=each(TEXT),
    target=TEXT,
    wall=optional(_WALL),
    count=optional(_COUNT),
    failures=each(extend(FAILURE, metric=choice(Metric))),
    caveats=CAVEATS,
    unchecked=optional(TEXT),
    missing=each(choice(Metric)),
    nodes=each(describe(Node)),
)

_NUMBERS = fields(base=NUMBER, head=NUMBER, delta=NUMBER)
EXPLANATION = extend(
    _NUMBERS,
    stages=each(extend(_NUMBERS, stage=TEXT)),
    functions=each(extend(_NUMBERS, function=TEXT, stage=TEXT)),
    rest=extend(_NUMBERS, functions=WHOLE),
)
_TIME = fields(
    verdict=choice(Verdict),
    **same(NUMBER, "ratio", "change"),
    **same(optional(NUMBER), "low", "high"),
    confidence=NUMBER,
    p_value=optional(NUMBER),
    **same(NUMBER, "base_s", "head_s", "delta_s", "floor", "equivalence"),
    smallest_visible=optional(NUMBER),
    **same(WHOLE, "layouts", "visits"),
    **same(optional(NUMBER), "layout_sd", "visit_sd"),
    confirmed=optional(FLAG),
    measured_s=NUMBER,
    needed_s=optional(NUMBER),
    by_layout=each(fields(fresh=FLAG, change=NUMBER, visits=each(NUMBER), base_s=each(NUMBER), head_s=each(NUMBER))),
)
_ALLOCATIONS = fields(**same(NUMBER, "base", "head", "delta", "base_tensors", "head_tensors", "delta_tensors"))
JUDGEMENT = extend(
    IDENTITY,
    **_VARIANT,
    verdict=choice(Verdict),
    cause=choice(Cause),
    time=optional(_TIME),
    instructions=optional(extend(_NUMBERS, change=NUMBER, base_range=each(NUMBER), head_range=each(NUMBER))),
    allocations=optional(_ALLOCATIONS),
    caveats=DOUBTS,
    failures=each(extend(FAILURE, side=choice(Side))),
    explanation=optional(EXPLANATION),
    stmt=TEXT,
    base_stmt=optional(TEXT),
)
_REGRESSION = extend(
    IDENTITY,
    reason=choice(FailOn),
    witness=optional(choice(Quantity)),
    **same(optional(NUMBER), "base", "head"),
    limit=optional(TEXT),
    accepted=FLAG,
    functions=each(describe(Growth)),
)
GATE = fields(
    exit_code=WHOLE,
    regressions=each(_REGRESSION),
    improvements=each(extend(IDENTITY, accepted=NUMBER, head=NUMBER)),
    accepted=each(IDENTITY),
    stale=each(extend(IDENTITY, differences=each(fields(what=TEXT, accepted=TEXT, now=TEXT)))),
    nothing_compared=FLAG,
    lost=each(IDENTITY),
    idle_limits=each(TEXT),
)
_OBSTACLES = each(fields(what=TEXT, base=TEXT, head=TEXT, text=TEXT))

_SHIFT = fields(
    **same(RUN_NAME, "run", "previous"),
    position=WHOLE,
    metrics=each(choice(Metric)),
    standing=choice(ShiftStanding),
    ground=choice(Ground),
    **same(optional(NUMBER), "before", "after", "share", "p_value"),
    differences=each(describe(Difference)),
    other_cases=WHOLE,
    common_log_ratio=optional(NUMBER),
    command=optional(TEXT),
)
_POINT = {
    # What was not asked for with --metric is not there.
    **extend(
        fields(run=RUN_NAME),
        log_ratio=optional(NUMBER),
        segment=optional(WHOLE),
        instructions_per_run=optional(describe(Spread)),
    ),
    "required": ["run"],
}
_HISTORY = fields(
    key=TEXT,
    **_VARIANT,
    **same(TEXT, "suite", "target"),
    anchors=each(RUN_NAME),
    points=each(_POINT),
    changes=each(_SHIFT),
)

_EXTREME = fields(label=each(TEXT), value=NUMBER)
_OVERHEAD = fields(
    against=each(TEXT),
    **same(optional(NUMBER), "min_s", "median_s", "instructions"),
    explanation=optional(EXPLANATION),
)
_FINDING = fields(
    expectation=choice(Expectation),
    is_met=FLAG,
    **same(WHOLE, "met", "of"),
    unit=choice(["instructions", "s"]),
    limit=optional(NUMBER),
    **same(_EXTREME, "least", "most"),
    order=each(_EXTREME),
    text=TEXT,
)
_OVERRIDE = extend(
    CASE_SUMMARY, call=TEXT, operands=TEXT, stmt=TEXT, stages=mapping(NUMBER), overhead=optional(_OVERHEAD)
)

MEASUREMENT = versioned(
    "measurement",
    number_per_run=WHOLE,
    raw_times=each(NUMBER),
    task_spec=describe(TaskSpec),
    metadata=optional({"type": "object"}),
    overhead_s=optional(NUMBER),
    optimised_away=FLAG,
)
_STATEMENT = fields(stmt=TEXT, num_threads=WHOLE)
_STANDINGS = fields(
    in_turns=FLAG,
    fastest=optional(_STATEMENT),
    ratios=each(extend(_STATEMENT, ratio=NUMBER, **same(optional(NUMBER), "low", "high"), confidence=optional(NUMBER))),
)
_FUNCTIONS = fields(inclusive=FLAG, noisy=optional(each(TEXT)), functions=each(describe(tuple[int, str])))
CALLGRIND = versioned(
    "callgrind",
    task_spec=describe(TaskSpec),
    number_per_run=WHOLE,
    built_with_debug_symbols=FLAG,
    **same(_FUNCTIONS, *(f"{of}_{what}_stats" for of in ("baseline", "stmt") for what in ("inclusive", "exclusive"))),
    stmt_callgrind_out=optional(TEXT),
    layouts=each(WHOLE),
    events=mapping(WHOLE),
    **same(optional(WHOLE), "allocations", "tensor_allocations"),
    environment=optional(extend(ENVIRONMENT, variables=mapping(TEXT))),
    optimised_away=FLAG,
)

_CONTEST = fields(
    stmt=TEXT,
    base=optional(TEXT),
    median_ratio=optional(NUMBER),
    **same(WHOLE, "faster", "slower"),
    ratios=each(fields(index=WHOLE, ratio=NUMBER, **same(optional(NUMBER), "low", "high"))),
    **same(WHOLE, "searched", "held_back"),
    rules=each(
        fields(
            conditions=each(fields(feature=TEXT, relation=choice(Relation), value={})),
            **same(NUMBER, "ratio_inside", "ratio_outside"),
            **same(WHOLE, "inputs_inside", "inputs_outside"),
            p_value=NUMBER,
        )
    ),
)
_INPUT = fields(
    index=WHOLE,
    features=mapping({}),
    code=TEXT,
    measurements=each(fields(stmt=TEXT, number_per_run=WHOLE, raw_times=each(NUMBER), median=NUMBER)),
    failure=optional(fields(kind=choice(FailureKind), text=TEXT)),
)
_POWER = fields(
    injected_s=NUMBER, **same(WHOLE, "trials", "found", "wrong_way"), **same(NUMBER, "low", "high", "seconds")
)

SHOW = document(
    "show",
    run=RUN,
    cases=each(CASE_SUMMARY),
    functions=each(fields(key=TEXT, suite=TEXT, target=TEXT, functions=each(describe(FunctionRow)))),
)
_SIDE = fields(python=optional(TEXT), environment=optional(ENVIRONMENT))
_STORED_SIDE = fields(run=RUN, target=TEXT)

_AB = document("ab", base=_SIDE, head=_SIDE, judgements=each(JUDGEMENT), summary=TEXT, gate=GATE, exit_code=WHOLE)
_OVERRIDES = document(
    "overrides",
    run=RUN,
    environments=each(ENVIRONMENT),
    **same(optional(WHOLE), "nreps", "nrepreps"),
    cases=each(_OVERRIDE),
    findings=each(_FINDING),
    lines=each(TEXT),
)

# By command.
SCHEMAS: dict[str, Schema] = {
    "time": document(
        "time",
        language=LANGUAGE,
        measurements=each(extend(MEASUREMENT, summary=SUMMARY, caveats=CAVEATS)),
        comparisons=each(_STANDINGS),
        failures=each(fields(stmt=TEXT, traceback=TEXT, kind=choice(FailureKind), message=TEXT)),
    ),
    "count": document(
        "count",
        language=LANGUAGE,
        counts=each(
            extend(
                CALLGRIND,
                instructions_per_run=NUMBER,
                estimated_cycles=optional(WHOLE),
                spread=optional(NUMBER),
                caveats=CAVEATS,
            )
        ),
        failures=each(extend(FAILURE, stmt=TEXT, num_threads=WHOLE)),
        difference=each(fields(instructions_per_run=NUMBER, function=TEXT, noisy=FLAG)),
    ),
    "fuzz": document(
        "fuzz",
        stmts=each(TEXT),
        about=mapping({}),
        asked_for=WHOLE,
        environment=optional(ENVIRONMENT),
        inputs=each(_INPUT),
        contests=each(_CONTEST),
    ),
    "ab": _AB,
    # With --base, head is compared with base, as `ab` does.
    "overrides": {"$schema": DRAFT, "anyOf": [_OVERRIDES, _AB]},
    "run": SHOW,
    "show": SHOW,
    "compare": document(
        "compare",
        **same(_STORED_SIDE, "base", "head"),
        forced=FLAG,
        obstacles=_OBSTACLES,
        case_obstacles=each(extend(IDENTITY, obstacles=_OBSTACLES)),
        judgements=each(JUDGEMENT),
        **same(each(IDENTITY), "missing", "new"),
        gate=GATE,
        exit_code=WHOLE,
    ),
    "history": document("history", histories=each(_HISTORY)),
    "selftest": document(
        "selftest",
        run_s=NUMBER,
        **same(WHOLE, "trials", "false_alarms"),
        false_alarms_below=NUMBER,
        same=WHOLE,
        **same(NUMBER, "sd", "floor", "floor_factor", "seconds"),
        smallest_seen_s=optional(NUMBER),
        powers=each(_POWER),
    ),
    "list": document(
        "list",
        cases=each(
            fields(
                key=TEXT,
                **_VARIANT,
                tags=each(TEXT),
                suite=TEXT,
                language=choice(["Python", "C++"]),
                **same(TEXT, "stmt", "setup", "global_setup"),
            )
        ),
        faults=each(describe(Fault)),
    ),
    "runs": document(
        "runs",
        runs=each(
            extend(
                describe(RunInfo),
                cases=WHOLE,
                targets=each(TEXT),
                torch_versions=each(TEXT),
                state=TEXT,
                pid=optional(WHOLE),
            )
        ),
    ),
    "cache": document(
        "cache", folder=TEXT, **same(WHOLE, "snippets", "libraries", "preludes", "size_bytes", "limit_bytes")
    ),
    "doctor": document(
        "doctor", findings=each(extend(describe(Finding), status=choice(FindingStatus))), machine=describe(Machine)
    ),
}
