"""JSON in frames: four bytes of length, then the text. File descriptors can travel with a frame over a Unix socket."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
from typing import Any

from torchmark.errors import WorkerError

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
