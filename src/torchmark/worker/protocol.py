"""The messages between a parent and its worker, how they become JSON and back, and how they are framed."""

from __future__ import annotations

import array
import dataclasses
import functools
import json
import os
import signal
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, Union

from torchmark.errors import WorkerError
from torchmark.model.environment import Sdk
from torchmark.model.job import CheckJob, CompileJob, CountJob, GaugeJob, Job, PairJob, RaceJob, ScriptJob, TimeJob
from torchmark.model.outcome import FailureKind, FirstCall

HEADER = struct.Struct("!I")
# Times of half a million blocks, far more than any message of ours has; a length above it is not a length but something
# else that was written there. What is read takes up to twenty times that much memory.
LARGEST_FRAME_BYTES = 16 << 20
MOST_DESCRIPTORS = 8

Plain = dict[str, Any]


def pack(message: Plain) -> bytes:
    """One frame.

    >>> pack({"a": 1})
    b'\\x00\\x00\\x00\\x07{"a":1}'
    """
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > LARGEST_FRAME_BYTES:
        raise WorkerError(f"A message of {len(text)} bytes is too large to send.", kind="garbled")
    return HEADER.pack(len(text)) + text


class Unpacker:
    """Makes messages of bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        """Whether all that was fed was complete messages."""
        return not self._buffer

    def feed(self, piece: bytes) -> list[Plain]:
        """Add a piece; gives the messages that are complete now."""
        self._buffer += piece
        messages = []
        while len(self._buffer) >= HEADER.size:
            (size,) = HEADER.unpack_from(self._buffer)
            if size > LARGEST_FRAME_BYTES:
                raise WorkerError(f"A frame of {size} bytes was announced: this is not a message.", kind="garbled")
            end = HEADER.size + size
            if len(self._buffer) < end:
                break
            messages.append(_parse(bytes(self._buffer[HEADER.size : end])))
            del self._buffer[:end]
        return messages


def _parse(text: bytes) -> Plain:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkerError(f"A message is not JSON: {error}.", kind="garbled") from None
    if not isinstance(message, dict):
        raise WorkerError("A message is not a mapping.", kind="garbled")
    return message


def send(to: socket.socket, message: Plain, descriptors: tuple[int, ...] = ()) -> None:
    """Send one frame; copies of the descriptors arrive with its first bytes."""
    data = pack(message)
    sent = 0
    if descriptors:
        rights = array.array("i", descriptors)
        sent = to.sendmsg([data[: HEADER.size]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    to.sendall(data[sent:])


def receive(source: socket.socket) -> tuple[Plain, tuple[int, ...]] | None:
    """Wait for one frame and what comes with it; None when the other side has closed."""
    descriptors = array.array("i")
    size = descriptors.itemsize
    # Not for programs that the receiver starts.
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    header, ancillary, _, _ = source.recvmsg(HEADER.size, socket.CMSG_SPACE(MOST_DESCRIPTORS * size), flags)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % size])
    header += read_exactly(source, HEADER.size - len(header)) if header else b""
    if len(header) < HEADER.size:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    (length,) = HEADER.unpack(header)
    if length > LARGEST_FRAME_BYTES:
        raise WorkerError(f"A frame of {length} bytes was announced: this is not a message.", kind="garbled")
    text = read_exactly(source, length)
    return (_parse(text), tuple(descriptors)) if len(text) == length else None


def read_exactly(source: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer when the other side closes before.

    The kernel puts the parts together, as far as it can: a worker's heap must not depend on how many there were.
    """
    data = b""
    while len(data) < size:
        piece = source.recv(size - len(data), socket.MSG_WAITALL)
        if not piece:
            break
        data += piece
    return data


REPLAY = "torchmark_replay"

DISCARDED = "discarded"


def name_layout(layout: int) -> str:
    """The name of a statement's profile in one layout."""
    return f"layout {layout}"


def describe_status(status: int) -> tuple[FailureKind, str]:
    """From what `os.waitpid` said.

    >>> describe_status(11)
    (<FailureKind.CRASHED: 'crashed'>, 'was ended by SIGSEGV')
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return FailureKind.CRASHED, f"was ended by {name}"
    code = os.WEXITSTATUS(status)
    if code:
        return FailureKind.EXITED, f"exited with code {code}"
    return FailureKind.NO_RESULT, "ended without a result"


# Raised whenever a message changes its meaning. Both sides refuse to talk to another number.
PROTOCOL = 6

# Numbers are kept as 64 bits with a sign. (NaN is not less than anything, so it is out of bounds, too.)
MOST = 2**63
# Some thirty years: no process has measured anything for longer.
LONGEST_S = 1e9
# A worker cuts what it says of a failure at 20 000 characters. Several times that is not its own words.
LONGEST_TEXT = 100_000
# The most that Linux can be told to number processes up to, and the sixteen bits of a status.
MOST_PID = 1 << 22
MOST_STATUS = 0xFFFF

_OR_NONE = " | None"
_EXPECTED = {str: "a text", bool: "true or false", int: "a whole number below 2**63", float: "a finite number"}
_SECONDS = "a number of seconds"
_SHORT = f"of at most {LONGEST_TEXT} characters"
_FAILURES = frozenset(kind.value for kind in FailureKind)


@dataclasses.dataclass(frozen=True)
class Hello:
    """The first message: how to prepare. `library` is the one with the client requests; None without Valgrind."""

    protocol: int
    scratch: str
    library: str | None = None
    sys_path: tuple[str, ...] | None = None
    checking: bool = False
    compiling: bool = False
    """Whether to get `torch.compile` ready as well."""
    scripting: bool = False
    """Whether to get the loading of TorchScript ready as well."""
    frames: str | None = None
    """The library that makes Python functions visible to Callgrind, where they are to be."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """The worker can take jobs; what it is made of."""

    protocol: int
    pid: int
    python_version: str
    torch_version: str
    torch_file: str
    cpu_capability: str | None
    debug_symbols: bool
    sdk: Sdk


@dataclasses.dataclass(frozen=True)
class Refused:
    """The worker cannot work, or cannot take this job; one word of why, and a sentence."""

    reason: str
    message: str
    traceback: str | None = None


@dataclasses.dataclass(frozen=True)
class Go:
    """Fork a child for the job that lies in the file that comes with this."""


@dataclasses.dataclass(frozen=True)
class Started:
    """A child was forked for the job."""

    pid: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """The child and all it started are gone; `status` is as from `os.waitpid`."""

    status: int


@dataclasses.dataclass(frozen=True)
class Stop:
    """End the child that runs now."""


@dataclasses.dataclass(frozen=True)
class Counted:
    """The profiles of all layouts are written. `optimised_away`: of an empty loop, for the compiler left nothing.

    `functions` are the Python functions that were told apart, by their numbers: name, file, line.
    """

    optimised_away: bool = False
    functions: tuple[tuple[str, str, int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Separate:
    """The setup started threads, so that the process cannot be forked: ask for one layout at a time."""

    threads: int


@dataclasses.dataclass(frozen=True)
class Timed:
    """Times of blocks, in seconds."""

    number: int
    raw_times: tuple[float, ...]
    overhead_s: float | None
    optimised_away: bool = False


@dataclasses.dataclass(frozen=True)
class Raced:
    """For each statement the runs in a block of it, and the times of its blocks in seconds, one for each round."""

    numbers: tuple[int, ...]
    raw_times: tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True)
class Gauged:
    """Seconds of one run, at best, and what it took until the first."""

    run_s: float
    setup_s: float


@dataclasses.dataclass(frozen=True)
class PairTimed:
    """Of each side that ran here, in the order base, head: for each of its blocks seconds, page faults, and how often
    another program took the core away."""

    times: tuple[tuple[float, ...], ...]
    faults: tuple[tuple[int, ...], ...]
    switches: tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True)
class Scripted:
    """The TorchScript model is in its file."""


@dataclasses.dataclass(frozen=True)
class Checked:
    """How two ways differ, or None; where one of them failed, which of the two, and how."""

    problem: str | None
    failed: int | None = None


@dataclasses.dataclass(frozen=True)
class Failed:
    """The user's code failed: a kind of failure, what happened, and the user's own traceback."""

    failure: str
    message: str
    traceback: str | None


Answer = Union[Counted, Separate, Timed, Raced, Gauged, PairTimed, FirstCall, Scripted, Checked, Failed]
Message = Union[Hello, Ready, Refused, Go, Started, Ended, Stop, Answer, Job]
M = TypeVar("M")

_KINDS: dict[str, type[Any]] = {
    "hello": Hello,
    "ready": Ready,
    "refused": Refused,
    "go": Go,
    "started": Started,
    "ended": Ended,
    "stop": Stop,
    "counted": Counted,
    "separate": Separate,
    "timed": Timed,
    "raced": Raced,
    "gauged": Gauged,
    "pair_timed": PairTimed,
    "first_call": FirstCall,
    "scripted": Scripted,
    "checked": Checked,
    "failed": Failed,
    "count": CountJob,
    "time": TimeJob,
    "race": RaceJob,
    "gauge": GaugeJob,
    "pair": PairJob,
    "compile": CompileJob,
    "script": ScriptJob,
    "check": CheckJob,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def encode(message: Message) -> Plain:
    """The message as JSON's types.

    >>> encode(Started(7))
    {'kind': 'started', 'pid': 7}
    """
    return {"kind": _NAMES[type(message)], **dataclasses.asdict(message)}


def decode(plain: Plain) -> Message:
    """The message that `encode` gave this for. Whatever else it is, it is refused: a field that is not declared or is
    missing, a value of another type, a number that is not finite or out of bounds, a text or a list without end.

    >>> decode(encode(Started(7)))
    Started(pid=7)
    """
    fields = dict(plain)
    name = fields.pop("kind", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        told = f"{name!r:.80}" if isinstance(name, str) else "it does not name one"
        raise WorkerError(f"A message of an unknown kind arrived: {told}.", kind="garbled")
    return revive(kind, fields)  # type: ignore[no-any-return]


def revive(kind: type[M], plain: object) -> M:
    """A value of a class with declared fields, from a mapping that somebody else made of it."""
    try:
        value: M = _read_fields(kind, plain, kind.__name__)
        for name, expected in _list_faults(value):
            raise _Unlike(f"{kind.__name__}.{name}", expected)
    except _Unlike as error:
        raise WorkerError(f"A message does not have the promised form: {error}.", kind="garbled") from None
    return value


class _Unlike(Exception):
    """A field is not what it should be."""

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name} is not {expected}")


def _read_fields(kind: Any, plain: object, name: str) -> Any:
    if not isinstance(plain, dict):
        raise _Unlike(name, "a mapping")
    declared = _list_fields(kind)
    for unknown in plain:
        if unknown not in declared:
            raise _Unlike(f"{name}.{unknown!r:.40}", "known here")
    values: dict[str, Any] = {}
    for field, (expected, is_optional, has_default) in declared.items():
        if field not in plain:
            if not has_default:
                raise _Unlike(f"{name}.{field}", "there")
        elif plain[field] is None and is_optional:
            values[field] = None
        else:
            values[field] = _read(expected, plain[field], f"{name}.{field}")
    return kind(**values)


def _read(expected: Any, value: object, name: str) -> Any:
    if dataclasses.is_dataclass(expected):
        return _read_fields(expected, value, name)
    if isinstance(expected, type(tuple[int])):
        return _read_tuple(expected.__args__, value, name)  # type: ignore[attr-defined]
    # In Python a bool is a whole number; in a message that is a mistake.
    if expected is float and type(value) in (int, float) and abs(value) < MOST:  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    if expected is int and type(value) is int and abs(value) < MOST:
        return value
    if expected in (str, bool) and type(value) is expected:
        return value
    raise _Unlike(name, _EXPECTED[expected])


def _read_tuple(expected: tuple[Any, ...], value: object, name: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise _Unlike(name, "a list")
    if expected[-1] is Ellipsis:
        return tuple([_read(expected[0], item, name) for item in value])
    if len(value) != len(expected):
        raise _Unlike(name, f"a list of {len(expected)}")
    return tuple([_read(one, item, name) for one, item in zip(expected, value)])


@functools.cache
def _list_fields(kind: Any) -> dict[str, tuple[Any, bool, bool]]:
    """Of each field of a class its type, whether it may be None, and whether it may be missing.

    Python 3.9 cannot evaluate `str | None`, so that part of an annotation is read here. The names are looked up where
    the class was made: a zygote has removed our modules from the list of those that it has imported.
    """
    known = kind.__init__.__globals__
    fields = {}
    for field in dataclasses.fields(kind):
        text = str(field.type)
        plain_type = eval(text[: -len(_OR_NONE)] if text.endswith(_OR_NONE) else text, known)
        fields[field.name] = (plain_type, text.endswith(_OR_NONE), field.default is not dataclasses.MISSING)
    return fields


def _list_all_fields() -> None:
    """Once, here: a child of a zygote is to find it done, and its heap as the zygote has left it."""
    waiting: list[Any] = list(_KINDS.values())
    while waiting:
        for expected, _, _ in _list_fields(waiting.pop()).values():
            inner = getattr(expected, "__args__", (expected,))[0]
            if dataclasses.is_dataclass(inner):
                waiting.append(inner)


_list_all_fields()


def _list_faults(message: object) -> Iterator[tuple[str, str]]:
    """What types do not tell of a message that a worker sends: fields that cannot be right, and what they should be."""
    if isinstance(message, (Timed, Raced)):
        numbers = (message.number,) if isinstance(message, Timed) else message.numbers
        series = (message.raw_times,) if isinstance(message, Timed) else message.raw_times
        if not all(number >= 1 for number in numbers):
            yield "number", "at least 1"
        if len(numbers) != len(series) or not all(series) or len(set(map(len, series))) > 1:
            yield "raw_times", "one series for each number, of equally many blocks"
        if not all(_are_seconds(times) for times in series):
            yield "raw_times", _SECONDS
        if isinstance(message, Timed) and message.overhead_s is not None and not _are_seconds([message.overhead_s]):
            yield "overhead_s", _SECONDS
    elif isinstance(message, Gauged):
        if not _are_seconds([message.run_s, message.setup_s]):
            yield "run_s", _SECONDS
    elif isinstance(message, PairTimed):
        blocks = {len(side) for part in (message.times, message.faults, message.switches) for side in part}
        sides = {len(part) for part in (message.times, message.faults, message.switches)}
        if len(sides) != 1 or not sides <= {1, 2} or len(blocks) != 1:
            yield "times", "of one or two sides, with faults and switches of as many blocks"
        if not all(_are_seconds(side) for side in message.times):
            yield "times", _SECONDS
        if not all(count >= 0 for part in (message.faults, message.switches) for side in part for count in side):
            yield "faults", "at least 0"
    elif isinstance(message, FirstCall):
        if not _are_seconds([message.first_s, message.steady_s]):
            yield "first_s", _SECONDS
        counts = (message.graphs, message.graph_breaks, message.abandoned, message.cache_hits, message.cache_misses)
        if not all(count >= 0 for count in counts):
            yield "graphs", "at least 0"
        if not all(map(_is_short, message.breaks)):
            yield "breaks", _SHORT
    elif isinstance(message, Counted):
        if not all(_is_short(name) and _is_short(file) and line >= 0 for name, file, line in message.functions):
            yield "functions", f"names and files, {_SHORT}, and lines"
    elif isinstance(message, Checked):
        if message.failed not in (None, 0, 1):
            yield "failed", "0 or 1"
        if not _is_short(message.problem or ""):
            yield "problem", _SHORT
    elif isinstance(message, Failed):
        if message.failure not in _FAILURES:
            yield "failure", "a kind of failure"
        if not _is_short(message.message) or not _is_short(message.traceback or ""):
            yield "message", _SHORT
    elif isinstance(message, Started):
        # Process 1 is nobody's child, and to signal the group 0 or 1 is to signal oneself or everybody.
        if not 1 < message.pid <= MOST_PID:
            yield "pid", "the number of a process"
    elif isinstance(message, Ended) and not 0 <= message.status <= MOST_STATUS:
        yield "status", "a status of waitpid"


def _are_seconds(values: Iterable[float]) -> bool:
    return all(0.0 <= value <= LONGEST_S for value in values)


def _is_short(text: str) -> bool:
    return len(text) <= LONGEST_TEXT
