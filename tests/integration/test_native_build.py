"""Batches of snippets with the real compilers, against a torch whose headers are next to nothing."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.stub_torch import make_stub_torch
from torchmark.errors import SetupError, SnippetError
from torchmark.measure.compiled import MOST_RUNS, CompiledTimer
from torchmark.measure.steps import Steps, blocked_within, carry_out
from torchmark.model.outcome import Failure, FailureKind
from torchmark.model.task import Compiled, Snippet
from torchmark.native.build import Result, build, name_prelude, precompile
from torchmark.native.cache import Cache
from torchmark.native.render import LIGHT_HEADERS
from torchmark.native.toolchain import Compiler, ProgramResult, Stopped, Toolchain, make_toolchain
from torchmark.worker.check_job import OTHER, read_results


class Shop:
    """A stub torch, a compiler and a cache; counts the runs of the compiler."""

    def __init__(self, folder: Path, cxx: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.environ = {**os.environ, "CXX": cxx}
        self.runs: list[str] = []
        self.sdk = make_stub_torch(folder / "torch")
        compile_one = Compiler.compile

        def counted(compiler: Compiler, *args: Any) -> Any:
            self.runs.append(cxx)
            return compile_one(compiler, *args)

        monkeypatch.setattr(Compiler, "compile", counted)

    @property
    def toolchain(self) -> Toolchain:
        return make_toolchain(self.sdk, self.environ, str(self.folder))

    @property
    def cache(self) -> Cache:
        return Cache(self.folder / "cache")

    def build(self, *snippets: Snippet | str, jobs: int = 1) -> list[Result]:
        wanted = [Snippet(one) if isinstance(one, str) else one for one in snippets]
        results = build(wanted, self.toolchain, self.cache, self.environ, jobs)
        return [results[one] for one in wanted]

    def timer(self, snippet: Snippet | str) -> CompiledTimer:
        (result,) = self.build(snippet)
        assert isinstance(result, Compiled), result
        return CompiledTimer(result)


@pytest.fixture(params=["g++", "clang++"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(tmp_path, request.param, monkeypatch)


@pytest.fixture
def gcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(tmp_path, "g++", monkeypatch)


def check(condition: str) -> str:
    """C++ that throws unless the condition holds."""
    return f'if (!({condition})) throw std::runtime_error("does not hold");'


# --- the text ------------------------------------------------------------------------------------------

VERBATIM = [
    Snippet(check(r'std::string("\n\x41\\d").size() == 4')),
    Snippet(check(r'std::string(R"(\d "x" )").size() == 7')),
    Snippet(check('std::string(R"y(two\nlines)" // )y").size() == 15')),
    Snippet(check("n == 3") + " // the end", "int n = 3; // three"),
    Snippet(check("n == 3") + " // goes on \\", "int n = 3; // goes on \\"),
    Snippet("#define N 3\n" + check("N == 3")),
    Snippet("#define N 4\n" + check("N == 4")),
    Snippet("#ifdef N\nthrow 1;\n#endif\n;"),
    Snippet("#if 1\nif (true) {\n#else\nif (false) {\n#endif\n}"),
    Snippet(check("M == 5"), "", "#define M 5"),
    Snippet(check("M == 6"), "", "#define M 6"),
    Snippet("BEGIN int i = 1; (void)i; }", "", "#define BEGIN {"),
    Snippet(check("1'000 == 1000 && '\"' == 34 && '\\'' == 39")),
    Snippet("int i = 0;\nagain:\nif (++i < 3) goto again;\n" + check("i == 3")),
    Snippet(check("first + second == 3"), "auto [first, second] = std::pair<int, int>(1, 2);", "#include <utility>"),
    Snippet(check("f(1) == 2"), "", "static int f(int x) { return x + 1; }"),
    Snippet(check("f(1) == 3"), "", "static int f(int x) { return x + 2; }"),
    Snippet(check("std::string(__FILE__).size() > 0 && __LINE__ == 1")),
    Snippet("struct A { int n[2] = {1, 2}; } a; " + check("a.n[1] == 2 && [&] { return a.n[0]; }() == 1")),
    Snippet(check('std::string("größe").size() == 7')),
    Snippet("", "int n = 1; (void)n;"),
    Snippet("// nothing but a comment"),
]


def test_any_text_arrives_as_it_was_written(shop: Shop) -> None:
    for snippet, result in zip(VERBATIM, shop.build(*VERBATIM), strict=True):
        assert isinstance(result, Compiled), (snippet, result)
        CompiledTimer(result).timeit(3)
    # Those without a global setup, with those that include headers; one file for each other setup; and one for the
    # snippet that has both branches of a condition.
    assert len(shop.runs) == 7


def test_lines_end_as_windows_has_them(shop: Shop) -> None:
    shop.timer(Snippet("int i = 1;\r\ni++;\r\n" + check("i == 2"), "int n = 1;\r\n(void)n;")).timeit(1)


# --- errors --------------------------------------------------------------------------------------------

HEALTHY = [Snippet(f"torchmark::keep(x.add({i}));", "torch::Tensor x;") for i in range(27)]
BROKEN = {
    Snippet("int a = 1;\nif (a === 2) a = 3;"): ("stmt", 2),
    Snippet("int b = 1;\n\nb = nowhere;"): ("stmt", 3),
    Snippet("int c = 1;\nc += 1"): ("stmt", 2),
}


def test_three_broken_snippets_of_thirty_cost_nobody_else_anything(shop: Shop) -> None:
    batch = [*HEALTHY[:9], *BROKEN, *HEALTHY[9:]]
    random.Random(1).shuffle(batch)
    results = dict(zip(batch, shop.build(*batch), strict=True))
    assert all(isinstance(results[snippet], Compiled) for snippet in HEALTHY)
    for snippet, (part, line) in BROKEN.items():
        failure = results[snippet]
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.NOT_COMPILED
        assert failure.traceback is not None
        assert failure.traceback.startswith(f"<{part}>:{line}:")
        assert f"does not compile, line {line}, column " in failure.message
        others = [other.stmt for other in BROKEN if other != snippet]
        assert not any(other.splitlines()[-1] in failure.traceback for other in others)
    # All, all but the guilty, and one more for whom other headers might have helped.
    assert len(shop.runs) <= 4


def test_many_guilty_cost_no_more_than_few(gcc: Shop) -> None:
    guilty = [Snippet(f"nowhere_{i}();") for i in range(40)]
    results = gcc.build(*guilty, *HEALTHY)
    assert [isinstance(one, Failure) for one in results] == [True] * 40 + [False] * 27
    assert len(gcc.runs) <= 4


FAULTS: list[tuple[Snippet, str]] = [
    (Snippet("f(x;"), "<stmt>:1:2: error: '(' is not closed"),
    (Snippet("f();\n}"), "<stmt>:2:1: error: '}' closes nothing"),
    (Snippet("f(); /* and so on"), "<stmt>:1:6: error: this comment does not end"),
    (Snippet('auto s = R"(;'), "<stmt>:1:10: error: this raw string does not end"),
    (Snippet("f();", "int n = 1"), "<setup>:1:10: error: expected"),
    (Snippet("f();", "", "int n = 1"), "<global_setup>:1:10: error: expected"),
    (Snippet("torch::twice('a');"), "<stmt>:1:"),
    (Snippet("return 1;"), "<stmt>:1:"),
    (Snippet("", "int n;\n#error not here"), "<setup>:2:2: error: "),
    (Snippet("f();", "", "#include <no/such/file.h>"), "<global_setup>:1:10: fatal error: "),
    (Snippet("#if 1\nf();"), "<stmt>:1:"),
    (Snippet("nowhere::f();"), "<stmt>:1:1: error: "),
]


def test_each_is_told_its_own_fault_and_place(shop: Shop) -> None:
    snippets = [snippet for snippet, _ in FAULTS]
    results = shop.build(*HEALTHY[:3], *snippets, *HEALTHY[3:6])
    for (snippet, start), result in zip(FAULTS, results[3:-3], strict=True):
        assert isinstance(result, Failure), snippet
        lines = (result.traceback or "").splitlines()
        assert any(line.startswith(start) for line in lines), (snippet, result.traceback)
        assert "torchmark" not in (result.traceback or "")
    assert all(isinstance(result, Compiled) for result in results[:3] + results[-3:])


def test_a_fault_at_file_scope_is_told_to_all_who_share_it(shop: Shop) -> None:
    bad = "int n = nowhere;"
    results = shop.build(Snippet("f();", "", bad), Snippet("n++;", "", bad), "int n = 1; n++;")
    for result in results[:2]:
        assert isinstance(result, Failure)
        assert (result.traceback or "").startswith("<global_setup>:1:9: error: ")
    assert isinstance(results[2], Compiled)


def test_a_name_that_nothing_defines_is_told(shop: Shop) -> None:
    results = shop.build("extern int missing(int); missing(1);", "int n = 1; n++;")
    assert isinstance(results[0], Failure)
    assert "nothing defines missing(int)" in results[0].message
    assert isinstance(results[1], Compiled)


def test_names_of_the_interpreter_are_found_when_it_loads(gcc: Shop) -> None:
    gcc.timer(Snippet("Py_IsInitialized() || (throw 1, true);", "", 'extern "C" int Py_IsInitialized();')).timeit(1)


def test_headers_that_the_words_did_not_hint_at_are_found(shop: Shop) -> None:
    # The word is made up of two by the preprocessor.
    snippet = Snippet("JOIN(n, n)::Linear l; (void)l;", "using namespace torch;", "#define JOIN(a, b) a##b")
    shop.timer(snippet).timeit(1)
    assert len(shop.runs) == 2


# --- one does not suffer for another -----------------------------------------------------------------------

INNOCENT = [Snippet("int N = 1, KK = 2, LEAK = 3, ECHO = 4; torchmark::keep(N + KK + LEAK + ECHO);"), *HEALTHY[:3]]


@pytest.mark.parametrize(
    "neighbour",
    [
        Snippet("torchmark::keep(N);", "/* size */ #define N 5"),
        Snippet("torchmark::keep(KK);", "%:define KK 4"),
        Snippet("torchmark::keep(LEAK);", '#define S "/*"\n#define LEAK 3\n /* c */'),
        Snippet("torchmark::keep(ECHO);", "", "#include <termios.h>"),
        Snippet("struct A { char c; int n; }; torchmark::keep(sizeof(A));", "#pragma pack(1)"),
    ],
)
def test_what_reaches_further_reaches_nobody(gcc: Shop, neighbour: Snippet) -> None:
    packed = Snippet('struct B { char c; int n; }; static_assert(sizeof(B) == 8, "packed");')
    for result in gcc.build(neighbour, *INNOCENT, packed):
        assert isinstance(result, Compiled), result


@pytest.mark.parametrize("guilty", ["#define OPEN {\nOPEN", "#define CLOSE }\nCLOSE"])
def test_brackets_of_macros_convict_nobody_else(gcc: Shop, guilty: str) -> None:
    results = gcc.build(HEALTHY[0], guilty, *HEALTHY[1:6])
    assert [isinstance(one, Failure) for one in results] == [False, True, False, False, False, False, False]


def test_conditions_that_two_snippets_share_are_told_to_both(gcc: Shop) -> None:
    one, two, three = gcc.build("torchmark::keep(1);\n#if 0", "#endif\ntorchmark::keep(2);", HEALTHY[0])
    assert isinstance(one, Failure)
    assert "<stmt>:2:1: error: this condition does not end" in (one.traceback or "")
    assert isinstance(two, Failure)
    assert "<stmt>:1:1: error: this #endif belongs to no condition" in (two.traceback or "")
    assert isinstance(three, Compiled)


def test_an_instance_that_does_not_link_convicts_nobody_else(gcc: Shop) -> None:
    scope = "int missing(int); template <class T> __attribute__((noinline)) int f(T t) { return missing(t); }"
    results = gcc.build(Snippet("torchmark::keep(f(1));", "", scope), Snippet("torchmark::keep(2);", "", scope))
    assert isinstance(results[0], Failure)
    assert "nothing defines missing(int)" in results[0].message
    assert isinstance(results[1], Compiled)


def test_many_that_do_not_link_cost_no_more_than_few(gcc: Shop) -> None:
    guilty = [Snippet(f"missing({i});", "extern int missing(int);") for i in range(20)]
    results = gcc.build(*guilty, *HEALTHY[:3])
    assert [isinstance(one, Failure) for one in results] == [True] * 20 + [False] * 3
    assert len(gcc.runs) == 2


def test_messages_speak_of_nothing_of_ours(shop: Shop) -> None:
    failures = shop.build(
        Snippet("f([] {});", "", "void f(int);"), Snippet("", "if (true)"), Snippet("torch::Tensor x; x.y([] {});")
    )
    for failure in failures:
        assert isinstance(failure, Failure)
        assert "torchmark_" not in failure.message
        assert failure.traceback
        assert "error: " in failure.traceback.splitlines()[0]


def test_what_is_no_text_costs_nobody_else_anything(gcc: Shop) -> None:
    results = gcc.build('torchmark::keep("\ud800");', "torchmark::keep('\0');", HEALTHY[0])
    assert [isinstance(one, Failure) for one in results] == [True, True, False]


def test_a_batch_survives_a_cache_that_is_too_small(gcc: Shop) -> None:
    snippets = [Snippet(f"torchmark::keep(N + {i});", "", f"#define N {i}") for i in range(3)]
    results = build(snippets, gcc.toolchain, Cache(gcc.folder / "cache", 1000), gcc.environ)
    for result in results.values():
        assert isinstance(result, Compiled)
        CompiledTimer(result).timeit(1)


def test_files_of_the_working_folder_are_those_of_this_folder(gcc: Shop) -> None:
    """Also where a macro stands for the name of the file."""
    snippet = Snippet(check("N == EXPECTED"), "", '#define H "own.h"\n#include H\n#include <stdexcept>')
    for n in (1, 2):
        folder = gcc.folder / str(n)
        folder.mkdir()
        (folder / "own.h").write_text(f'#define N {n}\n#define EXPECTED {n}\nextern "C" int which = {n};')
        (result,) = build([snippet], make_toolchain(gcc.sdk, gcc.environ, str(folder)), gcc.cache, gcc.environ).values()
        assert isinstance(result, Compiled), result
        assert ctypes.c_int.in_dll(ctypes.CDLL(result.library), "which").value == n


def test_the_users_flags_reach_compiler_and_linker(gcc: Shop) -> None:
    (gcc.folder / "inc").mkdir()
    (gcc.folder / "inc" / "rel.h").write_text("#define REL 3\n")
    gcc.environ["CXXFLAGS"] = "-Iinc -fopenmp"
    stmt = "#pragma omp parallel for\nfor (int i = 0; i < 2; ++i) torchmark::keep(i);"
    gcc.timer(Snippet(stmt, "", "#include <rel.h>\nint rel = REL;")).timeit(1)


@pytest.mark.parametrize("cxx", ["true", "./true"])
def test_a_compiler_that_makes_nothing_is_told(gcc: Shop, cxx: str, monkeypatch: pytest.MonkeyPatch) -> None:
    os.symlink("/bin/true", gcc.folder / "true")
    monkeypatch.chdir(gcc.folder)
    gcc.environ["CXX"] = cxx
    with pytest.raises(SetupError, match="No such file"):
        gcc.build(HEALTHY[0])


# --- running -------------------------------------------------------------------------------------------


THROWN = {
    'throw std::out_of_range("too far");': r"^std::out_of_range: too far$",
    'throw c10::Error("torch says");': r"^c10::Error: torch says$",
    "throw 3;": r"^an exception that is no std::exception$",
    "break;": "left its loop",
    "return;": "left its loop",
}


def test_what_code_throws_is_told_and_the_next_block_runs(shop: Shop) -> None:
    results = shop.build(*(Snippet(stmt, "", "#include <stdexcept>") for stmt in THROWN))
    for told, result in zip(THROWN.values(), results, strict=True):
        assert isinstance(result, Compiled), result
        timer = CompiledTimer(result)
        for _ in range(2):
            with pytest.raises(SnippetError, match=told):
                timer.timeit(1)


def test_a_setup_that_throws_is_told(gcc: Shop) -> None:
    with pytest.raises(SnippetError, match="no std::exception"):
        gcc.timer(Snippet("int n = 1; n++;", "throw 3;")).timeit(1)


PROBES = 'extern "C" { long long setups = 0, runs = 0; }'


@pytest.fixture
def probe(gcc: Shop) -> tuple[CompiledTimer, Callable[[], tuple[int, int]]]:
    """A timer, and how often its setup and its statement have run."""
    (result,) = gcc.build(Snippet("++runs;", "++setups;", PROBES))
    assert isinstance(result, Compiled)
    library = ctypes.CDLL(result.library)

    def count() -> tuple[int, int]:
        return tuple(ctypes.c_longlong.in_dll(library, name).value for name in ("setups", "runs"))  # type: ignore[return-value]

    return CompiledTimer(result), count


Probe = tuple[CompiledTimer, Callable[[], tuple[int, int]]]


def test_each_block_has_a_setup_and_one_run_before(probe: Probe) -> None:
    timer, count = probe
    timer.timeit(10)
    assert count() == (1, 11)
    timer.timeit(0)
    assert count() == (2, 12)


def test_blocks_can_share_one_setup(probe: Probe) -> None:
    timer, count = probe

    def steps() -> Steps[str]:
        for number in (1, 2, 3):
            assert (yield number) >= 0
        return "done"

    assert timer.follow(steps()) == "done"
    assert count() == (1, 7)
    carry_out(timer, blocked_within(0.001, 1.0, None, time.perf_counter))


def test_what_the_steps_raise_ends_the_loop(probe: Probe) -> None:
    timer, count = probe

    def steps() -> Steps[None]:
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timer.follow(steps())
    assert count() == (1, 2)


def test_an_interrupt_on_the_way_into_a_callback_is_not_lost(gcc: Shop) -> None:
    # The signal comes while the library runs; Python's handler runs when Python does again: on the way into `next`.
    timer = gcc.timer(Snippet("raise(SIGINT);", "", "#include <csignal>"))
    # Whoever runs these tests in the background may have interrupts switched off.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                timer.timeit(3)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_a_clock_raises_is_raised(gcc: Shop) -> None:
    (result,) = gcc.build(HEALTHY[0])
    assert isinstance(result, Compiled)

    def broken() -> float:
        raise ZeroDivisionError("no time")

    with pytest.raises(ZeroDivisionError, match="no time"):
        CompiledTimer(result, broken).timeit(5)


def test_loops_count_beyond_32_bits(probe: Probe) -> None:
    timer, count = probe
    timer.timeit(2**31 + 1)
    assert count() == (1, 2**31 + 2)


@pytest.mark.parametrize("number", [-1, MOST_RUNS + 1])
def test_what_no_loop_can_count_is_refused(probe: Probe, number: int) -> None:
    with pytest.raises(ValueError, match="A loop counts from 0"):
        probe[0].timeit(number)


def test_the_interpreter_is_free_while_the_loop_runs(gcc: Shop) -> None:
    flag = ctypes.c_int(0)
    address = ctypes.addressof(flag)
    # Without end if nobody else can run meanwhile, but for the bound.
    stmt = f"for (long i = 0; i < 20000000000 && *(volatile int *){address} == 0; ++i) {{}}\n" + check(
        f"*(volatile int *){address} == 1"
    )
    timer = gcc.timer(Snippet(stmt, "", "#include <stdexcept>"))
    thread = threading.Timer(0.05, lambda: setattr(flag, "value", 1))
    thread.start()
    timer.timeit(1)
    thread.join()


EMPTY = {
    "int z = a + b;": True,
    "d += 1;": True,
    "for (int i = 0; i < 100; ++i) d += i;": True,
    "": True,
    "torchmark::keep(a + b);": False,
    "d += 1; torchmark::keep(d);": False,
    "static volatile int n; n = a;": False,
    'if (a > 5) throw std::runtime_error("");': False,
    "int z = opaque(a);": False,
}


def test_an_empty_loop_is_noticed(shop: Shop) -> None:
    setup = "int a = opaque(1), b = opaque(2); double d = a; (void)b; (void)d;"
    scope = '#include <stdexcept>\nint opaque(int x) { __asm__ volatile("" : "+r"(x)); return x; }'
    results = shop.build(*(Snippet(stmt, setup, scope) for stmt in EMPTY))
    for (stmt, empty), result in zip(EMPTY.items(), results, strict=True):
        assert isinstance(result, Compiled), result
        assert CompiledTimer(result).optimised_away is empty, stmt


def test_another_clock_is_read_around_each_block(gcc: Shop) -> None:
    (result,) = gcc.build("int n = 1; n++;")
    assert isinstance(result, Compiled)
    readings = iter([10.0, 11.0, 20.0, 23.5])
    assert CompiledTimer(result, lambda: next(readings)).timeit(5) == 3.5


# --- the cache -----------------------------------------------------------------------------------------


def test_nothing_is_compiled_twice(gcc: Shop) -> None:
    gcc.build(*HEALTHY[:5])
    assert len(gcc.runs) == 1
    (first, *_), runs = gcc.build(*HEALTHY[:5]), len(gcc.runs)
    assert runs == 1
    assert gcc.build(HEALTHY[0]) == [first]
    gcc.build(*HEALTHY[:6])
    assert len(gcc.runs) == 2


def test_a_header_that_changes_is_noticed(gcc: Shop) -> None:
    header = gcc.folder / "mine.h"
    header.write_text("#define N 1\n")
    os.utime(header, (1000, 1000))
    snippet = Snippet(check("N == 1"), "", '#include "mine.h"\n#include <stdexcept>')
    gcc.timer(snippet).timeit(1)
    gcc.timer(snippet)
    assert len(gcc.runs) == 1
    header.write_text("#define N 2\n")
    with pytest.raises(SnippetError, match="does not hold"):
        gcc.timer(snippet).timeit(1)
    assert len(gcc.runs) == 2


def test_headers_compiled_ahead_are_used_and_checked(shop: Shop) -> None:
    precompile(shop.toolchain, shop.cache, shop.environ)
    assert shop.cache.measure().preludes == 1
    shop.timer(HEALTHY[0]).timeit(1)
    failure = shop.build("torch::Tensor x;\nx.nowhere();")[0]
    assert isinstance(failure, Failure)
    assert (failure.traceback or "").startswith("<stmt>:2:3: error: ")
    header = shop.folder / "torch/include/torch/csrc/api/include/torch/types.h"
    assert str(header) in _headers(shop)
    # As if torch was installed anew.
    make_stub_torch(shop.folder / "torch")
    os.utime(header, (1000, 1000))
    runs = len(shop.runs)
    shop.timer(HEALTHY[0]).timeit(1)
    assert len(shop.runs) == runs + 1
    precompile(shop.toolchain, shop.cache, shop.environ)
    assert shop.cache.measure().preludes == 1


def _headers(shop: Shop) -> Sequence[str]:
    found = shop.cache.find_prelude(name_prelude(shop.toolchain, LIGHT_HEADERS))
    assert found is not None
    return list(found.headers)


def test_a_cache_in_an_odd_place_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "with blanks and 'quotes' ünd $HOME #1"
    folder.mkdir()
    shop = Shop(folder, "g++", monkeypatch)
    shop.timer(HEALTHY[0]).timeit(1)
    shop.timer(HEALTHY[0])
    assert len(shop.runs) == 1


BUILT = [*HEALTHY, *VERBATIM[:10]]
# It imports neither torch nor pytest, which take longer than compiling.
PROGRAM = """
import json, os, sys
from pathlib import Path
from torchmark.model.environment import Sdk
from torchmark.model.task import Compiled, Snippet
from torchmark.native.build import build
from torchmark.native.cache import Cache
from torchmark.native.toolchain import make_toolchain
folder = Path(sys.argv[1])
snippets = [Snippet(*texts) for texts in json.loads(sys.argv[2])]
sdk = Sdk("/stub/python", str(folder / "torch"), "0.1", "abc", True, "-O2", 17, None)
print("ready", flush=True)
toolchain = make_toolchain(sdk, os.environ, "/")
results = build(snippets, toolchain, Cache(folder / "cache"), os.environ, 2)
assert all(isinstance(one, Compiled) for one in results.values()), results
print("built")
"""


@contextlib.contextmanager
def other_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    texts = json.dumps([(one.stmt, one.setup, one.global_setup) for one in BUILT])
    command = [sys.executable, "-c", PROGRAM, str(folder), texts]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def entries_are_whole(folder: Path) -> int:
    """Load and run everything in the cache; gives how many entries there are."""
    keys = [path.stem for path in (folder / "cache").glob("*.so")]
    for key in keys:
        path = Cache(folder / "cache").find(key)
        assert path is not None
        CompiledTimer(Compiled(str(path), key)).timeit(1)
    return len(keys)


def test_processes_that_build_the_same_and_are_killed_leave_no_broken_entry(tmp_path: Path) -> None:
    make_stub_torch(tmp_path / "torch")
    chance = random.Random(7)
    for _ in range(2):
        with other_process(tmp_path) as one, other_process(tmp_path) as two:
            for process in (one, two):
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0.0, 1.5))
            one.send_signal(signal.SIGKILL)
            out, _ = two.communicate(timeout=120)
            assert out == "built\n"
            assert two.returncode == 0
        entries_are_whole(tmp_path)
        # A new start, to be killed in the middle of again.
        Cache(tmp_path / "cache").clear()
    # A process may have been killed before it locked its folder, which stays for some minutes.
    for path in (tmp_path / "cache").glob("new-*"):
        os.utime(path, (0, 0))
    with other_process(tmp_path) as one:
        assert one.wait(120) == 0
    assert entries_are_whole(tmp_path) == len(BUILT)
    # Not a trace of those that were killed.
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.suffix != ".so"] == []


WRITER = """
import os, sys
from pathlib import Path
from torchmark.native.cache import Cache
folder, seed = Path(sys.argv[1]), int(sys.argv[2])
library = folder / f"{os.getpid()}.so"
library.write_bytes(bytes([seed]) * 300_000)
print("ready", flush=True)
while True:
    # Some evict what others write.
    cache = Cache(folder / "cache", 10**6 if seed % 2 else 10**9)
    cache.publish(library, {}, [f"{k:032x}" for k in range(20)])
    cache.evict()
"""


def test_readers_see_whole_entries_while_writers_are_killed(tmp_path: Path) -> None:
    chance = random.Random(3)
    with contextlib.ExitStack() as stack:
        writers: list[subprocess.Popen[str]] = []

        def start(seed: int) -> None:
            command = [sys.executable, "-c", WRITER, str(tmp_path), str(seed)]
            writer = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(writer.kill)
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            writers.append(writer)

        for seed in (1, 2, 3):
            start(seed)
        seen = 0
        for round_number in range(12):
            for k in range(20):
                path = Cache(tmp_path / "cache").find(f"{k:032x}")
                with contextlib.suppress(FileNotFoundError):
                    if path is not None:
                        content = path.read_bytes()[:300_000]
                        assert len(set(content)) == 1
                        seen += 1
            victim = writers.pop(chance.randrange(3))
            victim.kill()
            start(round_number % 3 + 1)
        assert seen > 100
        for writer in writers:
            writer.kill()
            writer.wait()
    final = Cache(tmp_path / "cache")
    assert all(final.find(path.stem) for path in (tmp_path / "cache").glob("*.so"))
    with final.workshop():
        pass
    # Someone may have been killed in the very moment between making a folder and locking it.
    left = [path for path in (tmp_path / "cache").iterdir() if not path.name.startswith("new-")]
    assert {path.suffix for path in left} == {".so"}


# --- being stopped -------------------------------------------------------------------------------------


def test_work_that_is_given_up_ends_the_compiler(tmp_path: Path) -> None:
    slow = tmp_path / "slow c++"
    slow.write_text('#!/bin/sh\ncase "$*" in *--version*) echo slow;; *) sleep 1000; esac\n')
    slow.chmod(0o755)
    environ = {**os.environ, "CXX": f"'{slow}'"}
    toolchain = make_toolchain(make_stub_torch(tmp_path / "torch"), environ, "/")
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(Stopped):
        build(HEALTHY[:2], toolchain, Cache(tmp_path / "cache"), environ, stop=stop)
    assert list((tmp_path / "cache").iterdir()) == []
    assert subprocess.run(["pgrep", "-f", str(slow)], capture_output=True).returncode == 1


def test_a_compiler_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\ncase "$*" in *--version*) echo slow;; *) sleep 1000; esac\n')
    slow.chmod(0o755)
    monkeypatch.setattr("torchmark.native.toolchain.TIMEOUT_S", 0.3)
    environ = {**os.environ, "CXX": str(slow)}
    toolchain = make_toolchain(make_stub_torch(tmp_path / "torch"), environ, "/")
    results = build(HEALTHY[:1], toolchain, Cache(tmp_path / "cache"), environ)
    failure = results[HEALTHY[0]]
    assert isinstance(failure, Failure)
    assert "did not end within" in failure.message


def test_a_compiler_that_is_killed_is_tried_once_more_and_in_no_smaller_parts(gcc: Shop) -> None:
    hungry = gcc.folder / "hungry"
    hungry.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo hungry;; '
        '*) echo "c++: fatal error: Killed signal terminated program cc1plus"; exit 1; esac\n'
    )
    hungry.chmod(0o755)
    gcc.environ["CXX"] = str(hungry)
    results = gcc.build(*HEALTHY)
    assert all(isinstance(one, Failure) and "memory" in one.message for one in results)
    assert len(gcc.runs) == 2


def test_threads_keep_their_own_exceptions_and_leave_pythons_hook_as_it_was(gcc: Shop) -> None:
    before = sys.unraisablehook
    timer = gcc.timer(HEALTHY[0])
    inside, leave = threading.Barrier(2), threading.Event()
    raised: list[BaseException] = []

    def steps(name: str, first: bool) -> Steps[None]:
        inside.wait(30)
        if not first:
            leave.wait(30)
        yield 1
        raise ValueError(name)

    def run(name: str, first: bool) -> None:
        try:
            timer.follow(steps(name, first))
        except ValueError as error:
            raised.append(error)
        leave.set()

    threads = [threading.Thread(target=run, args=arguments) for arguments in (("one", True), ("two", False))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(error) for error in raised] == ["one", "two"]
    assert sys.unraisablehook is before


# --- handing results over ------------------------------------------------------------------------------

GIVING = Snippet(
    """
    torchmark::give("number", 3); torchmark::give("part", 0.5f); torchmark::give("flag", true);
    torchmark::give("several", std::make_tuple(1, std::vector<double>{2, 3}));
    torchmark::give("tensor", tensor); torchmark::give("tensor.grad", torchmark::grad(tensor));
    torchmark::give("nothing", Tensor{}); torchmark::give("number.grad", torchmark::grad(3));
    torchmark::give("grads", torchmark::grads(model)); torchmark::give("no grads", torchmark::grads(3));
    torchmark::give("grads behind a pointer", torchmark::grads(&model));
    torchmark::give("other", std::string_view("x").data());
    """,
    "Tensor tensor{{1, 2, 3}}; Model model;",
    """
    #include <string_view>
    #include <vector>
    enum class Kind { Short };
    inline const char *toString(Kind) { return "Short"; }
    struct Tensor {
        std::vector<short> values;
        Kind scalar_type() const { return Kind::Short; }
        bool defined() const { return !values.empty(); }
        Tensor detach() const { return *this; }
        Tensor contiguous() const { return *this; }
        std::vector<long> sizes() const { return {1, static_cast<long>(values.size())}; }
        const void *data_ptr() const { return values.data(); }
        long numel() const { return static_cast<long>(values.size()); }
        long element_size() const { return 2; }
        bool is_sparse() const { return false; }
        bool is_sparse_csr() const { return false; }
        bool is_mkldnn() const { return false; }
        Tensor to_dense() const { return *this; }
        Tensor grad() const { return Tensor{{7}}; }
    };
    struct Model { std::vector<Tensor> parameters() const { return {Tensor{}, Tensor{}}; } };
    """,
)


def test_values_of_all_kinds_are_handed_over_by_name(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = shop.timer(GIVING)
    with tempfile.TemporaryFile() as file:
        monkeypatch.setenv("TORCHMARK_RESULTS", str(file.fileno()))
        # Once, before the first block.
        timer.timeit(0)
        file.seek(0)
        results = {
            name: [value.tolist() if isinstance(value, torch.Tensor) else value for value in values]
            for name, values in read_results(file.readline, file.read).items()
        }
    assert results == {
        "number": [3],
        "part": [0.5],
        "flag": [True],
        "several": [1, 2.0, 3.0],
        "tensor": [[[1, 2, 3]]],
        "tensor.grad": [[[7]]],
        "nothing": [None],
        "number.grad": [None],
        "grads": [[[7]], [[7]]],
        "no grads": [OTHER],
        "grads behind a pointer": [[[7]], [[7]]],
        "other": [OTHER],
    }


def test_without_a_descriptor_nothing_is_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHMARK_RESULTS", raising=False)
    assert shop.timer(GIVING).timeit(1) >= 0


@pytest.mark.parametrize("times", [1, 2])
def test_a_cache_that_is_removed_while_something_compiles_is_no_fault_of_the_snippet(
    gcc: Shop, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_real, runs = Compiler._run, []

    def run(compiler: Compiler, command: Sequence[str], folder: Path) -> ProgramResult:
        runs.append(folder)
        if len(runs) > times:
            return run_real(compiler, command, folder)
        shutil.rmtree(gcc.folder / "cache")
        return ProgramResult(1, "cc1plus: fatal error: unit.cpp: No such file or directory")

    monkeypatch.setattr(Compiler, "_run", run)
    if times == 1:
        gcc.timer("int n = 1; (void)n;").timeit(1)
    else:
        with pytest.raises(SetupError, match="was removed while something was compiled there"):
            gcc.build("int n = 1;")
