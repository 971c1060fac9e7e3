"""Graphs as compact JSON."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.made_flames import ADD, HOOK, compared_flame, flames, large_flame, plain_flame, read_numbers, unpack
from torchmark.analysis.flames import prune
from torchmark.model.flame import Flame, FlameNode, Frame, FrameKind
from torchmark.report.flame.labels import full_name, gauge_of, label_of, origin_of
from torchmark.report.flame.page import NameTable, pack_flame, round_to_runs, write_number


def relabel(node: FlameNode) -> FlameNode:
    frame = Frame(label_of(node.frame), FrameKind.OTHER, origin_of(node.frame))
    return dataclasses.replace(node, frame=frame, children=tuple(map(relabel, node.children)))


@settings(max_examples=30)
@given(st.lists(flames(), max_size=3), st.sampled_from([0.0, 0.002, 0.3]))
def test_what_was_packed_can_be_read_again_to_the_last_instruction(made: list[Flame], share: float) -> None:
    names = NameTable()
    packed = json.loads(json.dumps([pack_flame(flame, names, share) for flame in made]))
    table = json.loads(json.dumps(names.entries))
    for flame, graph in zip(made, packed, strict=True):
        root = round_to_runs(prune(flame.root, share), gauge_of(flame).runs) if share else flame.root
        assert unpack(table, graph) == relabel(root)


@given(st.lists(st.integers(0, 2**60)))
def test_numbers_can_be_read_again(numbers: list[int]) -> None:
    assert read_numbers("".join(map(write_number, numbers))) == numbers


def test_frames_have_one_entry_however_often_and_in_however_many_graphs_they_occur() -> None:
    names = NameTable()
    for flame in (plain_flame(), compared_flame(), plain_flame()):
        pack_flame(flame, names)
    assert len(names.entries) == 2 + 7
    assert names.entries[names.number(HOOK)][0] == "Sub.__torch_function__"
    assert sorted(names.entries[1]) == [
        "",
        "/site-packages/sub.py:12",
        "bench.py:3",
        "libc.so.6",
        "libtorch_cpu.so",
    ]


def test_names_with_parameters_are_only_there_where_they_are_wanted() -> None:
    short, full = NameTable(), NameTable(full=True)
    for names in (short, full):
        pack_flame(plain_flame(), names)
    assert len(short.entries[short.number(ADD)]) == 4
    assert full.entries[full.number(ADD)][4] == full_name(ADD)
    assert len(full.entries[full.number(HOOK)]) == 4


def test_what_is_left_out_stays_part_of_its_callers() -> None:
    names = NameTable()
    graph = pack_flame(plain_flame(), names, 0.5)
    root = unpack(names.entries, graph)
    run = root.children[0]
    (hook,) = run.children
    assert (root.value, run.value, run.own, hook.value, hook.children) == (1000, 1000, 100, 690, ())


def test_a_frame_takes_a_few_bytes() -> None:
    flame = large_flame(20_000)
    assert len(json.dumps(pack_flame(flame, NameTable(), 0.0))) < 5 * 20_000
