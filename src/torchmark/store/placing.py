"""A new store in place of whatever has its name: made under another one, and put in place when it is complete."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmark.errors import StoreError, UsageError
from torchmark.store.database import BESIDE, Database, clear_beside
from torchmark.store.opening import open_database

# To wait for others, who should not be there.
_BUSY_MS = 1000


@contextlib.contextmanager
def new_store(path: Path, *, force: bool) -> Iterator[Database]:
    """A store to fill. It gets its name at the end, and if anything is raised before, nothing has happened.

    With `force` another store of that name is replaced, unless a process uses it.
    """
    path = Path(os.path.realpath(path))
    check_free(path, force=force)
    draft = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with _naming(path, draft):
            # What is said to be saved is on the disk, so closing it is enough.
            with contextlib.closing(open_database(draft, create=True, read_only=False)) as database:
                yield database
            check_free(path, force=force)
            _put_in_place(draft, path)
    finally:
        for suffix in ("", *BESIDE):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(f"{draft}{suffix}")


def check_free(path: Path, *, force: bool) -> None:
    """Refuse a name that is taken; with `force`, only by something that is no store."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder. Name a file in it, such as {path / 'results.db'}.")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already. Choose another name, or replace it with --force.")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not an ordinary file, and is not replaced. Choose another name.")
    if path.exists() and path.stat().st_size:
        open_database(path, create=False, read_only=True).close()


def refuse_same(path: Path, others: Sequence[Path]) -> None:
    """Refuse to write to a file that is read."""
    for other in others:
        if os.path.realpath(path) == os.path.realpath(other) or (path.exists() and path.samefile(other)):
            raise UsageError(f"{path} is one of the stores that are read. Choose another name.")


@contextlib.contextmanager
def _naming(path: Path, draft: Path) -> Iterator[None]:
    """Tell of the file that is to be, and not of the one that will be gone."""
    try:
        yield
    except StoreError as error:
        raise StoreError(str(error).replace(str(draft), str(path))) from error


def _put_in_place(draft: Path, path: Path) -> None:
    if path.exists() and path.stat().st_size:
        _retire(path)
    try:
        clear_beside(path)
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"{path}: It cannot be written: {error.strerror}.") from error


def _retire(path: Path) -> None:
    """See that nobody uses a store, and that nothing of it is kept beside it."""
    with contextlib.closing(open_database(path, create=False, read_only=False)) as database:
        try:
            database.retire(_BUSY_MS)
        except StoreError as error:
            raise UsageError(f"{path} is in use. Wait until nobody uses it, or choose another name.") from error
