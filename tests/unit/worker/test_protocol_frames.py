from __future__ import annotations

import os
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmark.errors import WorkerError
from torchmark.worker import protocol

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.dictionaries(st.text(), json_values, max_size=4)


@given(st.lists(messages, max_size=4), st.integers(1, 7))
def test_messages_survive_however_they_are_cut(sent: list[protocol.Plain], size: int) -> None:
    data = b"".join(map(protocol.pack, sent))
    unpacker = protocol.Unpacker()
    received = []
    for i in range(0, len(data), size):
        received += unpacker.feed(data[i : i + size])
    assert received == sent


def test_a_piece_of_a_message_is_no_message() -> None:
    unpacker = protocol.Unpacker()
    assert unpacker.feed(protocol.pack({"a": 1})[:-1]) == []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"xxxxxxxx", "not a message"),
        (protocol.HEADER.pack(3) + b"{x}", "not JSON"),
        (protocol.HEADER.pack(2) + b"[]", "not a mapping"),
        (protocol.HEADER.pack(2) + b"\xff\xfe", "not JSON"),
        (protocol.HEADER.pack(200_000) + b"[" * 200_000, "not JSON"),
        (protocol.HEADER.pack(9_007) + b'{"a": ' + b"9" * 9_000 + b"}", "not JSON"),
    ],
)
def test_something_else_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(WorkerError, match=problem) as caught:
        protocol.Unpacker().feed(data)
    assert caught.value.kind == "garbled"


def test_a_message_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LARGEST_FRAME_BYTES", 10)
    with pytest.raises(WorkerError, match="too large"):
        protocol.pack({"a": "x" * 20})


def test_descriptors_travel_with_a_message() -> None:
    one, other = socket.socketpair()
    read, write = os.pipe()
    with one, other:
        protocol.send(one, {"a": 1}, (write,))
        os.close(write)
        received = protocol.receive(other)
        assert received is not None
        message, (copy,) = received
        assert message == {"a": 1}
        os.write(copy, b"hello")
        os.close(copy)
    assert os.read(read, 10) == b"hello"
    os.close(read)


def test_a_large_message_arrives_whole() -> None:
    one, other = socket.socketpair()
    message = {"text": "x" * 3_000_000}
    with one, other:
        sender = threading.Thread(target=protocol.send, args=(one, message))
        sender.start()
        assert protocol.receive(other) == (message, ())
        sender.join()


@pytest.mark.parametrize("cut", [0, 2, 6])
def test_the_end_of_the_other_side_is_told(cut: int) -> None:
    one, other = socket.socketpair()
    with other:
        one.sendall(protocol.pack({"a": 1})[:cut])
        one.close()
        assert protocol.receive(other) is None


def test_a_stream_that_is_not_of_frames_is_refused() -> None:
    one, other = socket.socketpair()
    with one, other:
        one.sendall(b"GET / HTTP/1.1")
        with pytest.raises(WorkerError, match="not a message"):
            protocol.receive(other)
