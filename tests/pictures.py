"""Reads PNG files with nothing but the standard library, as far as tests look at them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"
Pixel = tuple[int, int, int]


def read_size(png: bytes) -> tuple[int, int]:
    """Width and height in pixels."""
    assert png.startswith(SIGNATURE)
    return struct.unpack(">II", png[16:24])


def read_rows(png: bytes) -> Iterator[list[Pixel]]:
    """The pixels of each row of a picture with eight bits a channel, with or without alpha, which is left out."""
    width, _ = read_size(png)
    depth, kind = png[24], png[25]
    assert (depth, kind) in {(8, 2), (8, 6)}
    step = {2: 3, 6: 4}[kind]
    data = zlib.decompress(b"".join(body for name, body in _list_chunks(png) if name == b"IDAT"))
    above = bytearray(width * step)
    for start in range(0, len(data), width * step + 1):
        line = bytearray(data[start + 1 : start + 1 + width * step])
        _undo_filter(data[start], line, above, step)
        yield [(line[i], line[i + 1], line[i + 2]) for i in range(0, len(line), step)]
        above = line


def _list_chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        yield name, png[place + 8 : place + 8 + length]
        place += length + 12


def _undo_filter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        guess = (0, left, above[i], (left + above[i]) // 2, _predict(left, above[i], corner))[kind]
        line[i] = (line[i] + guess) & 0xFF


def _predict(left: int, up: int, corner: int) -> int:
    """The neighbour that is nearest to left + up - corner, as the format has it."""
    aim = left + up - corner
    return min((left, up, corner), key=lambda one: abs(aim - one))
