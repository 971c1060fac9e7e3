from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.errors import SetupError, UsageError
from torchmark.files import cache_folder, locate_cache
from torchmark.model.environment import Sdk
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.model.plan import Artefact, AutogradMode, AutoLabels, Case, Check, RuntimeMode, TimerArgs
from torchmark.model.task import Language
from torchmark.native.cache import DEFAULT_LIMIT_BYTES
from torchmark.runner import prepare
from torchmark.runner.machine import read_available_memory
from torchmark.runner.prepare import (
    Models,
    clear_cache,
    count_jobs,
    has_compiler,
    insert_path,
    inspect_cache,
    open_cache,
)

SDK = Sdk(
    python="python",
    folder="/torch",
    version="2.0",
    git_version="abc",
    cxx11_abi=True,
    cxx_flags="",
    cxx_standard=17,
    python_include=None,
)
MODEL = Artefact("torchscript_m_123.pt", "jit_model = 1")


class FakeWorker:
    sdk = SDK

    def __init__(self, outcome: object = None) -> None:
        self.jobs: list[object] = []
        self._outcome = outcome

    def run(self, job: object) -> object:
        self.jobs.append(job)
        Path(job.path).touch() if self._outcome is None else None  # type: ignore[attr-defined]
        return self._outcome


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TORCHMARK_CACHE": str(tmp_path)}


def test_a_model_is_made_once_and_its_folder_goes_with_the_last_that_uses_it(environ: dict[str, str]) -> None:
    worker = FakeWorker()
    with Models(environ) as one:
        with Models(environ) as two:
            assert not one.folder.exists()
            paths = [models.make([MODEL, MODEL], worker)[MODEL] for models in (one, two)]  # type: ignore[arg-type]
            assert len(worker.jobs) == 1
            assert paths[0] == paths[1]
        assert one.folder.exists()
    assert not one.folder.exists()


def test_a_path_is_the_same_every_time_and_another_for_another_torch(environ: dict[str, str]) -> None:
    with Models(environ) as one:
        first = one.place(MODEL, SDK)
    with Models(environ) as two:
        assert two.place(MODEL, SDK) == first
        assert (
            two.place(
                MODEL,
                Sdk(
                    python="python",
                    folder="/torch",
                    version="2.1",
                    git_version="abc",
                    cxx11_abi=True,
                    cxx_flags="",
                    cxx_standard=17,
                    python_include=None,
                ),
            )
            != first
        )


def test_a_model_that_is_refused_is_a_failure_that_says_so(environ: dict[str, str]) -> None:
    refused = Failure(FailureKind.RAISED, "NotSupportedError: lambda")
    with Models(environ) as models:
        outcome = models.make([MODEL], FakeWorker(refused))[MODEL]  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)
    assert outcome.message == "There is no TorchScript of this model: NotSupportedError: lambda"


def test_a_folder_that_cannot_be_made_is_a_failure_of_those_that_need_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Models({"TORCHMARK_CACHE": str(tmp_path / "file")}) as models:
        outcome = models.make([MODEL], FakeWorker())[MODEL]  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.MISSING
    assert "TORCHMARK_CACHE" in outcome.message


def test_a_killed_process_leaves_a_folder_that_the_next_one_removes(environ: dict[str, str]) -> None:
    code = "import os, signal; from torchmark.runner.prepare import Models\n"
    code += (
        "models = Models(os.environ); models.open(); (models.folder / 'torchscript_m_123_0123abcd.pt.draft').touch()\n"
    )
    code += "os.kill(os.getpid(), signal.SIGKILL)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environ}, check=False)
    with Models(environ) as models:
        models.open()
        assert (models.folder / "torchscript_m_123_0123abcd.pt.draft").exists()
    assert not models.folder.exists()


def test_a_fork_does_not_take_the_folder_away(environ: dict[str, str]) -> None:
    with Models(environ) as models:
        models.open()
        pid = os.fork()
        if pid == 0:
            models.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert models.folder.exists()


@pytest.mark.parametrize("path", ["/a/b.pt", '/a "quoted"\\back/ümlaut.pt'])
def test_the_path_is_a_literal_in_python_and_stands_in_all_texts(path: str) -> None:
    labels = AutoLabels(RuntimeMode.JIT, AutogradMode.FORWARD, Language.PYTHON)
    load = f'jit_model = load("{MODEL.file}")'
    case = insert_path(Case(("m",), labels, TimerArgs("1", load), artefact=MODEL, check=Check("1", load)), path)
    assert case.check is not None
    for text in (case.args.setup, case.check.setup):
        found: list[str] = []
        exec(text, {"load": found.append})
        assert found == [path]


def test_a_worker_that_is_killed_is_no_fault_of_the_model(environ: dict[str, str]) -> None:
    worker = FakeWorker(Failure(FailureKind.CRASHED, "The process was ended by SIGKILL."))
    with Models(environ) as models:
        outcome = models.make([MODEL], worker)[MODEL]  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)
    assert may_pass_later(outcome)
    assert len(worker.jobs) == 2


def test_files_of_the_user_stay_where_they_are(tmp_path: Path, environ: dict[str, str]) -> None:
    for folder in (tmp_path, tmp_path / "torchmark"):
        (folder / "models").mkdir(parents=True)
        (folder / "models" / "my_finetuned_llm.pt").touch()
    with Models(environ) as models:
        path = models.make([MODEL], FakeWorker())[MODEL]  # type: ignore[arg-type]
        assert Path(str(path)).exists()
    assert not Path(str(path)).exists()
    for folder in (tmp_path, tmp_path / "torchmark"):
        assert os.listdir(folder / "models") == ["my_finetuned_llm.pt"]


def test_a_model_that_another_user_has_put_there_is_made_anew(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = FakeWorker()
    with Models(environ) as models:
        models.open()
        path = models.place(MODEL, SDK)
        path.touch()
        path.chmod(0o666)
        assert models.make([MODEL], worker) == {MODEL: str(path)}  # type: ignore[arg-type]
        path.chmod(0o644)
        assert models.make([MODEL], worker) == {MODEL: str(path)}  # type: ignore[arg-type]
        assert len(worker.jobs) == 1
        monkeypatch.setattr(models, "open", lambda: None)
        give_away(path, monkeypatch)
        models.make([MODEL], worker)  # type: ignore[arg-type]
        assert len(worker.jobs) == 2


def test_without_locks_models_are_made_and_nobodys_are_removed(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with Models(environ) as models:
        path = models.make([MODEL], FakeWorker())[MODEL]  # type: ignore[arg-type]
        assert Path(str(path)).exists()
    assert Path(str(path)).exists()
    Models(environ).clear()
    assert not models.folder.exists()


def test_whoever_keeps_others_from_the_folder_is_named_and_the_next_attempt_begins_anew(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "LONGEST_REMOVAL_S", 0.0)
    with Models(environ) as models:
        holder = Models(environ)
        holder.open()
        fcntl.flock(holder._lock, fcntl.LOCK_EX)
        for _ in range(2):
            with pytest.raises(SetupError, match="has been held"):
                models.open()
        fcntl.flock(holder._lock, fcntl.LOCK_SH)
        models.open()
        assert models.folder.is_dir()
        holder.close()
        assert models.folder.is_dir()


def test_a_folder_that_is_removed_meanwhile_is_no_fault_of_the_model(environ: dict[str, str]) -> None:
    with Models(environ) as models:

        class Remover(FakeWorker):
            def run(self, job: object) -> object:
                models.folder.rmdir()
                return Failure(FailureKind.RAISED, "FileNotFoundError")

        outcome = models.make([MODEL], Remover())[MODEL]  # type: ignore[arg-type]
    assert isinstance(outcome, Failure)
    assert may_pass_later(outcome)


@pytest.mark.parametrize(
    ("memory", "jobs"), [(None, 4), (100 * 1024**3, 4), (5 * 1024**3, 2), (2 * 1024**3, 1), (1000, 1)]
)
def test_compilers_run_one_a_core_as_far_as_memory_goes(
    memory: int | None, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "read_available_memory", lambda: memory)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert count_jobs() == jobs


def test_the_cache_is_where_and_as_large_as_the_environment_says(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path)}
    assert open_cache(environ).folder == tmp_path / "snippets"
    assert open_cache(environ).limit_bytes == DEFAULT_LIMIT_BYTES
    assert open_cache({**environ, "TORCHMARK_CACHE_SIZE": "5M"}).limit_bytes == 5 * 1024**2
    with pytest.raises(UsageError, match="is not a size"):
        open_cache({**environ, "TORCHMARK_CACHE_SIZE": "five"})


def test_the_cache_can_be_looked_at_before_it_is_there(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path / "none")}
    assert inspect_cache(environ).snippets == 0
    assert clear_cache(environ).size_bytes == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("files", "bytes_left"),
    [
        ({}, None),
        ({"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   2048 kB\n"}, 2048 * 1024),
        ({"proc/meminfo": "MemAvailable: 2048 kB\n", "sys/fs/cgroup/memory.max": "max\n"}, 2048 * 1024),
        (
            {
                "proc/meminfo": "MemAvailable: 2048 kB\n",
                "sys/fs/cgroup/memory.max": "5000\n",
                "sys/fs/cgroup/memory.current": "4000\n",
            },
            1000,
        ),
    ],
)
def test_memory_is_what_machine_and_group_leave(tmp_path: Path, files: dict[str, str], bytes_left: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_available_memory(tmp_path) == bytes_left


@pytest.mark.parametrize(
    ("variables", "there"),
    [({}, True), ({"CXX": "mine -O1"}, True), ({"CXX": "other"}, False), ({"CXX": "'open"}, False)],
)
def test_a_compiler_is_there_if_the_users_own_or_a_usual_one_is(
    tmp_path: Path, variables: dict[str, str], there: bool
) -> None:
    for name in ("g++", "mine"):
        (tmp_path / name).touch(0o755)
    assert has_compiler({"PATH": str(tmp_path), **variables}) is there
    assert not has_compiler({"PATH": str(tmp_path / "empty"), **variables})


def test_clearing_removes_what_torchmark_has_compiled_and_nothing_else(tmp_path: Path) -> None:
    environ = {"TORCHMARK_CACHE": str(tmp_path)}
    folder = cache_folder(environ)
    own = [
        f"snippets/{'0a' * 16}.so",
        f"shipping/{'0a' * 16}.so",
        "models/torchscript_m_123_0123abcd.pt",
        f"watched-{'0a' * 8}.so",
        f"frames-{'0b' * 8}.so",
        f"lowering-{'0a' * 8}/g++",
    ]
    users = ["snippets/mylib.so", "models/my_finetuned_llm.pt", "watched-birds.so", "notes.txt", "shipping/a.prelude/x"]
    for name in (*own, *users):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("torn")
    (folder / "models.lock").touch(0o600)
    assert clear_cache(environ).snippets == 1
    assert [name for name in own if (folder / name).exists()] == []
    assert [name for name in users if not (folder / name).exists()] == []
    assert locate_cache(environ) == folder
