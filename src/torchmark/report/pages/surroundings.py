"""Where all was measured: one row for each thing that is known of it, and which of them differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from torchmark.model.dossier import Party
from torchmark.model.environment import Environment
from torchmark.report.heading import SHORT_COMMIT, word_sources
from torchmark.report.nodes import word_kinds, word_nodes
from torchmark.report.printable import printable, show_lines

UNKNOWN = "–"


class Fact(NamedTuple):
    """What is known of each party."""

    name: str
    values: tuple[str, ...]
    differs: bool


# What a worker tells of itself, by what people call it.
_FIELDS: dict[str, Callable[[Environment], str | None]] = {
    "torch": lambda one: one.torch_version,
    "torch commit": lambda one: one.torch_commit and one.torch_commit[:SHORT_COMMIT],
    "Python": lambda one: one.python_version,
    "Interpreter": lambda one: one.python,
    "Debug symbols": lambda one: "yes" if one.debug_symbols else "no",
    "Instruction set": lambda one: one.native_capability if one.valgrind is None else None,
    "Instruction set, counted": lambda one: None if one.valgrind is None else one.cpu_capability,
    "Valgrind": lambda one: one.valgrind and one.valgrind.removeprefix("valgrind-"),
    "Hash seed": lambda one: one.hash_seed,
}


def list_facts(parties: Sequence[Party]) -> list[Fact]:
    """All that is known of anybody, with the most telling first."""
    facts = [_make_fact("Results", [party.title for party in parties], telling=False)]
    facts += [_make_fact(name, [_ask(party, field) for party in parties]) for name, field in _FIELDS.items()]
    facts += [_make_fact(*row) for row in _list_hosts(parties)]
    # Other nodes of the same kind change nothing.
    facts.append(_make_fact("Nodes", [_word_nodes(party) for party in parties], telling=False))
    facts.append(_make_fact("Kinds of nodes", [word_kinds(party.count_kinds) for party in parties], telling=False))
    names = sorted({name for party in parties for one in party.environments for name, _ in one.variables})
    facts += [_make_fact(f"${name}", [_ask(party, _read_variable(name)) for party in parties]) for name in names]
    facts.append(_make_fact("Benchmarks", [word_sources(party.sources) for party in parties]))
    return [fact for fact in facts if any(value != UNKNOWN for value in fact.values)]


def list_builds(parties: Sequence[Party]) -> list[tuple[str, str]]:
    """How each torch was built, in its own words; once for those that are alike."""
    texts: dict[str, list[str]] = {}
    for party in parties:
        text = "\n".join(_collect(one.torch_build for one in party.environments))
        if text:
            texts.setdefault(show_lines(text), []).append(printable(party.name))
    return [(" and ".join(names), text) for text, names in texts.items()]


def sum_up(party: Party) -> str:
    """The torch and the Python of a party, on a line."""
    texts = [f"{name} {value}" for name in ("torch", "Python") if (value := _ask(party, _FIELDS[name])) != UNKNOWN]
    return printable(", ".join(texts))


def _word_nodes(party: Party) -> str:
    return word_nodes(party.nodes, timed=any(one.valgrind is None for one in party.environments))


def _make_fact(name: str, values: Sequence[str], *, telling: bool = True) -> Fact:
    shown = tuple(printable(value) or UNKNOWN for value in values)
    return Fact(printable(name), shown, telling and len(set(shown)) > 1)


def _collect(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


def _ask(party: Party, field: Callable[[Environment], str | None]) -> str:
    # A run that was gone on with elsewhere, or after an upgrade, has several.
    return " and ".join(_collect(map(field, party.environments))) or UNKNOWN


def _read_variable(name: str) -> Callable[[Environment], str | None]:
    return lambda one: dict(one.variables).get(name)


def _list_hosts(parties: Sequence[Party]) -> Iterable[tuple[str, list[str]]]:
    hosts = [party.host for party in parties]
    yield "Processor", [_find_processors(party) for party in parties]
    # Of nodes, that is not known.
    owns = [None if party.nodes else party.host for party in parties]
    yield "Cores", ["" if own is None else _word_cores(own.cores_allowed, own.cores_online) for own in owns]
    yield "Quota", ["" if own is None or own.cpu_quota is None else f"{own.cpu_quota:g}" for own in owns]
    yield "System", ["" if host is None else host.system for host in hosts]
    yield "Compiler", [(host and host.compiler) or "" for host in hosts]


def _find_processors(party: Party) -> str:
    if party.nodes:
        return " and ".join(_collect(node.cpu_model for node in party.nodes))
    return (party.host and party.host.cpu_model) or ""


def _word_cores(allowed: int | None, online: int | None) -> str:
    if allowed is None or allowed == online:
        return "" if online is None else str(online)
    return f"{allowed} of {online or '?'}"
