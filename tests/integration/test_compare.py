"""`torchmark compare` and `accept` with real counts: fifty instructions more are found, named and accepted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.in_process import Program
from torchmark.model.costs import Tally
from torchmark.store.runs import open_store

GATE = ("--fail-on", "slower", "--limit", "Ir:0")
CASE = "planted, Python"
PLANTED = 50
# None needs memory; each takes a few instructions more than another, how many depends on who compiled Python.
LIGHT, *OTHERS = "y = x", "y = 1", "x", "x, y = x, x", "y = x is x"
BODIES = {f"{n} of {kind}": [kind] * n + [LIGHT] * (9 - n) for kind in OTHERS for n in range(9)}

pytestmark = pytest.mark.usefixtures("counting_worker")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def write_function(folder: Path, module: str, body: list[str]) -> None:
    lines = ["def f(x):", *(f"    {line}" for line in body), "    return x"]
    path = folder / f"{module}.py"
    path.write_text("\n".join(lines) + "\n")
    # Python knows a file by its size and by the second of its last change, and these may be those of the one before.
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


def write_suite(folder: Path, modules: dict[str, str]) -> None:
    texts = [f"    {label!r}: TimerArgs('f(1)', 'from {module} import f')," for label, module in modules.items()]
    (folder / "bench_it.py").write_text("\n".join(["from torchmark import TimerArgs\nBENCHMARKS = {", *texts, "}\n"]))


def count(program: Program, name: str, layouts: int = 3) -> None:
    done = program("run", "bench_it.py", "--metric", "count", "--layouts", str(layouts), "--name", name, "-q")
    assert done.returncode == 0, done.stderr


def read_counts(folder: Path) -> dict[str, float]:
    with open_store(folder / ".torchmark/results.db", read_only=True) as store:
        outcomes = store.load(store.list_runs()[0].id).outcomes
    found = {one.order.case.label[0]: one.result for one in outcomes}
    return {label: one.total / one.number for label, one in found.items() if isinstance(one, Tally)}


@pytest.fixture(scope="module")
def bodies() -> dict[str, list[str]]:
    """Filled by the first test: what the function looks like before, and with fifty instructions more."""
    return {}


@pytest.fixture
def plant(program: Program, folder: Path, bodies: dict[str, list[str]]) -> Callable[..., None]:
    """Counts a function in a run, before or after the regression; how that is done is found by counting."""
    if not bodies:
        for number, body in enumerate(BODIES.values()):
            write_function(folder, f"candidate_{number}", body)
        write_suite(folder, {label: f"candidate_{number}" for number, label in enumerate(BODIES)})
        # What needs no memory takes the same in each layout.
        count(program, "candidates", layouts=1)
        counts = read_counts(folder)
        pairs = [(a, b) for a, b in itertools.permutations(counts, 2) if counts[b] - counts[a] == PLANTED]
        assert pairs, counts
        before, after = pairs[0]
        bodies |= {"before": BODIES[before], "after": BODIES[after]}
    write_suite(folder, {"planted": "planted", "steady": "steady"})
    write_function(folder, "steady", [LIGHT])

    def run(which: str, name: str | None = None) -> None:
        write_function(folder, "planted", bodies[which])
        count(program, name or which)

    return run


def test_fifty_instructions_more_are_found_named_and_gone_once_accepted(
    program: Program, plant: Callable[..., None]
) -> None:
    plant("before")
    plant("after")
    found = program("compare", "before", "after", *GATE)
    assert found.returncode == 3, found.stderr
    assert f"{CASE} takes 50 instructions" in found.stdout
    assert "_PyEval_EvalFrameDefault +50" in found.stdout
    assert "steady, Python takes" not in found.stdout
    assert f"torchmark accept '{CASE}' --why" in found.stdout

    accepted = program("accept", CASE, "--why", "It does more now.")
    assert accepted.returncode == 0, accepted.stderr
    again = program("compare", "before", "after", *GATE)
    assert again.returncode == 0, again.stdout
    assert "regression" not in again.stdout


def test_the_ledger_alone_stops_what_grew_and_asks_to_accept_what_shrank(
    program: Program, plant: Callable[..., None], folder: Path
) -> None:
    plant("after")
    assert program("accept", "planted or steady", "--all", "--why", "The first.", "--ledger", "ours").returncode == 0
    assert len(list((folder / "ours").iterdir())) == 2
    plant("before")
    better = program("compare", "after", "before", "--ledger", "ours")
    assert better.returncode == 0, better.stdout
    assert f"{CASE} takes 50 instructions less than accepted." in better.stdout
    assert f"torchmark accept '{CASE}' --ledger ours --why" in better.stdout

    assert program("accept", CASE, "--why", "Less to do.", "--ledger", "ours").returncode == 0
    plant("after", "worse")
    # Nothing has changed from one run to the other; it is the accepted count that is exceeded.
    worse = program("compare", "after", "worse", "--ledger", "ours", "--json", "-")
    assert worse.returncode == 3
    (regression,) = json.loads(worse.stdout)["gate"]["regressions"]
    assert (regression["case"], regression["accepted"], regression["limit"]) == (CASE, True, "Ir:0")
    assert regression["head"] - regression["base"] == PLANTED
    assert regression["functions"] == [{"function": "_PyEval_EvalFrameDefault", "delta": PLANTED}]


def test_what_is_counted_twice_is_the_same_to_the_instruction_and_another_processor_is_refused(
    program: Program, plant: Callable[..., None], folder: Path
) -> None:
    plant("before", "one")
    plant("before", "two")
    same = program("compare", "one", "two", *GATE, "--limit", "allocations:0", "--json", "-")
    assert same.returncode == 0, same.stdout
    judgements = json.loads(same.stdout)["judgements"]
    assert [(one["verdict"], one["instructions"]["delta"]) for one in judgements] == [("same", 0), ("same", 0)]

    assert program("export", "two", "--format", "json", "--output", "two.json").returncode == 0
    data = json.loads((folder / "two.json").read_text())
    data["run"] |= {"id": "f" * 32, "name": "elsewhere", "host": {**data["run"]["host"], "cpu_model": "A Fine CPU"}}
    (folder / "two.json").write_text(json.dumps(data))
    assert program("import", "two.json").returncode == 0
    refused = program("compare", "one", "elsewhere", *GATE)
    assert refused.returncode == 4
    assert refused.stdout == ""
    assert "different processors" in refused.stderr
    assert "head A Fine CPU" in " ".join(refused.stderr.split())
    forced = program("compare", "one", "elsewhere", *GATE, "--force", "--json", "-")
    assert forced.returncode == 0, forced.stdout
    for judgement in json.loads(forced.stdout)["judgements"]:
        assert [(one["kind"], one["what"]) for one in judgement["caveats"]] == [("incomparable", "cpu")]
    assert "different processors" in program("compare", "one", "elsewhere", "--force").stdout
