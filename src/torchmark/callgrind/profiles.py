"""Reads a Callgrind profile, names its functions, and makes one result of the profiles of several layouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchmark.errors import StoreError
from torchmark.model.costs import Call, Costs, Counts, Function, Profile, Tally, add_calls
from torchmark.stats.distribution import middle

NEWEST_VERSION = 1
# Counts are kept as 64 bits with a sign.
MOST = 2**63
TRIGGER = "Trigger: Client Request: "
# What stands before the trigger: versions, a process number, and a command line of a user's own length.
HEADER_LENGTH = 20_000

_COMMAND = re.compile(r"^cmd: *(.*?)( -c .*)?$", re.MULTILINE)
_OPEN_CALL = re.compile(r"^calls=0(?=\s)", re.MULTILINE)


def read_profile(path: Path) -> Profile:
    with path.open(errors="replace") as lines:
        return parse_profile(lines)


def read_trigger(text: str) -> str | None:
    """The text that was given with the request for a profile, without reading on."""
    _, found, after = text[:HEADER_LENGTH].partition(f"desc: {TRIGGER}")
    return after.partition("\n")[0] if found else None


def tidy_for_other_programs(text: str) -> str:
    """A file of a counting worker as `callgrind_annotate` and KCachegrind read it rightly.

    Callgrind writes 0 calls of a function that was entered before counting began and has not returned.
    callgrind_annotate takes the line after that for the caller's own cost, so such a call is written as one. Costs stay
    as they are. The command loses the source text that the worker starts with.
    """
    return _OPEN_CALL.sub("calls=1", _COMMAND.sub(r"cmd: \1 (a counting process of torchmark)", text))


def parse_profile(lines: Iterable[str], *, must_be_complete: bool = False) -> Profile:
    """The profile in these lines; StoreError says which line is not what it should be.

    Callgrind ends each part with its totals. Where there are any, they must agree; `must_be_complete` demands them.
    """
    reader = _Reader()
    try:
        reader.read(lines)
        profile = reader.finish()
    except (ValueError, KeyError, IndexError) as error:
        raise StoreError(f"This is no profile of Callgrind's: line {reader.line_number} is unexpected.") from error
    if not reader.events:
        raise StoreError("This is no profile of Callgrind's: it does not say which events it counts.")
    if reader.totals is None:
        if must_be_complete:
            raise StoreError("This profile of Callgrind's is cut off: its totals are missing.")
    elif profile.totals() != reader.totals:
        raise StoreError(f"The functions of this profile add up to {profile.totals()}, its totals are {reader.totals}.")
    return profile


class _Reader:
    """The state between lines. Functions are numbered while reading; costs are lists, one number an event."""

    def __init__(self) -> None:
        self.line_number = 0
        self.events: tuple[str, ...] = ()
        self.totals: Costs | None = None
        self._positions = 1
        self._trigger: str | None = None
        # Compressed names. Callees share them with the functions, files and binaries that are listed themselves.
        self._binaries: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._indices: dict[tuple[str, str, str], int] = {}
        self._exclusive: list[list[int]] = []
        self._edges: dict[tuple[int, int], list[int]] = {}

    def read(self, lines: Iterable[str]) -> None:
        """All lines. Long, because a profile has tens of thousands of them and each call would count."""
        binary = file = name = callee_name = ""
        callee_binary: str | None = None
        callee_file: str | None = None
        current = -1
        costs: list[int] = []
        # How many calls the next costs are of; also 0, for one that had not returned yet.
        pending: int | None = None
        single = False
        for self.line_number, line in enumerate(lines, 1):
            first = line[0]
            if first in "0123456789+-*":
                values = line.split()[self._positions :]
                if pending is not None:
                    index = self._number(callee_file or file, callee_name, callee_binary or binary)
                    self._add_call(current, index, pending, values)
                    pending = callee_file = callee_binary = None
                elif single and len(values) == 1:
                    costs[0] += int(values[0])
                else:
                    _add(costs, values)
            elif first == "f":
                kind, _, text = line.partition("=")
                if kind == "fn":
                    name = _expand(self._names, text)
                else:  # fl, or fi and fe for code that was inlined from another file
                    file = _expand(self._files, text)
                    if kind == "fl":
                        continue  # the function follows
                current = self._number(file, name, binary)
                costs = self._exclusive[current]
            elif line.startswith("cfn="):
                callee_name = _expand(self._names, line[4:])
            elif line.startswith("calls="):
                pending = int(line[6:].split()[0])
            elif line.startswith(("cfi=", "cfl=")):
                callee_file = _expand(self._files, line[4:])
            elif line.startswith("cob="):
                callee_binary = _expand(self._binaries, line[4:])
            elif line.startswith("ob="):
                binary = _expand(self._binaries, line[3:])
            elif first not in "#\n":
                self._take_header(line)
                single = len(self.events) == 1

    def _take_header(self, line: str) -> None:
        key, separator, value = line.partition(":")
        value = value.strip()
        if key == "version" and int(value) > NEWEST_VERSION:
            raise ValueError(value)
        if key == "positions":
            self._positions = len(value.split())
        elif key == "events":
            events = tuple(value.split())
            if self.events not in ((), events):
                raise ValueError("two parts count different events")
            self.events = events
        elif key == "totals":
            part = [int(number) for number in value.split()]
            part += [0] * (len(self.events) - len(part))
            self.totals = tuple(map(sum, zip(part, self.totals or (0,) * len(part), strict=True)))
        elif key == "desc" and value.startswith(TRIGGER):
            self._trigger = value[len(TRIGGER) :]
        elif line.startswith("jfi="):
            _expand(self._files, line[4:])
        elif line.startswith("jfn="):
            _expand(self._names, line[4:])
        elif not separator and not line.startswith(("jump=", "jcnd=")) and line.strip():
            raise ValueError(line)

    def _number(self, file: str, name: str, binary: str) -> int:
        key = (file, name, binary)
        index = self._indices.get(key)
        if index is None:
            index = self._indices[key] = len(self._exclusive)
            self._exclusive.append([0] * len(self.events))
        return index

    def _add_call(self, caller: int, callee: int, count: int, values: list[str]) -> None:
        edge = self._edges.get((caller, callee))
        if edge is None:
            edge = self._edges[caller, callee] = [0] * (len(self.events) + 1)
        edge[0] += count
        for i, value in enumerate(values, 1):
            edge[i] += int(value)

    def finish(self) -> Profile:
        """The profile; ValueError if a number cannot be a count."""
        for numbers in (*self._exclusive, *self._edges.values()):
            if not all(0 <= number < MOST for number in numbers):
                raise ValueError(numbers)
        functions = [Function(*key) for key in self._indices]
        calls = ((caller, callee, costs) for (caller, callee), (_, *costs) in self._edges.items())
        return Profile(
            events=self.events,
            exclusive=dict(zip(functions, map(tuple, self._exclusive), strict=True)),
            inclusive=dict(zip(functions, map(tuple, add_calls(self._exclusive, calls)), strict=True)),
            calls={
                (functions[caller], functions[callee]): Call(count, tuple(costs))
                for (caller, callee), (count, *costs) in self._edges.items()
            },
            trigger=self._trigger,
        )


def _add(costs: list[int], values: list[str]) -> None:
    """Trailing zeros may be left out."""
    for i, value in enumerate(values):
        costs[i] += int(value)


def _expand(known: dict[str, str], text: str) -> str:
    """A name, which may be `(number) name` the first time and `(number)` after that."""
    text = text.rstrip("\n")
    if not text.startswith("("):
        return text
    number, closed, name = text.partition(")")
    if not closed or not number[1:].isdigit():
        return text
    if name:
        known[number] = name.lstrip()
    return known[number]


# What a program calls to get memory from the C library. Symbols may carry a version behind an @.
_MALLOC_FAMILY = frozenset(
    {"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "reallocarray"}
)
# What torch calls to get memory for a tensor on the CPU, whatever is below it.
_TORCH_CPU_ALLOCATOR = "c10::alloc_cpu("


def count_allocations(profile: Profile) -> tuple[int, int]:
    """Calls into the malloc family, and calls of torch's CPU allocator (which calls the former).

    A function of the family that another of them calls is one allocation, not two.
    """
    family = tensors = 0
    for (caller, callee), call in profile.calls.items():
        if _is_malloc(callee) and not _is_malloc(caller):
            family += call.times
        elif callee.name.startswith(_TORCH_CPU_ALLOCATOR) and not caller.name.startswith(_TORCH_CPU_ALLOCATOR):
            tensors += call.times
    return family, tensors


def _is_malloc(function: Function) -> bool:
    # Callgrind writes name'2 for a function entered again through itself.
    return function.name.partition("@")[0].partition("'")[0] in _MALLOC_FAMILY


# Dictionary look-ups depend on hashes, and these on addresses. CPython up to 3.10, and what became of them in 3.11.
_NOISY = (
    "dictobject.c:lookdict_unicode",
    "dictobject.c:unicodekeys_lookup_unicode",
    "dictobject.c:unicodekeys_lookup_generic",
    "dictobject.c:_Py_dict_lookup",
)


def is_known_for_noise(label: str) -> bool:
    """Whether a function's cost varies for no reason of the program's, going by its name alone.

    >>> is_known_for_noise("/tmp/Python-3.8/Objects/dictobject.c:lookdict_unicode_nodummy [/usr/bin/python3]")
    True
    """
    return any(part in label for part in _NOISY)


# A path before what is known of a source tree differs from build to build.
_CPYTHON = ("/Python/", "/Objects/", "/Modules/", "/Include/", "/Parser/", "/Programs/")
_PACKAGES = ("/site-packages/", "/dist-packages/")
# The loop of a C++ snippet, whatever the snippet.
_LOOP = re.compile(r"[^:]+:(torchmark_loop)_[0-9a-f]{32}\b")
_BINARY = re.compile(r"\s\[")


def standardise(label: str) -> str:
    """A label that is the same for the same function of two builds or installations.

    >>> standardise("/tmp/build.1/Python-3.11.7/Modules/gcmodule.c:collect [/usr/lib/libpython3.11.so]")
    'Modules/gcmodule.c:collect'
    """
    # A file ends at the first colon: what comes after is the function's name, which may look like anything.
    file, colon, function = label.partition(":")
    label = _standardise_file(file, is_c=bool(colon) and file.endswith((".c", ".h"))) + colon + function
    label = _LOOP.sub(r"snippet:\1", label, count=1) if _LOOP.match(label) else label
    # The name of a program or library goes: it stands in brackets on the last line, and is the last thing there.
    found = _BINARY.search(label, max(label.rfind("\n"), 0)) if label.endswith("]") else None
    return label[: found.start()] if found and found.end() < len(label) - 1 else label


def _standardise_file(file: str, *, is_c: bool) -> str:
    """Without the folder of a source tree that is known; in this order, as one may lie within another."""
    if (start := _find_last(file, "build/../")) > 0:
        file = file[start:]
    if (start := _find_last(file, "/build/aten/")) > 0:
        file = file[start + 1 :]
    if is_c and (start := _find_last(file, *_CPYTHON)) > 0:
        file = file[start + 1 :]
    if (start := _find_last(file, *_PACKAGES)) > 0:
        file = "site-packages/" + file[start + len(_PACKAGES[0]) :]
    return file


def _find_last(text: str, *parts: str) -> int:
    """Where the last of these begins; what a text begins with is not found."""
    return max(text.rfind(part, 1) for part in parts)


def tally(counts: Counts, seeds: Sequence[int]) -> Tally:
    """What the profiles come to. `seeds` are those of the layouts, in their order."""
    totals = tuple(profile.total() for profile in counts.layouts)
    chosen = middle(totals)
    profile = counts.layouts[chosen]
    allocations, tensor_allocations = count_allocations(profile)
    return Tally(
        number=counts.number,
        seeds=tuple(seeds),
        totals=totals,
        events=tuple(zip(profile.events, profile.totals(), strict=True)),
        allocations=allocations,
        tensor_allocations=tensor_allocations,
        baseline=None if counts.baseline is None else counts.baseline.total(),
        noisy=tuple(sorted(find_noisy(counts.layouts))) if len(counts.layouts) > 1 else None,
        optimised_away=counts.optimised_away,
        profile=profile,
        baseline_profile=counts.baseline,
        text=None if counts.texts is None else counts.texts[chosen],
    )


def find_noisy(layouts: Sequence[Profile]) -> frozenset[str]:
    """The functions that did not cost the same in every layout, by label."""
    functions = set().union(*(profile.exclusive for profile in layouts))
    return frozenset(
        function.label
        for function in functions
        if len({profile.exclusive.get(function) or (0,) * len(profile.events) for profile in layouts}) > 1
    )
