"""Nested definitions, flattened: labels of all levels in one tuple."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from torchmark.define.faults import Broken, report
from torchmark.define.groups import GroupedBenchmark
from torchmark.errors import DefinitionError
from torchmark.model.case import Label, TimerArgs

Benchmark: TypeAlias = TimerArgs | GroupedBenchmark
FlatIntermediateDefinition = dict[Label, Benchmark]


def flatten(schema: Mapping[Any, Any]) -> FlatIntermediateDefinition:
    """One dictionary instead of many: a text adds a part to the label, a tuple several, None adds nothing.

    >>> list(flatten({"a": {None: TimerArgs("1"), ("b", "c"): TimerArgs("2")}}))
    [('a',), ('a', 'b', 'c')]
    """
    if not isinstance(schema, Mapping):
        raise DefinitionError(f"A definition is a dictionary of labels and benchmarks, not {type(schema)}.")
    flat: FlatIntermediateDefinition = {}
    _flatten((), schema, flat)
    return flat


def _flatten(prefix: Label, schema: Mapping[Any, Any], flat: FlatIntermediateDefinition) -> None:
    for key, value in schema.items():
        parts = () if key is None else (key,) if isinstance(key, str) else key
        if not isinstance(parts, tuple) or not all(isinstance(part, str) for part in parts):
            report(prefix, DefinitionError(f"A label is a text, a tuple of texts, or None, not {key!r}."))
            continue
        label = (*prefix, *parts)
        if isinstance(value, Mapping):
            _flatten(label, value, flat)
        elif not isinstance(value, (TimerArgs, GroupedBenchmark, Broken)):
            report(label, DefinitionError(_explain(label, value)))
        elif label in flat:
            report(label, DefinitionError(f"duplicate key: {label}", advice="Give one of the two another label."))
        else:
            flat[label] = value  # type: ignore[assignment]  # what is broken is told apart where faults are gathered


def _explain(label: Label, value: object) -> str:
    known = "TimerArgs, GroupedStmts, GroupedModules, GroupedVariants, or a dictionary of them"
    hint = " A comma behind a group makes a tuple of it." if isinstance(value, tuple) else ""
    return f"What stands at {' / '.join(label) or 'the top'} is {type(value)}, not {known}.{hint}"
