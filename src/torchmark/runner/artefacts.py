"""TorchScript models on the disk: made once for each torch, shared by all that need them, gone with the last of these.

The paths are always the same, so that compiled C++ that loads a model is found again in the cache.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.model.case import Artefact, Case
from torchmark.model.job import Place, ScriptJob
from torchmark.model.outcome import Failure
from torchmark.model.sdk import Sdk
from torchmark.runner.folders import cache_folder
from torchmark.runner.persisting import persist
from torchmark.runner.worker import Worker


class Models:
    """A folder of models, made when the first is needed; open as long as it is used, by any number of processes.

    A lock tells whether it is in use. Whoever is the last to close removes the folder; what a killed process has left
    is removed by the next that closes.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.folder = cache_folder(environ) / "models"
        self._lock = -1
        self._owner = os.getpid()

    def open(self) -> None:
        """Make the folder and keep others from removing it. SetupError if it cannot be made."""
        if self._lock >= 0:
            return
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            # Waits for as long as another process takes to remove the folder.
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"The cache {self.folder.parent} cannot be written: {error.strerror}.",
                missing="cache",
                advice="Name another folder in TORCHMARK_CACHE.",
            ) from error

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        # A fork of this process has the same lock, and must not take the folder away.
        if self._lock < 0 or os.getpid() != self._owner:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self.folder, ignore_errors=True)
        except BlockingIOError:
            pass  # somebody else needs it
        finally:
            os.close(self._lock)
            self._lock = -1

    def place(self, artefact: Artefact, sdk: Sdk) -> Path:
        """Where a model for a torch is, or would be."""
        torch = hashlib.sha256(f"{sdk.version} {sdk.git_version}".encode()).hexdigest()[:8]
        return self.folder / f"{Path(artefact.file).stem}_{torch}.pt"

    def make(self, artefacts: Iterable[Artefact], worker: Worker) -> dict[Artefact, str | Failure]:
        """The path of each, made by the worker's torch unless it is there."""
        return {artefact: self._make_one(artefact, worker) for artefact in dict.fromkeys(artefacts)}

    def _make_one(self, artefact: Artefact, worker: Worker) -> str | Failure:
        def attempt() -> str | Failure:
            self.open()
            path = self.place(artefact, worker.sdk)
            if path.exists():
                return str(path)
            reply = worker.run(ScriptJob(artefact.source, str(path), Place(os.getcwd())))
            return _explain(reply) if isinstance(reply, Failure) else str(path)

        return persist(attempt)


def insert_path(case: Case, path: str) -> Case:
    """The case with the path of its model where so far only the model's name stood."""
    assert case.artefact is not None
    # A literal of JSON means the same in Python and in C++.
    old, new = f'"{case.artefact.file}"', json.dumps(path, ensure_ascii=False)
    args = dataclasses.replace(case.args, setup=case.args.setup.replace(old, new))
    check = case.check and dataclasses.replace(case.check, setup=case.check.setup.replace(old, new))
    return dataclasses.replace(case, args=args, check=check)


def _explain(failure: Failure) -> Failure:
    return dataclasses.replace(failure, message=f"There is no TorchScript of this model: {failure.message}")
