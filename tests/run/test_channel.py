"""The framing of messages, from pieces, garbage and broken ends."""

from __future__ import annotations

import socket

import pytest

from opcheck.run.channel import DONE, LARGEST_MESSAGE, READY, STOP, Channel, ChannelError, WorkerChannel


@pytest.fixture
def ends():
    """Two connected sockets."""
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_a_message_in_pieces_is_one_message(ends):
    raw, channel = ends[0], Channel(ends[1])
    for byte in b'\x00\x00\x00\x07{"a":1}':
        assert channel.take() is None
        raw.send(bytes([byte]))
        assert channel.fill()
    assert channel.take() == {"a": 1}
    assert channel.take() is None


def test_two_messages_in_one_piece_are_two(ends):
    raw, channel = ends[0], Channel(ends[1])
    raw.send(b'\x00\x00\x00\x07{"a":1}\x00\x00\x00\x02{}')
    assert [channel.receive(), channel.receive()] == [{"a": 1}, {}]


def test_the_bytes_of_a_message(ends):
    Channel(ends[1]).send({"a": "é"})
    assert ends[0].recv(100) == b'\x00\x00\x00\x0f{"a": "\\u00e9"}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_json_has_not_is_not_sent(ends, number):
    with pytest.raises(ValueError, match="JSON compliant"):
        Channel(ends[1]).send({"a": number})


@pytest.mark.parametrize(
    "text",
    [b'{"a": NaN}', b'{"a": -Infinity}', b"3", b"[]", b"", b"{", b"\xff\xfe", b"[" * 100_000],
    ids=["nan", "infinity", "number", "list", "nothing", "open", "no text", "deep"],
)
def test_what_is_no_message_is_refused(ends, text):
    raw, channel = ends[0], Channel(ends[1])
    raw.sendall(len(text).to_bytes(4, "big") + text)
    with pytest.raises(ChannelError):
        channel.receive()


def test_a_length_beyond_the_largest_is_refused_at_once(ends):
    raw, channel = ends[0], Channel(ends[1])
    raw.sendall((LARGEST_MESSAGE + 1).to_bytes(4, "big"))
    with pytest.raises(ChannelError, match="length"):
        channel.receive()


def test_an_end_in_the_middle_of_a_message_is_an_end(ends):
    raw, channel = ends[0], Channel(ends[1])
    raw.sendall(b"\x00\x00\x00\x07{")
    raw.close()
    with pytest.raises(EOFError):
        channel.receive()


def test_a_worker_is_ready_when_it_asks_and_done_when_it_asks_again(ends):
    parent, worker = Channel(ends[0]), WorkerChannel(ends[1])
    for message in ({"start": 1}, {"item": {"n": 1}}, {"item": {"n": 2}}, STOP):
        parent.send(message)
    assert worker.start() == {"start": 1}
    items = worker.items()
    assert next(items) == {"n": 1}
    assert parent.receive() == READY
    assert next(items) == {"n": 2}
    assert parent.receive() == DONE
    assert list(items) == []
    assert parent.receive() == DONE
