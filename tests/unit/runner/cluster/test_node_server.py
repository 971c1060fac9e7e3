"""What a node answers, with workers that are pretended; and how compiled C++ gets there."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fleets import COUNTING, make_case
from tests.strangers import give_away
from torchmark import __version__
from torchmark.errors import SetupError, WorkerError
from torchmark.model.costs import Tally
from torchmark.model.environment import Environment, Sdk
from torchmark.model.inputs import FuzzedInput
from torchmark.model.job import Place, RaceJob
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.model.plan import Metric, Order, Plan, Sampling, Target
from torchmark.model.task import Compiled, Language, Snippet, Times
from torchmark.runner.cluster import libraries
from torchmark.runner.cluster import node_server as node_server_module
from torchmark.runner.cluster.backend import make_run_setup, open_ray
from torchmark.runner.cluster.libraries import (
    FOLDER,
    NAME_LENGTH,
    LibraryFolder,
    hash_content,
    pack_libraries,
)
from torchmark.runner.cluster.node_server import CANARY, CoreLock, NodeServer, choose_environ
from torchmark.runner.cluster.protocol import (
    Build,
    Built,
    Canary,
    CanaryCounted,
    InputTimed,
    LibrarySet,
    Measure,
    Measured,
    PackedLibrary,
    Race,
    RequestRefused,
    RunSetup,
    Survey,
    Surveyed,
)
from torchmark.runner.lab import Prepared
from torchmark.worker import protocol

SDK = Sdk(
    python="python",
    folder="/torch",
    version="2",
    git_version="abc",
    cxx11_abi=True,
    cxx_flags="",
    cxx_standard=17,
    python_include=None,
)
BASE, HEAD = Target("base"), Target("head")
TWO = (BASE, HEAD)


class PretendedWorker:
    def __init__(self, lab: PretendedLab, kind: str) -> None:
        self.lab, self.kind = lab, kind
        self.environment = Environment(f"{lab.target.name} {kind}", "3", "2")
        self.sdk = SDK
        self.problem: Exception | None = None

    def start(self) -> None:
        if self.problem is not None:
            raise self.problem
        self.lab.log.append(f"start {self.kind}")

    def pin(self, cores: Sequence[int]) -> None:
        self.lab.pinned.append(tuple(cores))

    def run(self, job: RaceJob, payload: bytes, timeout_s: float) -> Any:
        self.lab.log.append(f"race {job.stmts} {timeout_s}")
        return SimpleNamespace(message=protocol.Raced((Times(1, (0.5,)),) * len(job.stmts)))


class PretendedLab:
    """A `Lab` whose workers answer at once: how many instructions a case takes is the length of its statement."""

    def __init__(self, target: Target, log: list[str]) -> None:
        self.target, self.log = target, log
        self.pinned: list[tuple[int, ...]] = []
        self.timer = PretendedWorker(self, "timer")
        self.counters: list[PretendedWorker] = []
        self.counter_problem: Exception | None = None
        self.results: dict[str, Failure] = {}

    def start(self) -> None:
        self.timer.start()

    def make_counter(self) -> PretendedWorker:
        self.counters.append(PretendedWorker(self, "counter"))
        self.counters[-1].problem = self.counter_problem
        return self.counters[-1]

    def time(self, prepared: Prepared, sampling: Sampling, cores: Sequence[int]) -> tuple[Any, Environment]:
        stmt = prepared.case.args.stmt
        self.log.append(f"time {self.target.name} {stmt} {prepared.compiled and prepared.compiled.key}")
        return self.results.get(stmt) or Times(1, (1.0,)), self.timer.environment

    def count(self, prepared: Prepared, sampling: Sampling, counter: PretendedWorker | None) -> tuple[Any, Environment]:
        stmt = prepared.case.args.stmt
        assert counter is self.counters[-1]
        self.log.append(f"count {self.target.name} {stmt}")
        total = len(stmt)
        return self.results.get(stmt) or Tally(
            number=1,
            seeds=(0,),
            totals=(total,),
            events=(("Ir", total),),
            allocations=0,
            tensor_allocations=0,
            baseline=None,
        ), counter.environment

    def abandon(self) -> None:
        self.log.append("abandon")


class ServerFixture:
    """A node server with everything around it."""

    def __init__(self, run_setup: RunSetup, folder: Path) -> None:
        self.log: list[str] = []
        self.labs: dict[Target, PretendedLab] = {}
        self.made_with: list[tuple[Any, ...]] = []
        environ = {"PATH": "/bin", "TORCHMARK_CACHE": str(folder), "OMP_NUM_THREADS": "9"}
        self.server = NodeServer(run_setup, lambda handle: handle, environ, "n1", self._make_lab)

    def _make_lab(self, target: Target, environ: Mapping[str, str], alias: str | None, path: Sequence[str]) -> Any:
        self.made_with.append((dict(environ), alias, path))
        self.labs[target] = PretendedLab(target, self.log)
        return self.labs[target]

    def ask(self, request: Any) -> Any:
        return self.server.answer(request)


@pytest.fixture
def open_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(node_server_module, "find_valgrind", lambda path: "valgrind")
    monkeypatch.chdir(tmp_path)
    fixtures: list[ServerFixture] = []

    def open_it(targets: tuple[Target, ...] = (BASE,), sampling: Sampling = COUNTING, **more: Any) -> ServerFixture:
        fixtures.append(
            ServerFixture(
                RunSetup(
                    torchmark=__version__,
                    targets=targets,
                    sampling=sampling,
                    folder=str(tmp_path),
                    path=("/lib",),
                    **more,
                ),
                tmp_path / "c",
            )
        )
        return fixtures[-1]

    yield open_it
    for fixture in fixtures:
        fixture.server.close()


def make_orders(names: str, targets: Sequence[Target] = (BASE,), metric: Metric = Metric.COUNT) -> tuple[Order, ...]:
    return tuple(Order(make_case(name), target, metric) for name in names for target in targets)


def make_measure(orders: Sequence[Order], *library_sets: object) -> Measure:
    return Measure(tuple(orders), tuple(dict.fromkeys(order.case for order in orders)), library_sets)


# --- the node server ---------------------------------------------------------------------------------


def test_a_node_says_what_it_is_like(open_server: Any) -> None:
    fixture = open_server(TWO, variables=(("OMP_NUM_THREADS", "2"),))
    said = fixture.ask(Survey())
    assert isinstance(said, Surveyed)
    assert said.node.name == "n1"
    assert said.torchmark == __version__
    assert os.uname().machine in said.libc
    assert [one.python for one in said.environments] == ["base timer", "head timer"]
    assert [variables["OMP_NUM_THREADS"] for variables, _, _ in fixture.made_with] == ["2", "2"]
    assert [(alias, path) for _, alias, path in fixture.made_with] == [(None, ("/lib",))] * 2


def test_a_node_without_valgrind_says_so_only_where_anything_is_counted(
    open_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(path: str) -> str:
        raise SetupError("There is no Valgrind.", missing="valgrind", advice=f"Look in {path}.")

    monkeypatch.setattr(node_server_module, "find_valgrind", find)
    assert open_server().ask(Survey()) == RequestRefused("There is no Valgrind. Look in /bin.")
    assert isinstance(open_server(sampling=Sampling((Metric.WALL,))).ask(Survey()), Surveyed)


@pytest.mark.parametrize("compiles", [False, True])
def test_a_node_says_whether_it_has_a_compiler(
    open_server: Any, monkeypatch: pytest.MonkeyPatch, compiles: bool
) -> None:
    monkeypatch.setattr(node_server_module, "has_compiler", lambda environ: environ["PATH"] == "/bin" and compiles)
    assert open_server().ask(Survey()).compiles is compiles


def test_the_canary_is_counted_in_every_target_by_those_that_count_later(open_server: Any) -> None:
    fixture = open_server(TWO)
    said = fixture.ask(Canary())
    assert isinstance(said, CanaryCounted)
    assert said.counts == (len(CANARY.args.stmt),) * 2
    assert [one.python for one in said.environments] == ["base counter", "head counter"]
    fixture.ask(make_measure(make_orders("ab", TWO)))
    assert [len(lab.counters) for lab in fixture.labs.values()] == [1, 1]


def test_a_canary_that_cannot_be_counted_is_refused_with_the_reason(open_server: Any) -> None:
    fixture = open_server()
    fixture.ask(Survey())
    fixture.labs[BASE].results[CANARY.args.stmt] = Failure(FailureKind.RAISED, "No torch.add.")
    assert fixture.ask(Canary()) == RequestRefused("Nothing can be counted: No torch.add.")


@pytest.mark.parametrize(
    "problem",
    [
        SetupError("No memory.", missing="memory", advice="Get some."),
        WorkerError("It died.", kind="died"),
        OSError(28, "No space left on device"),
    ],
)
def test_what_a_machine_lacks_is_refused_whatever_was_asked(open_server: Any, problem: Exception) -> None:
    fixture = open_server()
    fixture.ask(Survey())
    fixture.labs[BASE].counter_problem = problem
    for request in (Canary(), make_measure(make_orders("a"))):
        assert fixture.ask(request) == RequestRefused(str(problem))


def test_a_fault_of_ours_is_not_taken_for_one_of_the_machine(open_server: Any) -> None:
    fixture = open_server()
    fixture.ask(Survey())
    fixture.labs[BASE].counter_problem = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        fixture.ask(Canary())


@pytest.mark.parametrize("metric", [Metric.COUNT, Metric.WALL])
def test_outcomes_are_in_the_order_of_orders_and_so_is_the_work(open_server: Any, metric: Metric) -> None:
    """What is compared is measured one right after the other."""
    fixture = open_server(TWO, Sampling((metric,)))
    orders = make_orders("cab", TWO, metric)
    said = fixture.ask(make_measure(orders))
    assert isinstance(said, Measured)
    assert [one.order for one in said.outcomes] == list(orders)
    assert {one.node for one in said.outcomes} == {fixture.server.node}
    assert all(one.began <= one.ended for one in said.outcomes)
    words = [line.split()[1:3] for line in fixture.log if line.startswith(("time", "count"))]
    assert words == [[order.target.name, order.case.args.stmt] for order in orders]


def test_a_failure_is_the_outcome_of_its_order_alone(open_server: Any) -> None:
    fixture = open_server()
    fixture.ask(Survey())
    fixture.labs[BASE].results["b"] = failure = Failure(FailureKind.RAISED, "no")
    said = fixture.ask(make_measure(make_orders("abc")))
    assert [one.result == failure for one in said.outcomes] == [False, True, False]


def test_more_threads_than_cores_are_refused_in_words(open_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_server_module, "choose_cores", lambda: [3, 5])
    fixture = open_server(sampling=Sampling((Metric.WALL,)))
    wide, narrow = (Order(_with_threads(number), BASE, Metric.WALL) for number in (3, 1))
    outcomes = fixture.ask(make_measure([wide, narrow])).outcomes
    assert outcomes[0].result.kind is FailureKind.MISSING
    assert "3 threads" in outcomes[0].result.message
    # The last cores: most systems have their interrupts on the first.
    assert outcomes[1].cores == (5,)


def _with_threads(number: int) -> Any:
    case = make_case(f"t{number}")
    object.__setattr__(case.args, "num_threads", number)
    return case


def test_a_race_is_held_by_the_one_that_times(open_server: Any) -> None:
    fixture = open_server(sampling=Sampling((Metric.WALL,)))
    fixture.ask(Survey())
    one = FuzzedInput(0, {}, {}, "")
    said = fixture.ask(Race(one, RaceJob(("x", "y"), "", Place("/")), 7.0))
    assert said == InputTimed(
        (Times(1, (0.5,)), Times(1, (0.5,))), fixture.labs[BASE].timer.environment, fixture.server.node
    )
    assert fixture.log[-1] == "race ('x', 'y') 7.0"
    assert len(fixture.labs[BASE].pinned) == 1


def test_while_anything_is_timed_nobody_else_shares_the_node(open_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = Sampling((Metric.WALL, Metric.COUNT))
    fixture, other = open_server(sampling=sampling), open_server(sampling=sampling)
    seen = []

    def look(prepared: Prepared, *_: object) -> Any:
        seen.append((prepared.case.args.stmt, other.server._machine_lock.share()))
        other.server._machine_lock.leave()
        return Times(1, (1.0,)), None

    fixture.ask(Survey())
    monkeypatch.setattr(fixture.labs[BASE], "time", look)
    monkeypatch.setattr(fixture.labs[BASE], "count", look)
    fixture.ask(make_measure(make_orders("t", metric=Metric.WALL)))
    fixture.ask(make_measure(make_orders("c")))
    assert seen == [("t", False), ("c", True)]
    assert other.server._machine_lock.claim()


def test_closing_ends_the_workers_that_there_are(open_server: Any) -> None:
    fixture = open_server(TWO)
    fixture.server.close()
    assert fixture.log == []
    fixture = open_server(TWO)
    fixture.ask(Survey())
    fixture.server.close()
    assert fixture.log.count("abandon") == 2


def test_variables_that_say_something_of_the_run_are_those_of_where_it_was_begun() -> None:
    own = {"PATH": "/bin", "OMP_NUM_THREADS": "4", "LANG": "C", "TORCHMARK_CACHE": "/c", "MKL_DEBUG": "1"}
    sent = {"PATH": "/theirs", "OMP_NUM_THREADS": "1", "LANG": "de", "TORCHMARK_CACHE": "/theirs", "HOME": "/theirs"}
    assert choose_environ(own, sent) == {
        "PATH": "/bin",
        "TORCHMARK_CACHE": "/c",
        "OMP_NUM_THREADS": "1",
        "LANG": "de",
    }


# --- compiled C++ ------------------------------------------------------------------------------------

S = [Snippet(name) for name in "abc"]


def make_library(folder: Path, name: str, content: bytes) -> Compiled:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.so").write_bytes(content)
    return Compiled(str(folder / f"{name}.so"), name)


def test_one_file_for_many_snippets_travels_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_library(tmp_path, "a", b"library")
    os.link(first.library, tmp_path / "b.so")
    twin = make_library(tmp_path, "c", b"library")
    reads = []
    read = Path.read_bytes

    def note(path: Path) -> bytes:
        reads.append(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", note)
    packed, contents = pack_libraries({S[0]: first, S[1]: Compiled(str(tmp_path / "b.so"), "b"), S[2]: twin})
    name = hash_content(b"library")
    assert packed == {S[0]: PackedLibrary("a", name), S[1]: PackedLibrary("b", name), S[2]: PackedLibrary("c", name)}
    assert contents == {name: b"library"}
    assert reads == ["a.so", "c.so"]


def test_what_does_not_compile_travels_too_but_not_what_a_machine_was_short_of() -> None:
    wrong = Failure(FailureKind.NOT_COMPILED, "no such name")
    short = Failure(FailureKind.MISSING, "no compiler")
    assert pack_libraries({S[0]: wrong, S[1]: short}) == ({S[0]: wrong}, {})


def make_library_set(content: bytes, target: Target = BASE, **more: PackedLibrary | Failure) -> LibrarySet:
    name = hash_content(content)
    by_target: dict[Snippet, PackedLibrary | Failure] = {S[0]: PackedLibrary("a", name), S[1]: PackedLibrary("b", name)}
    by_target |= {Snippet(stmt): one for stmt, one in more.items()}
    return LibrarySet(((target, by_target),), {name: content})


def as_bytes(handle: object) -> bytes:
    assert isinstance(handle, bytes)
    return handle


def test_libraries_are_unpacked_under_their_content_once(tmp_path: Path) -> None:
    fetched = []

    def fetch(handle: object) -> bytes:
        fetched.append(handle)
        return as_bytes(handle)

    library_folder = LibraryFolder(tmp_path / FOLDER, fetch)
    wrong = Failure(FailureKind.NOT_COMPILED, "no")
    library_sets = [make_library_set(b"one", z=wrong), make_library_set(b"head's", HEAD)]
    found = library_folder.unpack([*S, Snippet("z")], BASE, library_sets)
    path = tmp_path / FOLDER / f"{hash_content(b'one')}.so"
    assert found == {S[0]: Compiled(str(path), "a"), S[1]: Compiled(str(path), "b"), Snippet("z"): wrong}
    assert path.read_bytes() == b"one"
    assert os.access(path, os.X_OK)
    # Another process of the same node finds it there.
    assert LibraryFolder(tmp_path / FOLDER, fetch).unpack(S, BASE, library_sets) == {
        S[0]: found[S[0]],
        S[1]: found[S[1]],
    }
    assert fetched == [b"one"]
    assert os.listdir(tmp_path / FOLDER) == [path.name]


def test_paths_of_libraries_from_elsewhere_are_as_long_as_those_of_our_own() -> None:
    assert len(FOLDER) == len("snippets")
    assert len(hash_content(b"")) == NAME_LENGTH == 32


@pytest.mark.parametrize("step", ["fetch", "write", "replace"])
def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    library_folder = LibraryFolder(tmp_path / FOLDER, interrupt if step == "fetch" else as_bytes)
    with monkeypatch.context() as patch:
        if step != "fetch":
            patch.setattr(Path if step == "write" else os, "chmod" if step == "write" else "replace", interrupt)
        with pytest.raises(KeyboardInterrupt):
            library_folder.unpack(S, BASE, [make_library_set(b"one")])
    assert not (tmp_path / FOLDER).exists() or os.listdir(tmp_path / FOLDER) == []
    assert len(LibraryFolder(tmp_path / FOLDER, as_bytes).unpack(S, BASE, [make_library_set(b"one")])) == 2


def test_two_that_write_the_same_agree(tmp_path: Path) -> None:
    """Both have seen that it is not there yet."""
    barrier = threading.Barrier(2, timeout=10)

    def fetch(handle: object) -> bytes:
        barrier.wait()
        return as_bytes(handle)

    found: list[object] = []

    def work() -> None:
        found.append(LibraryFolder(tmp_path / FOLDER, fetch).unpack(S[:1], BASE, [make_library_set(b"one")]))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]
    (name,) = os.listdir(tmp_path / FOLDER)
    assert (tmp_path / FOLDER / name).read_bytes() == b"one"


@pytest.mark.parametrize("damage", ["content", "mode"])
def test_a_library_that_is_not_what_its_name_says_is_fetched_again(tmp_path: Path, damage: str) -> None:
    library_sets = [make_library_set(b"one")]
    LibraryFolder(tmp_path / FOLDER, as_bytes).unpack(S[:1], BASE, library_sets)
    path = tmp_path / FOLDER / f"{hash_content(b'one')}.so"
    before = path.stat().st_ino
    if damage == "content":
        path.write_bytes(b"torn")
    else:
        path.chmod(0o777)
    found = LibraryFolder(tmp_path / FOLDER, as_bytes).unpack(S[:1], BASE, library_sets)
    assert found == {S[0]: Compiled(str(path), "a")}
    assert path.read_bytes() == b"one"
    assert path.stat().st_ino != before


def test_a_library_of_another_user_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched = []

    def fetch(handle: object) -> bytes:
        fetched.append(handle)
        return b"lost on its way"

    LibraryFolder(tmp_path / FOLDER, as_bytes).unpack(S[:1], BASE, [make_library_set(b"one")])
    LibraryFolder(tmp_path / FOLDER, fetch).unpack(S[:1], BASE, [make_library_set(b"one")])
    assert fetched == []
    give_away(tmp_path / FOLDER / f"{hash_content(b'one')}.so", monkeypatch)
    LibraryFolder(tmp_path / FOLDER, fetch).unpack(S[:1], BASE, [make_library_set(b"one")])
    assert fetched == [b"one"]


@pytest.mark.parametrize("name", [hash_content(b"another"), "../../escaped", "/nowhere/escaped", ""])
def test_a_library_that_did_not_arrive_as_it_was_sent_is_a_failure_that_may_pass_later(
    tmp_path: Path, name: str
) -> None:
    library_set = LibrarySet(((BASE, {S[0]: PackedLibrary("a", name)}),), {name: b"one"})
    found = LibraryFolder(tmp_path / FOLDER, as_bytes).unpack(S[:1], BASE, [library_set])[S[0]]
    assert isinstance(found, Failure)
    assert may_pass_later(found)
    assert not list(tmp_path.rglob("*.so"))


def test_whoever_counts_has_a_core_of_its_own_and_no_link_is_followed(tmp_path: Path) -> None:
    one, two, three = (CoreLock((4, 5), tmp_path) for _ in range(3))
    assert (one.core, two.core, three.core) == (4, 5, 5)
    for core_lock in (one, two, three):
        core_lock.close()
    (tmp_path / "core6").symlink_to(tmp_path / "made by us")
    assert CoreLock((6, 7), tmp_path).core == 7
    assert not (tmp_path / "made by us").exists()


def test_libraries_that_nobody_needed_for_long_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchmark.native.cache.Cache.__init__.__defaults__", (25,))
    library_folder = LibraryFolder(tmp_path, as_bytes)
    contents = [bytes([number]) * 10 for number in range(4)]
    for moment, content in enumerate(contents[:2]):
        library_folder.unpack(S[:1], BASE, [make_library_set(content)])
        os.utime(tmp_path / f"{hash_content(content)}.so", (moment, moment))
    # The older one is used again.
    library_folder.unpack(S[:1], BASE, [make_library_set(contents[0])])
    library_folder.unpack(S[:1], BASE, [make_library_set(contents[2])])
    assert {path.stem for path in tmp_path.iterdir()} == {hash_content(contents[n]) for n in (0, 2)}


def test_what_did_not_come_is_compiled_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def build(snippets: Sequence[Snippet], sdk: Sdk, environ: Mapping[str, str], jobs: int) -> dict[Snippet, Any]:
        asked.append((list(snippets), sdk, dict(environ), jobs))
        return {snippet: Compiled("here.so", snippet.stmt) for snippet in snippets}

    monkeypatch.setattr(libraries, "build_snippets", build)
    made: dict[Snippet, Compiled | Failure] = {}
    folder, came, environ = LibraryFolder(tmp_path, as_bytes), [make_library_set(b"one")], {"CXX": "g++"}
    assert folder.build(BASE, came, environ, made, S, SDK, 2)[S[2]] == Compiled("here.so", "c")
    there = Compiled(str(tmp_path / f"{hash_content(b'one')}.so"), "a")
    assert folder.build(BASE, came, environ, {}, S[:2], SDK, 2)[S[0]] == there
    assert asked == [([S[2]], SDK, {"CXX": "g++"}, 2)]
    assert set(made) == set(S)


def test_what_one_node_server_compiles_another_measures_without_a_compiler(
    open_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tuple(make_case(name, Language.CPP, check=name == "a") for name in "ab")

    def build(snippets: Sequence[Snippet], sdk: Sdk, environ: Mapping[str, str], jobs: int) -> dict[Snippet, Any]:
        library = make_library(tmp_path, "made", b"library").library
        return {snippet: Compiled(library, f"key {snippet.stmt}") for snippet in snippets}

    monkeypatch.setattr(libraries, "build_snippets", build)
    sampling = Sampling((Metric.WALL,))
    built = open_server(TWO, sampling).ask(Build(cases))
    assert isinstance(built, Built)
    assert [target for target, _ in built.by_target] == list(TWO)
    assert [sorted(one.stmt for one in packed) for _, packed in built.by_target] == [["", "a", "b"]] * 2
    assert list(built.contents.values()) == [b"library"]

    def refuse(*_: object, **__: object) -> None:
        raise SetupError("There is no compiler.", missing="compiler", advice="Install one.")

    monkeypatch.setattr(libraries, "build_snippets", refuse)
    orders = [Order(cases[1], target, Metric.WALL) for target in TWO]
    fixture = open_server(TWO, sampling)
    said = fixture.ask(make_measure(orders, LibrarySet(built.by_target, built.contents)))
    assert [one.result for one in said.outcomes] == [Times(1, (1.0,))] * 2
    assert [line for line in fixture.log if line.startswith("time")] == ["time base b key b", "time head b key b"]
    # Without them it is compiled on the spot, which fails for its own orders.
    said = fixture.ask(make_measure(orders))
    assert {one.result for one in said.outcomes} == {Failure(FailureKind.MISSING, "There is no compiler. Install one.")}


def test_a_node_that_cannot_compile_leaves_it_to_those_that_measure(
    open_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SetupError("There is no compiler.", missing="compiler", advice="Install one.")

    monkeypatch.setattr(libraries, "build_snippets", refuse)
    assert open_server().ask(Build((make_case("a", Language.CPP),))) == Built(((BASE, {}),), {})


# --- how a cluster is reached ------------------------------------------------------------------------


def test_without_ray_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as caught:
        open_ray(None)
    assert str(caught.value) == "Ray is not installed: pip install 'torchmark[ray]'."
    assert caught.value.missing == "ray"


def test_with_ray_nothing_is_connected_to_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert callable(open_ray("nowhere:1"))


def test_nodes_are_told_what_to_measure_with() -> None:
    plan = Plan((), TWO, COUNTING)
    run_setup = make_run_setup(
        plan, {"PATH": "/bin", "OMP_NUM_THREADS": "2", "LANG": "C", "EDITOR": "vi"}, aligned=True
    )
    assert run_setup.torchmark == __version__
    assert (run_setup.targets, run_setup.sampling, run_setup.aligned) == (TWO, COUNTING, True)
    assert run_setup.folder == os.getcwd()
    assert run_setup.variables == (("LANG", "C"), ("OMP_NUM_THREADS", "2"))
    assert all(map(os.path.isabs, run_setup.path))
