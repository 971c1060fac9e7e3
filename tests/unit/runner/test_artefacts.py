from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strangers import give_away
from torchmark.errors import SetupError
from torchmark.model.case import Artefact, AutogradMode, AutoLabels, Case, Check, RuntimeMode, TimerArgs
from torchmark.model.outcome import Failure, FailureKind, may_pass_later
from torchmark.model.sdk import Sdk
from torchmark.model.task import Language
from torchmark.runner import prepare
from torchmark.runner.prepare import Models, insert_path

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
