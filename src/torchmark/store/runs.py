"""The store of runs: one file, to which several processes may write at once, each result as soon as it exists."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import hmac
import json
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from torchmark.errors import StoreError, UsageError
from torchmark.files import make_private_folder, name_draft
from torchmark.model.environment import Environment
from torchmark.model.outcome import Activity, Failure, FailureKind, Outcome, may_pass_later
from torchmark.model.plain import to_plain
from torchmark.model.plan import Case, Metric, Order, Plan, Sampling
from torchmark.model.run import Run, RunEntry, RunInfo
from torchmark.processes import this_process
from torchmark.store import rows
from torchmark.store.database import Database, StoreLost
from torchmark.store.documents import OutcomeBody, join_outcome, join_result, read_part, split_outcome
from torchmark.store.plain import dump, from_plain, parse
from torchmark.store.store_file import open_database

SHORTEST_PREFIX = 4
_BACK = re.compile(r"@(\d{0,9})")
# How many names an error lists.
_SOME = 5


def find_run(infos: Sequence[RunInfo], reference: str) -> RunInfo:
    """The run of a name, or of the beginning of its id, or `@` for the newest and `@1` for the one before.

    `infos` are all there are, the newest first. Of several runs of one name the newest is meant.
    """
    if not infos:
        raise UsageError("There are no runs in the store yet.")
    if match := _BACK.fullmatch(reference):
        back = int(match[1] or 0)
        if back < len(infos):
            return infos[back]
        raise UsageError(f"There is no {reference}: the oldest run is @{len(infos) - 1}.")
    for info in infos:
        if info.name == reference:
            return info
    begun = [info for info in infos if info.id.startswith(reference.lower())]
    if len(reference) < SHORTEST_PREFIX or not begun:
        raise UsageError(f"There is no run {reference!r}. {_suggest(infos, reference)}")
    if len(begun) > 1:
        raise UsageError(f"{reference!r} is the beginning of several runs: {_list(begun)}. Give more of it.")
    return begun[0]


def _suggest(infos: Sequence[RunInfo], reference: str) -> str:
    near = difflib.get_close_matches(reference, list(dict.fromkeys(info.name for info in infos)), n=_SOME)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"There is {_list(infos)}. @ is the newest."


def _list(infos: Sequence[RunInfo]) -> str:
    texts = [f"{info.name!r} ({info.id[:8]})" for info in infos[:_SOME]]
    rest = len(infos) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest else "")


class Recorder(contextlib.AbstractContextManager["Recorder"]):
    """A run that this process is at. Whatever `append` has returned from is safe.

    Another process cannot be at the same run meanwhile. Should this one be taken for dead, because it is in another
    container, and the run be taken from it, then it is told at its next outcome, and nothing is mixed.
    """

    def __init__(
        self, database: Database, run_id: str, plan: Plan, subjects: dict[Case, int], missing: tuple[Order, ...]
    ) -> None:
        self._database = database
        self._id = run_id
        self._plan = plan
        self._subjects = subjects
        self._owner = this_process()
        self._missing = dict.fromkeys(missing)

    def __exit__(self, *_: object) -> None:
        try:
            with self._database.transaction():
                self._database.change(
                    "UPDATE runs SET writer = NULL WHERE id = ? AND writer = ?", self._id, rows.write_owner(self._owner)
                )
        except StoreError as error:
            # The run counts as left when this process has ended.
            if isinstance(error, StoreLost):
                raise

    @property
    def info(self) -> RunInfo:
        return rows.read_info(self._database, self._id)

    @property
    def missing(self) -> tuple[Order, ...]:
        """The orders that are to be carried out, in the order of the plan."""
        return tuple(self._missing)

    def append(self, event: Outcome | Activity) -> Outcome | Activity:
        """Save this; an outcome takes the place of an earlier one of its order. Gives what was saved: a failure in
        place of an outcome that could not be read again."""
        if isinstance(event, Outcome):
            event = _make_readable(event)
        with self._database.transaction():
            run = self._find_own_run()
            if isinstance(event, Activity):
                rows.put_activity(self._database, run, event)
            else:
                rows.put_planned_outcome(self._database, run, self._plan, self._subjects, event)
        if isinstance(event, Outcome):
            self._missing.pop(event.order, None)
        return event

    def finish(self) -> None:
        """Note that the run is complete, if it is."""
        if self._missing:
            return
        with self._database.transaction():
            run = self._find_own_run()
            self._database.change("UPDATE runs SET finished = ? WHERE number = ?", time.time(), run)

    def _find_own_run(self) -> int:
        for number, writer in self._database.rows("SELECT number, writer FROM runs WHERE id = ?", self._id):
            if writer == rows.write_owner(self._owner):
                return int(number)
            raise StoreError(f"The run {self._id} has been taken over by another process.")
        raise StoreError(f"The run {self._id} has been removed from the store.")


def _make_readable(outcome: Outcome) -> Outcome:
    """The outcome, if what is written of it can be read again; else one that says why not.

    One that cannot be read would take all others of its run with it.
    """
    try:
        body, parts = split_outcome(outcome)
        if outcome.environment is not None:
            from_plain(Environment, to_plain(outcome.environment), "environment")
        large = {role: read_part(role, part) for role, part in parts.items()}
        moments = outcome.began, outcome.ended
        join_outcome(from_plain(OutcomeBody, body, "outcome"), outcome.order, large, moments, outcome.environment)
    except Exception as error:
        # Of any kind: results come from other processes and other machines.
        message = f"The result cannot be kept: {type(error).__name__}: {error}"
        now = time.time()
        return Outcome(outcome.order, Failure(FailureKind.NO_RESULT, message), now, now)
    return outcome


def _drop_timed_out(database: Database, run: int) -> None:
    """Forget what took too long: it is given more time now."""
    for number, body in database.rows("SELECT number, body FROM outcomes WHERE run = ? AND failed = 1", run):
        if _read_failure(body).kind is FailureKind.TIMED_OUT:
            database.change("DELETE FROM outcomes WHERE number = ?", number)


def refuse_running(database: Database, run_id: str) -> None:
    """Leave a run alone that a living process is at."""
    writer = rows.read_writer(database, run_id)
    if writer is not None:
        raise UsageError(f"The run {run_id} is being run by process {writer.pid}. Wait until it ends, or stop it.")


def _find_missing(database: Database, run: int, plan: Plan, subjects: dict[Case, int]) -> tuple[Order, ...]:
    rows = database.rows(
        "SELECT subject, target, metric, round, CASE WHEN failed THEN body END FROM outcomes "
        "WHERE run = ? AND planned = 1",
        run,
    )
    done = {tuple(place) for *place, body in rows if body is None or not may_pass_later(_read_failure(body))}
    targets = {target: dump(to_plain(target)) for target in plan.targets}
    return tuple(
        order
        for order in plan.orders
        if (subjects[order.case], targets[order.target], order.metric.value, order.round) not in done
    )


def _read_failure(body: str) -> Failure:
    result = join_result(from_plain(OutcomeBody, parse(body, "outcome"), "outcome").result, {})
    if not isinstance(result, Failure):
        raise StoreError("It is damaged: an outcome that is noted as a failure is none.")
    return result


def open_store(path: Path, *, create: bool = False, read_only: bool = False) -> Store:
    """Open the store in a file, and with `create` make it, and its folder, where there is none.

    What is no store of ours, or a newer one, or damaged, is refused with a StoreError and left as it is. A store of an
    earlier version is brought up to date, on the disk only where it is opened for writing.
    """
    return Store(open_database(path, create=create, read_only=read_only))


class Store(contextlib.AbstractContextManager["Store"]):
    """An open store. For one thread; others open it themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.path = database.path
        self.left = database.left
        """Files of an earlier store of the same name that were beside it when it was made, by their new names."""

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def begin(self, plan: Plan, info: RunInfo) -> Recorder:
        """Start a run. What `info` says of orders and outcomes is not heeded: they are counted."""
        with self._database.transaction():
            _, subjects = rows.put_run(self._database, info, plan, this_process())
        return Recorder(self._database, info.id, plan, subjects, plan.orders)

    def resume(self, run_id: str, plan: Plan) -> Recorder:
        """Go on with a run, by a plan that may have changed.

        Outcomes of cases that are still defined as they were stay. Those of cases that are defined otherwise now are
        removed, and those of cases that are no longer planned are set aside, for a plan that has them again.
        """
        database = self._database
        with database.transaction():
            refuse_running(database, run_id)
            run = rows.read_number(database, run_id)
            if plan.sampling.timeout_s > rows.read_sampling(database, run).timeout_s:
                _drop_timed_out(database, run)
            subjects = rows.put_plan(database, run, plan)
            rows.drop_unused(database)
            missing = _find_missing(database, run, plan, subjects)
            database.change(
                "UPDATE runs SET writer = ?, finished = CASE WHEN ? THEN NULL ELSE finished END WHERE number = ?",
                rows.write_owner(this_process()),
                bool(missing),
                run,
            )
        return Recorder(database, run_id, plan, subjects, missing)

    def list_runs(self) -> tuple[RunInfo, ...]:
        with self._database.snapshot():
            return rows.read_infos(self._database)

    def list_entries(self) -> tuple[RunEntry, ...]:
        """All runs, with what else a list of them shows, the newest first."""
        with self._database.snapshot():
            return rows.read_entries(self._database)

    def find(self, reference: str) -> RunInfo:
        """The run that is meant by a name, the beginning of an id, or `@`, `@1` and so on from the newest."""
        return find_run(self.list_runs(), reference)

    def load(
        self,
        run_id: str,
        *,
        profiles: bool = False,
        select: Callable[[Case], bool] | None = None,
        names: Collection[tuple[str, str]] | None = None,
    ) -> Run:
        """A run with its outcomes; costs by function, which are large, only with `profiles`.

        With `select` plan and outcomes are of those cases alone. What `info` counts is of the whole run all the same.
        So it is with `names`, the suites and keys of few cases: this takes no longer for a run that has many others.
        """
        with self._database.snapshot():
            return rows.read_run(self._database, run_id, profiles=profiles, select=select, names=names)

    def durations(self, sampling: Sampling) -> Mapping[tuple[str, str, Metric], float]:
        """How many seconds cases take by this sampling, by suite, key and metric, as far as any has been measured."""
        with self._database.snapshot():
            return rows.read_durations(self._database, sampling)

    def add(self, run: Run) -> RunInfo:
        """Keep a run that was made elsewhere."""
        with self._database.transaction():
            number, subjects = rows.put_run(self._database, run.info, run.plan, None)
            for outcome in run.outcomes:
                rows.put_planned_outcome(self._database, number, run.plan, subjects, outcome)
            for activity in run.activities:
                rows.put_activity(self._database, number, activity)
            return rows.read_info(self._database, run.info.id)

    def remove(self, run_ids: Iterable[str]) -> None:
        """Remove runs, and give back to the disk what only they had; none of them if one cannot be removed."""
        with self._database.transaction():
            for run_id in run_ids:
                number = rows.read_number(self._database, run_id)
                refuse_running(self._database, run_id)
                self._database.change("DELETE FROM runs WHERE number = ?", number)
            rows.drop_unused(self._database)
        # Others who use the file may be in the way; then it shrinks another time.
        with contextlib.suppress(StoreError):
            self._database.shrink()


def make_unmistakable(store: Store, info: RunInfo) -> RunInfo:
    """Without its name if that means another run: commands that are proposed must mean this one."""
    named = [other for other in store.list_runs() if other.name == info.name]
    # What others have called a run may look like something else on a command line.
    clear = info.name[:1] not in ("@", "-", "") and named[0].id == info.id
    return info if clear else dataclasses.replace(info, name="")


DEFAULT_STORE = Path(".torchmark/results.db")


# As long as what SHA-256 gives: a longer key makes an HMAC no stronger (RFC 2104, section 3).
KEY_BYTES = 32
_KEY_FILE = "seal.key"


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
    for variable, below in (("XDG_STATE_HOME", ""), ("HOME", ".local/state")):
        if os.path.isabs(environ.get(variable, "")):
            return Path(environ[variable], below, "torchmark")
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
        make_private_folder(folder.parent)
        make_private_folder(folder)
        place = _open_private(folder, os.O_RDONLY | os.O_DIRECTORY, stack)
        if place is None:
            return None
        draft = name_draft(folder).name
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
    return number if found.st_uid == os.geteuid() and not found.st_mode & 0o077 else None
