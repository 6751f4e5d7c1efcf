"""JSON messages over a socket, each behind its length: the only way in which opcheck and its workers talk."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

READY = {"ready": True}
DONE = {"done": True}
STOP = {"stop": True}

_HEADER = struct.Struct(">I")
_CHUNK = 1 << 20
#: No honest message comes near it; what a stray write leaves in the header mostly lies above it.
LARGEST_MESSAGE = 1 << 28


class ChannelError(Exception):
    """What stands on the channel is not a message."""


class Channel:
    """Carry JSON objects over a connected stream socket.

    Args:
        endpoint: One end of a socket pair; the channel owns it. Its timeout is the longest that `send` may take.
    """

    def __init__(self, endpoint: socket.socket) -> None:
        self._socket = endpoint
        self._arrived = bytearray()

    def fileno(self) -> int:
        """Give the file descriptor, to wait on."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; the other side sees the end of the channel."""
        self._socket.close()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message, waiting until the socket has taken all of it.

        Raises:
            ValueError: The message holds NaN or an infinity, which JSON has not, or is too large.
            OSError: The other side is gone, or has not read within the socket's timeout.
        """
        text = json.dumps(message, allow_nan=False).encode()
        if len(text) > LARGEST_MESSAGE:
            raise ValueError(f"a message of {len(text)} bytes; the largest is {LARGEST_MESSAGE}")
        self._socket.sendall(_HEADER.pack(len(text)) + text)

    def receive(self) -> dict[str, Any]:
        """Wait for one message.

        Raises:
            EOFError: The other side is gone.
            ChannelError: What came is not a message.
        """
        while (message := self.take()) is None:
            if not self.fill():
                raise EOFError("the other side has closed the channel")
        return message

    def fill(self) -> bool:
        """Read once from the socket, without waiting where it is readable; False at the channel's end."""
        try:
            chunk = self._socket.recv(_CHUNK)
        except ConnectionResetError:
            return False
        self._arrived += chunk
        return bool(chunk)

    def take(self) -> dict[str, Any] | None:
        """Take the next message that has arrived in full, None where there is none yet.

        Raises:
            ChannelError: What came is not a message; the channel is useless from here on.
        """
        if len(self._arrived) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._arrived)
        if length > LARGEST_MESSAGE:
            raise ChannelError(f"a length of {length} bytes")
        end = _HEADER.size + length
        if len(self._arrived) < end:
            return None
        text = bytes(self._arrived[_HEADER.size : end])
        del self._arrived[:end]
        try:
            message = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise ChannelError(str(error)) from error
        if not isinstance(message, dict):
            raise ChannelError(f"a JSON {type(message).__name__} instead of an object")
        return message


class WorkerChannel(Channel):
    """A worker's end: says that the worker is ready when it first asks for work.

    So whatever a worker does before it asks is its start, and a death there is not laid at an item's door.
    """

    _asked = False

    def start(self) -> dict[str, Any]:
        """Wait for the message that says what the worker runs; it is not work."""
        return super().receive()

    def receive(self) -> dict[str, Any]:
        """Wait for `{"item": {...}}` or `{"stop": true}`; raises as `Channel.receive` does."""
        if not self._asked:
            self._asked = True
            self.send(READY)
        return super().receive()

    def items(self) -> Iterator[dict[str, Any]]:
        """Give the items one by one, until the parent says stop; an item is done when the next one is asked for."""
        while (message := self.receive()) != STOP:
            yield message["item"]
            self.send(DONE)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
