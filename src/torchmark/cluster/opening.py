"""From a plan to a Ray cluster that can carry it out: one that runs, or one on this machine for this command alone.

Ray is loaded here and nowhere else, and only when it is used. Where it listens is settled while it is loaded, so which
cluster is meant is decided before.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from torchmark import __version__
from torchmark.cluster.fleet import Fleet
from torchmark.cluster.parcels import Outset
from torchmark.errors import SetupError
from torchmark.files import is_ours_by
from torchmark.model.plan import Plan
from torchmark.runner.cores import choose_cores
from torchmark.runner.spec import visible_path
from torchmark.runner.variables import travels

Open = Callable[[Plan], tuple[Fleet, Outset]]
Tell = Callable[[str], None]

# Ray's own words for addresses: the cluster that runs on this machine, and a new one.
RUNNING, NEW = "auto", "local"
# A name of a host has 253 characters at most.
LONGEST_ADDRESS = 300
# How long a cluster may take to open a connection.
KNOCKING_S = 10.0
# A slot keeps workers of up to this size: see docs/clusters.md.
SLOT_BYTES = 2 << 30
# How often, and how long apart, what Ray has left is removed: its processes take some tenths of a second to end.
REMOVALS, REMOVAL_S = 30, 0.1


def open_ray(
    address: str | None,
    environ: Mapping[str, str] = os.environ,
    *,
    aligned: bool = False,
    tell: Tell = lambda _: None,
) -> Open:
    """How to connect, for a back end; `tell` hears if a cluster is started. SetupError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise SetupError("Ray is not installed:", missing="ray", advice="pip install 'torchmark[ray]'.")

    def connect(plan: Plan) -> tuple[Fleet, Outset]:
        # Before Ray is loaded: it adds to the path that modules are found by, whose length is counted.
        outset = make_outset(plan, environ, aligned=aligned)
        found = choose_address(address, environ)
        return (_start(outset, tell) if found is None else _join(found, outset)), outset

    return connect


def make_outset(plan: Plan, environ: Mapping[str, str], *, aligned: bool = False) -> Outset:
    """What nodes have to know to measure as this process would."""
    variables = tuple(sorted((name, value) for name, value in environ.items() if travels(name)))
    return Outset(
        __version__, plan.targets, plan.sampling, os.getcwd(), tuple(visible_path()), variables, aligned=aligned
    )


def choose_address(address: str | None, environ: Mapping[str, str]) -> str | None:
    """The cluster to join; None to start one. SetupError if one that runs here is asked for, and there is none."""
    named = address or environ.get("RAY_ADDRESS")
    if named == NEW:
        return None
    if named and named != RUNNING:
        return named
    # Ray itself would look for it anew, and join whatever cluster anybody runs on this machine.
    noted = _read_note(environ)
    if named == RUNNING:
        if noted is None:
            raise SetupError(
                "There is no Ray cluster to be found on this machine.",
                missing="ray",
                advice=f"Start one with 'ray start --head --resources=...', or give --address {NEW}.",
            )
        return noted
    return None if noted is None or _is_refused(noted) else noted


def _read_note(environ: Mapping[str, str]) -> str | None:
    """Where the cluster is that was started last on this machine, as Ray has noted it; None if there is no note.

    The note lies where every user may write. A cluster can have this process run anything, so only what this user or
    root has noted counts.
    """
    note = Path(environ.get("RAY_TMPDIR") or environ.get("TMPDIR") or "/tmp", "ray", "ray_current_cluster")
    text, is_ours = "", True
    with contextlib.suppress(OSError):
        is_ours = not note.is_symlink()
        with open(os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace") as file:
            is_ours = is_ours_by(os.fstat(file.fileno()))
            text = file.read(LONGEST_ADDRESS).strip()
    if not is_ours:
        raise SetupError(
            f"Other users may have written {note}, which names the Ray cluster of this machine.",
            missing="ray",
            advice=f"Name the cluster with --address, or start one for this command with --address {NEW}.",
        )
    return text or None


def _is_refused(address: str) -> bool:
    """Whether nothing listens there any more: Ray leaves the note behind when a cluster ends."""
    try:
        _knock(address)
    except ConnectionRefusedError:
        return True
    except OSError:
        # It may be there: joining it says what is wrong.
        return False
    return False


def _knock(address: str) -> None:
    """See whether anybody is there: Ray itself waits for minutes until it says that nobody is."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), KNOCKING_S):
            pass


def _join(address: str, outset: Outset) -> Fleet:
    with _explaining(
        f"There is no Ray cluster to be found at {address}:",
        "Start one with 'ray start --head --resources=...', name another one with --address, "
        f"or start one for this command with --address {NEW}.",
    ):
        if not address.startswith("ray://"):
            _knock(address)
        module = _load()
        module.connect(address)
    fleet: Fleet = module.RayFleet(outset)
    return fleet


def _start(outset: Outset, tell: Tell) -> Fleet:
    """A cluster for this command alone, which ends with the fleet, or else with this process."""
    cores, slots = count_slots()
    size = "1 slot" if slots == 1 else f"{slots} slots"
    tell(f"No running Ray cluster is joined: a local one with {size} is started on 127.0.0.1, and stopped at the end.")
    # Short, since names of sockets in it may have a hundred letters; and unknown to others, who thus do not join it.
    folder = tempfile.TemporaryDirectory(prefix="tm-ray-", dir="/tmp", ignore_cleanup_errors=True)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, folder)
        stack.enter_context(
            _explaining(
                "Ray could not be started on this machine:",
                "Measure without --backend ray, or name a cluster with --address.",
            )
        )
        os.environ.update(_make_variables(Path(folder.name)))
        module = _load()
        module.start(folder.name, cores, slots)
        stack.pop_all()
    fleet: Fleet = module.RayFleet(outset, at_end=functools.partial(_remove, folder))
    return fleet


def _remove(folder: tempfile.TemporaryDirectory[str]) -> None:
    """Processes of Ray that are about to end may still make files there."""
    for _ in range(REMOVALS):
        folder.cleanup()
        if not os.path.exists(folder.name):
            return
        time.sleep(REMOVAL_S)


def count_slots() -> tuple[int, int]:
    """How many cores this machine has for us, and on how many of them cases can be counted at once."""
    cores = len(choose_cores())
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return cores, max(1, min(cores, memory_bytes // SLOT_BYTES))


def _make_variables(folder: Path) -> dict[str, str]:
    """What Ray has to find in its environment. None of it is handed on to workers: see `runner/variables.py`."""
    # Every user of this machine can reach loopback, and whoever has this token can run anything. Without a place that
    # is named, Ray would leave one in the user's home.
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    return {
        # Ray takes the machine's address on the network unless it is told that there is no cluster, whatever else it
        # is told; then it keeps to loopback.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
    }


def _load() -> Any:
    # What this program does is nobody else's business, unless the user wants that.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return importlib.import_module("torchmark.cluster.ray_fleet")


@contextlib.contextmanager
def _explaining(failed: str, advice: str) -> Iterator[None]:
    """Say what could not be done, and what to do instead."""
    try:
        yield
    except SetupError:
        raise
    except (RuntimeError, ValueError, OSError) as error:
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise SetupError(f"{failed} {line.rstrip('.')}.", missing="ray", advice=advice) from error
