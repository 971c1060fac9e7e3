"""Seals, by which a user knows again what they wrote themselves: an HMAC with a key that only they can read."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import platform
import secrets
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

# As long as what SHA-256 gives: a longer key makes an HMAC no stronger (RFC 2104, section 3).
KEY_BYTES = 32
_KEY_FILE = "seal.key"
_FOR_OTHERS = 0o077


def seal(what: Sequence[object], environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """A seal over plain values and the identity of this machine; empty where the user's key cannot be kept safely."""
    key = _read_key(environ) or _make_key(environ)
    return "" if key is None else _compute(key, what, root)


def is_sealed(found: str, what: Sequence[object], environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this is the seal that `seal` gives for the same values. Makes no key."""
    key = _read_key(environ)
    return key is not None and hmac.compare_digest(found.encode(errors="replace"), _compute(key, what, root).encode())


def _compute(key: bytes, what: Sequence[object], root: Path) -> str:
    # In ASCII, so that names of files that are not UTF-8 can be sealed too.
    text = json.dumps([*_identify_machine(root), *what], sort_keys=True)
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


def _identify_machine(root: Path) -> list[str]:
    """The name of the machine, which may be shared by several, and the number that systemd gave it."""
    try:
        number = (root / "etc/machine-id").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        number = ""
    return [platform.node(), number]


def _find_folder(environ: Mapping[str, str]) -> Path | None:
    """The user's folder for what programs remember. The convention demands an absolute path and ignores others."""
    if os.path.isabs(environ.get("XDG_STATE_HOME", "")):
        return Path(environ["XDG_STATE_HOME"], "torchmark")
    if os.path.isabs(environ.get("HOME", "")):
        return Path(environ["HOME"], ".local", "state", "torchmark")
    return None


def _read_key(environ: Mapping[str, str]) -> bytes | None:
    """The key; None if there is none, or if others could have read or written it."""
    folder = _find_folder(environ)
    if folder is None:
        return None
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        place = _open_private(folder, os.O_RDONLY | os.O_DIRECTORY, stack)
        file = None if place is None else _open_private(_KEY_FILE, os.O_RDONLY | os.O_NONBLOCK, stack, place)
        if file is not None and stat.S_ISREG(os.fstat(file).st_mode):
            key = os.read(file, KEY_BYTES + 1)
            return key if len(key) == KEY_BYTES else None
    return None


def _make_key(environ: Mapping[str, str]) -> bytes | None:
    """A new key, or the one that another process made meanwhile. A file that is there already is not touched."""
    folder = _find_folder(environ)
    if folder is None:
        return None
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        place = _open_private(folder, os.O_RDONLY | os.O_DIRECTORY, stack)
        if place is None:
            return None
        draft = f".{secrets.token_hex(8)}.part"
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
        stack.callback(os.unlink, draft, dir_fd=place)
        with open(number, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(number)
        with contextlib.suppress(FileExistsError):
            os.link(draft, _KEY_FILE, src_dir_fd=place, dst_dir_fd=place)
    return _read_key(environ)


def _open_private(path: str | Path, flags: int, stack: contextlib.ExitStack, place: int | None = None) -> int | None:
    """A descriptor of a file or folder that belongs to the user alone, and is not a link; else None."""
    number = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    stack.callback(os.close, number)
    found = os.fstat(number)
    return number if found.st_uid == os.geteuid() and not found.st_mode & _FOR_OTHERS else None
