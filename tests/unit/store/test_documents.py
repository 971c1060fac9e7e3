from __future__ import annotations

import copy
import dataclasses
import io
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_runs import profiles
from tests.stored_runs import GOLDEN, PROFILE, make_run
from torchmark.callgrind.profiles import parse_profile
from torchmark.errors import StoreError
from torchmark.model.costs import Profile
from torchmark.model.plan import Node
from torchmark.store import documents
from torchmark.store import documents as module
from torchmark.store.documents import (
    export_run,
    import_run,
    pack,
    parse_document,
    read_profile,
    to_json_profile,
    unpack,
)
from torchmark.store.plain import hash_text

COSTS = st.integers(0, 1000)
NAMES = st.sampled_from("abcd")


@given(profiles())
@settings(max_examples=50)
def test_any_profile_comes_back_as_it_was(profile: Profile) -> None:
    assert read_profile(unpack(*pack(to_json_profile(profile)))) == profile


def write_callgrind(functions: dict[str, int], calls: dict[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    yield "events: Ir\n"
    for name, cost in functions.items():
        yield f"fl=x.c\nfn={name}\n1 {cost}\n"
        for (caller, callee), (times, inclusive) in calls.items():
            if caller == name:
                yield f"cfn={callee}\ncalls={times} 1\n1 {inclusive}\n"


@given(st.dictionaries(NAMES, COSTS), st.dictionaries(st.tuples(NAMES, NAMES), st.tuples(COSTS, COSTS)))
@settings(max_examples=50)
def test_inclusive_costs_follow_from_the_others_just_as_for_the_parser(
    functions: dict[str, int], calls: dict[tuple[str, str], tuple[int, int]]
) -> None:
    text = "".join(write_callgrind(functions, calls))
    profile = parse_profile(text.splitlines(keepends=True))
    plain = to_json_profile(profile)
    assert plain["inclusive"] is None
    assert read_profile(plain) == profile


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("events", [1]),
        ("events", ["Xx", "Dr"]),
        ("events", ["Ir", "Ir"]),
        ("exclusive", [[10**400, 1]]),
        ("exclusive", [[-1, 1]]),
        ("calls", [[0, 1, -1, 1, 1]]),
        ("trigger", 1),
        ("texts", ["a", None]),
        ("functions", [[0, 1, 99]]),
        ("functions", [[0, 1]]),
        ("functions", [[0, 1, -1]]),
        ("exclusive", [[1, 1]] * 9),
        ("exclusive", [[1]]),
        ("exclusive", [[1.5, 2]]),
        ("calls", [[0, 9, 1, 1, 1]]),
        ("calls", [[0, 1, 1]]),
        ("inclusive", [[9, 1, 1]]),
    ],
)
def test_a_profile_that_does_not_fit_together_is_refused(name: str, value: Any) -> None:
    plain = copy.deepcopy(to_json_profile(PROFILE))
    assert read_profile(plain) == PROFILE
    with pytest.raises(StoreError, match=name):
        read_profile({**plain, name: value})


def test_calls_of_functions_without_costs_need_inclusive_costs() -> None:
    with pytest.raises(StoreError, match="calls"):
        read_profile({**to_json_profile(PROFILE), "exclusive": []})


def test_what_claims_to_be_huge_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    name, body = pack(["a" * 2000])
    monkeypatch.setattr(module, "MOST_PROFILE_BYTES", 1000)
    with pytest.raises(StoreError, match="longer than 1000 bytes"):
        unpack(name, body)
    with pytest.raises(StoreError, match="too large to be kept"):
        pack(["a" * 2000])


def test_a_few_bytes_cannot_claim_to_be_a_text_that_fills_the_memory() -> None:
    text = "[" + ",".join(['""'] * 1_000_000) + "]"
    with pytest.raises(StoreError, match=r"longer than \d+ bytes"):
        unpack(hash_text(text), zlib.compress(text.encode()))


def test_whatever_is_packed_can_be_unpacked_however_regular_it_is() -> None:
    part = ["a" * 3_000_000]
    assert unpack(*pack(part)) == part


def test_what_was_changed_is_not_believed() -> None:
    name, body = pack(["a"])
    assert unpack(name, body) == ["a"]
    for wrong in (body[:-1], b"", b"nonsense", zlib.compress(b'["b"]'), zlib.compress(b"\xff")):
        with pytest.raises(StoreError, match="damaged"):
            unpack(name, wrong)


def test_what_is_nested_without_end_is_refused() -> None:
    text = "[" * 60_000
    with pytest.raises(StoreError, match="no JSON"):
        unpack(hash_text(text), zlib.compress(text.encode()))


def test_documents_of_the_first_version_are_read() -> None:
    assert import_run(json.loads((GOLDEN / "run_v1.json").read_text())) == make_run()


def test_an_outcome_keeps_its_node() -> None:
    run = make_run()
    first, second, *others = run.outcomes
    first, second = (
        dataclasses.replace(first, node=Node("n-1", "AMD EPYC")),
        dataclasses.replace(second, node=Node("n-2")),
    )
    elsewhere = dataclasses.replace(run, outcomes=(first, second, *others))
    assert import_run(json.loads(json.dumps(export_run(elsewhere)))) == elsewhere


def test_what_outcomes_have_in_common_is_there_once() -> None:
    document = export_run(make_run())
    baselines = {outcome["parts"].get("baseline_profile") for outcome in document["outcomes"]} - {None}
    assert len(baselines) == 1
    assert len(document["environments"]) == 1


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (["schema"], "torchmark.list", "no torchmark.run"),
        (["schema_version"], 2, "schema version 2"),
        (["run", "id"], "x" * 32, "'run.id'"),
        (["run", "created"], "now", "'run.created'"),
        (["run", "created"], 1e300, "'run.created'"),
        (["run", "extra"], 1, "run.extra"),
        (["run", "host"], None, "'run.host'"),
        (["sampling", "metrics", 0], "weight", "'sampling.metrics[0]'"),
        (["sampling", "repeat"], 10**9, "'sampling.repeat'"),
        (["targets", 1], {"name": "", "python": None}, "'targets'"),
        (["cases", 0, "args", "stmt"], "other", "'cases[0]' has been changed"),
        (["cases", 0, "content_hash"], None, "'content_hash'"),
        (["cases", 1, "args", "num_threads"], True, "'cases[1].args.num_threads'"),
        (["environments", 0, "python"], 3, r"environments\[0\].python'"),
        (["outcomes", 0, "case"], -1, r"outcomes\[0\].*'case'"),
        (["outcomes", 0, "round"], 1, "belongs to no order"),
        (["outcomes", 0, "metric"], None, "metric'"),
        (["outcomes", 0, "environment"], 7, "'environment'"),
        (["outcomes", 0, "ended"], float("inf"), "ended'"),
        (["outcomes", 0, "began"], -1e308, "began'"),
        (["outcomes", 0, "result", "times", "raw_times"], [1e300], r"raw_times\[0\]"),
        (["outcomes", 0, "result"], {"times": {}, "tally": {}}, "'result'"),
        (["outcomes", 0, "result", "times", "raw_times", 1], "0", r"raw_times\[1\]"),
        (["outcomes", 0, "result", "times", "number_per_run"], 0, "number_per_run"),
        (["outcomes", 0, "node"], {"cpu_model": "AMD EPYC"}, "node.name'"),
        (["outcomes", 0, "node"], {"name": "n-1", "rack": 3}, "node.rack"),
        (["outcomes", 0, "parts"], {"noisy": "0"}, "'parts' has no 0"),
        (["outcomes", 1, "result", "failure", "kind"], "tired", "failure.kind"),
        (["outcomes", 2, "result", "tally", "events"], [["Dr", 1]], "tally.events"),
        (["outcomes", 2, "result", "tally", "profile"], None, "tally.profile"),
        (["outcomes", 2, "case"], 1, "two of the same order"),
        (["activities", 0, "kind"], 1, r"activities\[0\].kind'"),
        (["run", "created"], -1.0, "'run.created'"),
        (["activities", 0, "began"], -1.0, r"activities\[0\].began'"),
        (["sampling", "timeout_s"], -1.0, "'sampling.timeout_s'"),
        (["outcomes", 0, "began"], -1.0, "'began'"),
        (["outcomes", 0, "cores"], [10**400], r"outcomes\[0\].cores\[0\]'"),
        (["outcomes", 0, "result", "times", "number_per_run"], 2**70, "number_per_run"),
        (["outcomes", 0, "result", "times", "raw_times"], [0.5, -0.1], "raw_times"),
        (["outcomes", 0, "result", "times", "overhead_s"], -0.1, "overhead_s"),
        (["outcomes", 2, "result", "tally", "totals"], [10**400, 1, 1], "tally.totals"),
        (["outcomes", 2, "result", "tally", "totals"], [-100, -99, -101], "tally.totals"),
        (["outcomes", 2, "result", "tally", "totals"], [100], "tally.totals"),
        (["outcomes", 2, "result", "tally", "events"], [["Ir", 10**400]], "tally.events"),
        (["outcomes", 2, "result", "tally", "events"], [["Ir", -5]], "tally.events"),
        (["outcomes", 2, "result", "tally", "events"], [["Ir", 5], ["Ir", 6]], "tally.events"),
        (["outcomes", 2, "result", "tally", "allocations"], 2**63, "tally.allocations"),
        (["outcomes", 2, "result", "tally", "tensor_allocations"], -1, "tally.tensor_allocations"),
        (["outcomes", 2, "result", "tally", "baseline"], -1, "tally.baseline"),
        (["outcomes", 5, "result", "compile_costs", "cold", "first_s"], -1.0, "cold.first_s"),
        (["outcomes", 5, "result", "compile_costs", "cold", "graphs"], -1, "cold.graphs"),
    ],
)
def test_what_is_wrong_is_named(path: list[Any], value: object, named: str) -> None:
    document = json.loads(json.dumps(export_run(make_run())))
    *way, last = path
    place: Any = document
    for step in way:
        place = place[step]
    place[last] = value
    with pytest.raises(StoreError, match=named.replace("[0]'", r"\[0\]'").replace("[1].", r"\[1\].")):
        import_run(document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        # A coarse clock, and one that was set back.
        (["outcomes", 0, "result", "times", "raw_times"], [0.0, 0.5]),
        (["outcomes", 0, "ended"], 1.0),
        (["run", "created"], 5e10),
        # An empty loop may take more than a statement of which little is left.
        (["outcomes", 2, "result", "tally", "baseline"], 1000),
        (["outcomes", 2, "result", "tally", "allocations"], 2**63 - 1),
    ],
)
def test_what_is_odd_and_possible_is_taken(path: list[Any], value: object) -> None:
    document = json.loads(json.dumps(export_run(make_run())))
    *way, last = path
    place: Any = document
    for step in way:
        place = place[step]
    place[last] = value
    import_run(document)


def test_a_part_whose_content_has_another_hash_is_refused() -> None:
    document = json.loads(json.dumps(export_run(make_run())))
    name = document["outcomes"][2]["parts"]["profile"]
    document["parts"][name]["exclusive"][0][0] += 1
    with pytest.raises(StoreError, match="'parts' has been changed"):
        import_run(document)


def test_a_document_is_read_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (GOLDEN / "run_v1.json").read_bytes()
    assert import_run(parse_document(io.BytesIO(b"\xef\xbb\xbf \n" + text))) == make_run()
    monkeypatch.setattr(documents, "_AT_ONCE", 100)
    monkeypatch.setattr(documents, "MOST_BYTES", 1000)
    endless = io.BytesIO(b"[" + b"1," * 10_000)
    with pytest.raises(StoreError, match="more than 1000 bytes"):
        parse_document(endless)
    assert endless.tell() == 1100


def test_what_is_no_json_is_known_by_its_first_character(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_AT_ONCE", 100)
    for content in (bytes(10_000), b" " * 10_000, b"text"):
        stream = io.BytesIO(content)
        with pytest.raises(StoreError, match="no JSON"):
            parse_document(stream)
        assert stream.tell() <= 100


def test_a_document_that_does_not_fit_into_the_memory_is_told() -> None:
    class Full(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise MemoryError

    with pytest.raises(StoreError, match="too large for the memory"):
        parse_document(Full())


def test_whatever_is_missing_is_an_error_of_its_own() -> None:
    whole = json.loads(json.dumps(export_run(make_run())))
    for name in whole:
        document = copy.copy(whole)
        del document[name]
        with pytest.raises(StoreError, match=name.replace("_", " ")):
            import_run(document)


def test_what_is_no_mapping_is_refused() -> None:
    things: tuple[object, ...] = (None, [], "run", 5)
    for data in things:
        with pytest.raises(StoreError, match=r"no torchmark\.run"):
            import_run(data)
