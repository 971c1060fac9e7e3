"""TorchScript models on the disk: made once for each torch, shared by all that need them, gone with the last of these.

The paths are always the same, so that compiled C++ that loads a model is found again in the cache.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmark.errors import SetupError
from torchmark.files import Hold, is_ours, list_holders, open_lock, try_lock
from torchmark.model.case import Artefact, Case
from torchmark.model.job import Place, ScriptJob
from torchmark.model.outcome import Failure
from torchmark.model.sdk import Sdk
from torchmark.runner.folders import MODELS, cache_folder, locate_cache
from torchmark.runner.persisting import persist
from torchmark.runner.worker import Worker

# A model for a torch, and one that is being written.
_NAME = re.compile(r"torchscript_.*_[0-9a-f]{8}\.pt(\.[a-z0-9_]+)?", re.DOTALL)
# Removing some files takes far less, unless whoever does it has been stopped.
LONGEST_REMOVAL_S = 30.0
LOOKING_INTERVAL_S = 0.05


class Models:
    """A folder of models, made when the first is needed; open as long as it is used, by any number of processes.

    A lock tells whether it is in use. Whoever is the last to close removes the models; what a killed process has left
    is removed by the next that closes. On a file system without locks they stay, until the cache is cleared.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.folder = locate_cache(environ) / MODELS
        self._lock = -1
        self._owner = os.getpid()

    def open(self) -> None:
        """Make the folder and keep others from removing it. SetupError if it cannot be made."""
        if self._lock >= 0:
            return
        self.folder = cache_folder(self._environ) / MODELS
        try:
            lock = open_lock(self.folder.with_suffix(".lock"))
            try:
                self._await_removal(lock)
                self.folder.mkdir(mode=0o700, exist_ok=True)
            except BaseException:
                os.close(lock)
                raise
            self._lock = lock
        except OSError as error:
            if isinstance(error, SetupError):
                raise
            raise SetupError(
                f"The cache {self.folder.parent} cannot be written: {error.strerror}.",
                missing="cache",
                advice="Name another folder in TORCHMARK_CACHE.",
            ) from error

    def _await_removal(self, lock: int) -> None:
        """Share the folder with others that use it; somebody who is removing it is waited for."""
        end = time.monotonic() + LONGEST_REMOVAL_S
        while try_lock(lock, fcntl.LOCK_SH) is Hold.BUSY:
            if time.monotonic() > end:
                who = ", ".join(f"process {pid}" for pid in list_holders(lock)) or "a process that cannot be seen here"
                raise SetupError(
                    f"{self.folder} has been held for {LONGEST_REMOVAL_S:g} s by {who}.",
                    missing="cache",
                    advice="End that process, or name another folder in TORCHMARK_CACHE.",
                )
            time.sleep(LOOKING_INTERVAL_S)

    def __enter__(self) -> Models:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        # A fork of this process has the same lock, and must not take the folder away.
        if self._lock < 0 or os.getpid() != self._owner:
            return
        lock, self._lock = self._lock, -1
        try:
            # Else somebody needs them, or that cannot be known.
            if try_lock(lock, fcntl.LOCK_EX) is Hold.HELD:
                _remove_models(self.folder)
        finally:
            os.close(lock)

    def clear(self) -> None:
        """Remove all models, unless somebody needs them."""
        path = self.folder.with_suffix(".lock")
        if self._lock >= 0 or not path.exists():
            return
        with contextlib.suppress(OSError):
            lock = open_lock(path)
            try:
                if try_lock(lock, fcntl.LOCK_EX) is not Hold.BUSY:
                    _remove_models(self.folder)
            finally:
                os.close(lock)

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
            if is_ours(path):
                return str(path)
            reply = worker.run(ScriptJob(artefact.source, str(path), Place(os.getcwd())))
            if isinstance(reply, Failure) and not self.folder.is_dir():
                raise SetupError(
                    f"{self.folder} was removed while it was needed.",
                    missing="cache",
                    advice="Run it again: torchmark run --resume.",
                )
            return _explain(reply) if isinstance(reply, Failure) else str(path)

        return persist(attempt)


def _remove_models(folder: Path) -> None:
    """Remove what has a name of a model, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            if _NAME.fullmatch(path.name):
                path.unlink(missing_ok=True)
        folder.rmdir()


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
