from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.callgrind.profiles import parse_profile, read_trigger, tidy_for_other_programs
from torchmark.errors import StoreError
from torchmark.model.costs import Call, Function, Profile

HEAD = """\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 7
cmd:  python a: b
part: 1

desc: I1 cache:
desc: Timerange: Basic block 1 - 2
desc: Trigger: Client Request: layout 3

positions: line
events: Ir
summary: 0

"""


def parse(body: str, head: str = HEAD) -> Profile:
    return parse_profile((head + textwrap.dedent(body)).splitlines(keepends=True))


F, G, H = (Function("a.c", name, "/bin/a") for name in "fgh")


def test_costs_are_added_up_by_function() -> None:
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        10 5
        +2 7
        -1 1
        * 2
        fn=(2) g
        3 4
        fn=(1)
        11 1
        totals: 20
        """)
    assert profile.exclusive == {F: (16,), G: (4,)}
    assert profile.inclusive == profile.exclusive
    assert (profile.events, profile.trigger, profile.total()) == (("Ir",), "layout 3", 20)


def test_calls_carry_inclusive_costs() -> None:
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        10 5
        cfn=(2) g
        calls=3 20
        10 60
        12 1
        fn=(2)
        20 30
        cfn=(3) h
        calls=6 30
        21 30
        fn=(3)
        30 30
        totals: 66
        """)
    assert profile.exclusive == {F: (6,), G: (30,), H: (30,)}
    assert profile.inclusive == {F: (66,), G: (60,), H: (30,)}
    assert profile.calls == {(F, G): Call(3, (60,)), (G, H): Call(6, (30,))}


def test_a_recursive_call_counts_once_more() -> None:
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        1 10
        cfn=(1)
        calls=2 1
        1 8
        totals: 10
        """)
    assert profile.exclusive == {F: (10,)}
    assert profile.inclusive == {F: (8,)}


def test_a_call_that_has_not_returned_is_a_call_all_the_same() -> None:
    # Where callgrind_annotate adds its cost to the caller's own.
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        1 10
        cfn=(2) g
        calls=0 5
        1 70
        fn=(2)
        5 70
        totals: 80
        """)
    assert profile.exclusive == {F: (10,), G: (70,)}
    assert profile.calls[F, G] == Call(0, (70,))


def test_callees_may_be_in_another_file_and_binary_and_names_are_shared() -> None:
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        1 1
        cob=(2) /lib/b
        cfi=(2) b.c
        cfn=(2) g
        calls=1 5
        1 4
        cfn=(3) h
        calls=1 6
        1 2
        ob=(2)
        fl=(2)
        fn=(2)
        5 4
        ob=(1)
        fl=(1)
        fn=(3)
        6 2
        totals: 7
        """)
    other = Function("b.c", "g", "/lib/b")
    assert profile.exclusive == {F: (1,), other: (4,), H: (2,)}
    assert set(profile.calls) == {(F, other), (F, H)}


def test_inlined_code_is_counted_under_its_own_file() -> None:
    profile = parse("""\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        1 1
        fi=(2) a.h
        7 20
        fe=(1)
        2 3
        totals: 24
        """)
    assert profile.exclusive == {F: (4,), Function("a.h", "f", "/bin/a"): (20,)}


def test_several_events_and_positions_are_read_and_zeros_may_be_left_out() -> None:
    head = HEAD.replace("positions: line", "positions: instr line").replace("events: Ir", "events: Ir Dr Dw")
    profile = parse(
        """\
        ob=(1) /bin/a
        fl=(1) a.c
        fn=(1) f
        0x10 1 5 2 1
        +4 +1 7
        jcnd=3/4 0x20
        +8 *
        cfn=(2) g
        calls=1 0x40 9
        * * 3 1
        totals: 12 2 1
        """,
        head,
    )
    assert profile.events == ("Ir", "Dr", "Dw")
    assert profile.exclusive[F] == (12, 2, 1)
    assert profile.calls[F, G] == Call(1, (3, 1, 0))
    assert profile.total("Dr") == 2


def test_parts_are_added_up() -> None:
    part = textwrap.dedent("""\
        part: 2
        desc: Trigger: Client Request: second
        positions: line
        events: Ir
        summary: 5
        fl=(1)
        fn=(1)
        1 5
        totals: 5
        """)
    first = HEAD + "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) f\n1 3\ntotals: 3\n"
    assert parse_profile((first + part).splitlines(keepends=True)).exclusive == {F: (8,)}
    with pytest.raises(StoreError):
        parse_profile((first + part.replace("events: Ir", "events: Dr")).splitlines(keepends=True))


def test_names_may_be_written_in_full_and_look_odd() -> None:
    profile = parse("""\
        fl=a.c
        fn=(anonymous namespace)::f(int)
        1 5
        """)
    assert list(profile.exclusive) == [Function("a.c", "(anonymous namespace)::f(int)")]
    assert profile.exclusive.keys().isdisjoint({F})
    assert next(iter(profile.exclusive)).label == "a.c:(anonymous namespace)::f(int)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "which events"),
        ("hello\n", "line 1 "),
        (HEAD.replace("version: 1", "version: 2"), "line 2 "),
        (HEAD + "fl=(1) a.c\nfn=(9)\n1 5\n", "line 17 "),
        (HEAD + "fl=(1) a.c\nfn=(1) f\n1 five\n", "line 18 "),
        (HEAD + "fl=(1) a.c\nfn=(1) f\n1 5 6\n", "line 18 "),
        (HEAD + "fl=(1) a.c\nfn=(1) f\n1 5\ntotals: 6\n", "add up to"),
        (HEAD + f"fl=(1) a.c\nfn=(1) f\n1 {2**63}\n", "line 18 "),
        (HEAD + "fl=(1) a.c\nfn=(1) f\n1 -5\n", "line 18 "),
        (HEAD + "fl=(1) a.c\nfn=(1) f\n1 " + "9" * 5000 + "\n", "line 18 "),
        (HEAD + f"fl=(1) a.c\nfn=(1) f\n1 5\ncfn=(2) g\ncalls={2**63} 1\n1 7\n", "line 21 "),
    ],
)
def test_what_is_wrong_is_told(text: str, problem: str) -> None:
    with pytest.raises(StoreError, match=problem):
        parse_profile(text.splitlines(keepends=True))


def test_a_file_that_is_cut_off_can_be_refused() -> None:
    lines = (HEAD + "fl=(1) a.c\nfn=(1) f\n1 5\n").splitlines(keepends=True)
    assert parse_profile(lines).total() == 5
    with pytest.raises(StoreError, match="cut off"):
        parse_profile(lines, must_be_complete=True)


def test_the_trigger_can_be_read_alone() -> None:
    assert read_trigger(HEAD) == "layout 3"
    assert read_trigger("") is None
    assert read_trigger(HEAD.replace("Client Request: layout 3", "Program termination")) is None


@given(st.lists(st.tuples(st.sampled_from("fghij"), st.integers(0, 10**12)), max_size=30))
def test_nothing_is_lost_and_nothing_is_added(costs: list[tuple[str, int]]) -> None:
    body = "".join(f"fl=(1) a.c\nfn={name}\n+1 {cost}\n" for name, cost in costs)
    profile = parse_profile((HEAD + body).splitlines(keepends=True))
    assert profile.total() == sum(cost for _, cost in costs)
    for name in {name for name, _ in costs}:
        assert profile.exclusive[Function("a.c", name)] == (sum(c for n, c in costs if n == name),)


OPEN_CALL = """\
ob=/bin/a
fl=a.c
fn=f
cfn=g
calls=0 7
3 12
fn=g
7 12
totals: 12
"""


def test_a_call_that_began_before_counting_is_one_call_in_a_tidied_file_and_costs_the_same() -> None:
    raw, tidied = parse(OPEN_CALL), parse(tidy_for_other_programs(OPEN_CALL))
    assert (tidied.exclusive, tidied.inclusive, tidied.totals()) == (raw.exclusive, raw.inclusive, raw.totals())
    assert (raw.calls[F, G], tidied.calls[F, G]) == (Call(0, (12,)), Call(1, (12,)))


def test_other_calls_and_lines_stay_as_they_are_in_a_tidied_file() -> None:
    text = OPEN_CALL.replace("calls=0", "calls=10")
    assert tidy_for_other_programs(text) == text


@pytest.mark.parametrize("command", ["/bin/my python -c \\nimport sys\\nprint('a -c b')", "/bin/my python"])
def test_the_source_text_of_a_worker_is_not_in_a_tidied_file(command: str) -> None:
    tidied = tidy_for_other_programs(HEAD.replace("python a: b", command) + OPEN_CALL)
    assert "cmd: /bin/my python (a counting process of torchmark)\npart: 1\n" in tidied
