"""Where memory lies: commands that decide it, and maps that tell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.runner.spec import (
    ADDR_NO_RANDOMIZE,
    HASH_SEED,
    PADDING,
    Layout,
    Map,
    Mapped,
    Match,
    even_out,
    layout_command,
    match_maps,
    read_map,
)

LIBC, TORCH = Mapped(0x7000, 0x1000, "libc.so.6"), Mapped(0x9000, 0x4000, "libtorch.so")
SHOW = """
import re, resource
text = open('/proc/self/maps').read()
low = re.search(r'^(\\w+)-\\w+ r-xp .*libc[.-]', text, re.M).group(1)
print(low, int(open('/proc/self/personality').read(), 16), resource.getrlimit(resource.RLIMIT_STACK)[0], hash('a'))
"""


def run_in(layout: Layout) -> list[str]:
    variables = {**os.environ, **layout.variables}
    command = [*layout_command(layout, sys.executable), "-c", SHOW]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.split()


def test_a_layout_is_the_same_each_time_and_another_than_the_next() -> None:
    first, again, second = (run_in(Layout(number)) for number in (0, 0, 1))
    assert first == again
    assert int(first[1]) & ADDR_NO_RANDOMIZE
    assert int(first[2]) == Layout(0).stack_bytes
    assert first[0] != second[0]
    assert first[3] != second[3]


def test_every_layout_has_a_seed_and_a_stack_of_its_own() -> None:
    layouts = [Layout(number) for number in range(24)]
    assert (
        len({layout.stack_bytes for layout in layouts})
        == len({layout.variables[HASH_SEED] for layout in layouts})
        == 24
    )
    # Seed 0 would switch hashing's randomness off, which is a layout as well, but not one that is like the others.
    assert all(int(layout.variables[HASH_SEED]) > 0 for layout in layouts)
    assert all(layout.stack_bytes % 4096 == 0 for layout in layouts)


@given(st.text(min_size=1), st.text(min_size=1))
def test_padding_makes_both_as_long(base: str, head: str) -> None:
    base, head = (text.encode(errors="replace").decode() for text in (base, head))
    pads = even_out(base, head)
    totals = [2 * len(os.fsencode(path)) + pad for path, pad in zip((base, head), pads, strict=True)]
    assert totals[0] == totals[1]
    assert min(pads) == 0
    assert Layout(0, pads[0]).variables[PADDING] == "x" * pads[0]


def test_maps_that_agree_match_whatever_the_files_are_called() -> None:
    other = Map(True, frozenset({LIBC, TORCH._replace(name="libtorch_copy.so")}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), other) == Match(alike=True)


def test_a_library_of_another_size_is_named() -> None:
    head = Map(True, frozenset({LIBC, TORCH._replace(size=0x5000)}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), head) == Match(alike=False, libraries=("libtorch.so",))


def test_where_the_same_libraries_lie_elsewhere_those_that_one_side_lacks_are_named() -> None:
    head = Map(True, frozenset({LIBC._replace(start=0x1), TORCH, Mapped(1, 2, "extra.so")}))
    assert match_maps(Map(True, frozenset({LIBC, TORCH})), head) == Match(alike=False, libraries=("extra.so",))


@pytest.mark.parametrize("side", [None, Map(False, frozenset())])
def test_a_system_that_draws_addresses_or_does_not_tell_is_to_blame(side: Map | None) -> None:
    assert match_maps(side, Map(True, frozenset())) == Match(alike=False, refused=True)


def test_a_map_is_read_from_what_the_system_writes(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "personality").write_text("00040000\n")
    (folder / "maps").write_text(
        "7000-8000 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n"
        "8000-9000 r--p 00001000 08:01 7 /usr/lib/libc.so.6\n"
        "9000-d000 r-xp 00000000 08:01 9 /odd name/libtorch.so\n"
        "e000-f000 rw-p 00000000 00:00 0 [heap]\n"
        "f000-ff00 r-xp 00000000 00:00 0 [vdso]\n"
    )
    assert read_map(7, tmp_path) == Map(True, frozenset({LIBC, TORCH}))


def test_a_process_that_is_gone_has_no_map(tmp_path: Path) -> None:
    assert read_map(7, tmp_path) is None
