"""What the last self-test here has shown: one small file in the cache. What cannot be read is as good as none."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.model.selftest import SelfTest
from torchmark.store.plain import from_plain, to_plain

FILE = "selftest.json"


def write_selftest(folder: Path, test: SelfTest) -> Path:
    """Keep it; it appears as a whole."""
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Processes of two containers may have the same number.
        handle, unfinished = tempfile.mkstemp(prefix=f"{FILE}.", dir=folder)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(json.dumps(to_plain(test), indent=2, sort_keys=True) + "\n")
            os.replace(unfinished, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
            raise
    except OSError as error:
        raise StoreError(f"The result of the self-test cannot be kept in {folder}: {error.strerror}.") from error
    return path


def read_selftest(folder: Path, cpu_model: str | None) -> SelfTest | None:
    """What is known of machines with this processor."""
    with contextlib.suppress(OSError, ValueError, RecursionError, StoreError):
        test = from_plain(SelfTest, json.loads((folder / FILE).read_text()), "selftest")
        return test if test.cpu_model == cpu_model else None
    return None
