"""SQLite files that are damaged or hostile: pages, headers, logs and journals, written byte by byte."""

from __future__ import annotations

import random
import struct

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
WAL_MAGIC = 0x377F0683
WAL_VERSION = 3_007_000
# SQLite keeps the byte at this place free for locks; the page that has it stands in no file.
LOCK_BYTE = 0x40000000
# Fields of the header of a file: where, and how many bytes.
HEADER_FIELDS = {
    "page size": (16, 2),
    "write version": (18, 1),
    "read version": (19, 1),
    "reserved": (20, 1),
    "largest share": (21, 1),
    "change counter": (24, 4),
    "pages": (28, 4),
    "freelist": (32, 4),
    "free pages": (36, 4),
    "schema cookie": (40, 4),
    "schema format": (44, 4),
    "largest root": (52, 4),
    "encoding": (56, 4),
    "user version": (60, 4),
    "incremental": (64, 4),
    "application": (68, 4),
    "valid for": (92, 4),
    "written by": (96, 4),
}
_VALUES = (0, 1, 2, 3, 255, 256, 512, 4096, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def page_size(content: bytes) -> int:
    """The size that a file says it has."""
    return int.from_bytes(content[16:18], "big") or 65536


def split_pages(content: bytes) -> list[bytes]:
    """All pages; the first is number 1."""
    size = page_size(content)
    return [content[start : start + size] for start in range(0, len(content), size)]


def damage(content: bytes, chance: random.Random) -> bytes:
    """A file in which something is not as it was."""
    hurt = chance.choice((_flip, _flip, _truncate, _hurt_pages, _set_header, _set_header, _hurt_tree, _overwrite))
    try:
        return hurt(content, chance)
    except (ValueError, IndexError):
        # It has been damaged before, so that its pages cannot be found.
        return _flip(content, chance, firsts=(0,))


def _flip(content: bytes, chance: random.Random, firsts: tuple[int, ...] = (0, 0, 100, 1024)) -> bytes:
    changed = bytearray(content)
    first = chance.choice(firsts)
    for _ in range(chance.choice((1, 1, 2, 8, 64))):
        changed[chance.randrange(first, len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, chance: random.Random) -> bytes:
    size = page_size(content)
    length = chance.choice((0, 1, 99, 100, size - 1, size, chance.randrange(len(content)), len(content) - 1))
    return content[:length] + chance.choice((b"", b"", b"\0" * size, b"x" * 10))


def _hurt_pages(content: bytes, chance: random.Random) -> bytes:
    pages = split_pages(content)
    one, two = chance.randrange(len(pages)), chance.randrange(1, len(pages))
    kind = chance.randrange(4)
    if kind == 0:
        pages[two] = bytes(len(pages[two]))
    elif kind == 1:
        pages[two] = pages[one]
    elif kind == 2:
        pages[one], pages[two] = pages[two], pages[one]
    else:
        del pages[two]
    return b"".join(pages)


def _set_header(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 2))):
        start, size = HEADER_FIELDS[chance.choice(list(HEADER_FIELDS))]
        value = chance.choice((*_VALUES, chance.getrandbits(32)))
        changed[start : start + size] = (value % (1 << 8 * size)).to_bytes(size, "big")
    return bytes(changed)


def _hurt_tree(content: bytes, chance: random.Random) -> bytes:
    """Damage in what a page says of its own cells, and in their first bytes: lengths, numbers of other pages."""
    changed = bytearray(content)
    size = page_size(content)
    page = chance.randrange(len(content) // size)
    start = page * size + (100 if page == 0 else 0)
    cells = int.from_bytes(changed[start + 3 : start + 5], "big")
    places = [*range(start, start + 12)]
    for cell in range(min(cells, 50)):
        pointer = start + 8 + 2 * cell
        places += [pointer, pointer + 1]
        where = page * size + int.from_bytes(changed[pointer : pointer + 2], "big")
        places += [place for place in range(where, where + 12) if place < len(changed)]
    for _ in range(chance.choice((1, 2, 4))):
        changed[chance.choice(places)] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    return bytes(changed)


def _overwrite(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    length = chance.choice((4, 40, 400))
    start = chance.randrange(100, len(changed) - length)
    changed[start : start + length] = chance.choice((chance.randbytes(length), b"\xff" * length, b"%" * length))
    return bytes(changed)


# --- rollback journals -----------------------------------------------------------------------------------


def make_journal(content: bytes, name: str, chance: random.Random) -> bytes:
    """A hot journal of a file, which names another one as the journal that it belongs to."""
    size, sector = page_size(content), chance.choice((512, 512, 512, 4096))
    pages = split_pages(content)
    nonce = chance.getrandbits(32)
    chosen = chance.sample(range(1, len(pages) + 1), chance.choice((0, 0, 1, 2)))
    records = b""
    for number in chosen:
        page = pages[number - 1]
        if chance.random() < 0.5:
            page = _flip(page, chance)
        records += struct.pack(">I", number) + page + struct.pack(">I", _journal_checksum(page, nonce))
    count = chance.choice((len(chosen), len(chosen), 0, 0xFFFFFFFF))
    shown = chance.choice((len(pages), len(pages), len(pages), len(pages) - 1, 1, 0))
    said = chance.choice((size, size, size, size, 512, 65536, 0))
    header = (JOURNAL_MAGIC + struct.pack(">IIIII", count, nonce, shown, sector, said)).ljust(sector, b"\0")
    journal = header + records + _name_super_journal(name, size)
    kind = chance.random()
    if kind < 0.1:
        journal = journal[: chance.randrange(len(journal))]
    elif kind < 0.2:
        changed = bytearray(journal)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        journal = bytes(changed)
    return journal


def make_plain_journal(content: bytes, name: str) -> bytes:
    """The shortest that has SQLite delete the file of that name."""
    size = page_size(content)
    header = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 1, len(content) // size, 512, size)
    return header.ljust(512, b"\0") + _name_super_journal(name, size)


def _name_super_journal(name: str, size: int) -> bytes:
    text = name.encode()
    total = sum(byte - 256 if byte > 127 else byte for byte in text) & 0xFFFFFFFF
    return struct.pack(">I", LOCK_BYTE // size + 1) + text + struct.pack(">II", len(text), total) + JOURNAL_MAGIC


def _journal_checksum(page: bytes, nonce: int) -> int:
    """As SQLite computes it: of every two hundredth byte, from the end."""
    total, place = nonce, len(page) - 200
    while place > 0:
        total += page[place]
        place -= 200
    return total & 0xFFFFFFFF


# --- write-ahead logs ------------------------------------------------------------------------------------


def make_wal(
    frames: list[tuple[int, bytes]], size: int, chance: random.Random, *, pages: int, said_size: int | None = None
) -> bytes:
    """A log with these pages under their numbers, the last of which ends a transaction; after it there are `pages`."""
    salts = struct.pack(">II", chance.getrandbits(32), chance.getrandbits(32))
    header = struct.pack(">IIII", WAL_MAGIC, WAL_VERSION, said_size or size, 0) + salts
    state = _add_up(header, (0, 0))
    log = header + struct.pack(">II", *state)
    for place, (number, page) in enumerate(frames):
        start = struct.pack(">II", number & 0xFFFFFFFF, pages & 0xFFFFFFFF if place == len(frames) - 1 else 0)
        state = _add_up(start + page, state)
        log += start + salts + struct.pack(">II", *state) + page
    return log


def _add_up(data: bytes, state: tuple[int, int]) -> tuple[int, int]:
    one, two = state
    words = struct.unpack(f">{len(data) // 4}I", data[: len(data) // 4 * 4])
    for first, second in zip(words[::2], words[1::2], strict=False):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def make_hostile_wal(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """A log beside a file: of damaged pages, of another file's, or damaged itself."""
    size = page_size(content)
    pages = split_pages(content)
    source = split_pages(chance.choice([damage(content, chance), chance.choice(others), chance.choice(others)]))
    source = [page[:size].ljust(size, b"\0") for page in source] or pages
    numbers = chance.sample(range(1, len(source) + 1), min(len(source), chance.choice((1, 1, 3, 8))))
    if chance.random() < 0.3:
        # All of the other file instead of this one.
        numbers = list(range(1, len(source) + 1))
    frames = [(number, source[number - 1]) for number in numbers]
    if chance.random() < 0.15:
        frames.append((chance.choice((0, 1, len(pages) + 5, 0x7FFFFFFF, 0xFFFFFFFF)), chance.choice(pages)))
    after = chance.choice((len(pages), len(source), len(source), 1, len(pages) + 100, 0x7FFFFFFF))
    said = chance.choice((None, None, None, None, None, 512, 3, 65536, 1 << 31))
    log = make_wal(frames, size, chance, pages=after, said_size=said)
    kind = chance.random()
    if kind < 0.15:
        log = log[: chance.randrange(len(log))]
    elif kind < 0.3:
        changed = bytearray(log)
        for _ in range(chance.choice((1, 4))):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        log = bytes(changed)
    elif kind < 0.4:
        # The same once more.
        log += log[32:]
    elif kind < 0.45:
        log = bytes(chance.choice((32, 4096))) + log
    return log


def replace_by_wal(old: bytes, new: bytes, chance: random.Random) -> bytes:
    """A log that makes one file another of the same page size."""
    size = page_size(old)
    before, after = split_pages(old), split_pages(new)
    frames = [
        (number + 1, page) for number, page in enumerate(after) if number >= len(before) or before[number] != page
    ]
    return make_wal(frames or [(1, after[0])], size, chance, pages=len(after))
