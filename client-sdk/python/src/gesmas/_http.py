"""HTTP/1.1 over connections that are kept: just what the gateway speaks.

Invariants: a connection is used again only after its last answer was read to its end; a failure says whether
the server may have got the request; a body is bounded by its length or its last chunk, never by the
end of the connection, so that an answer that breaks off is not taken for a whole one.
Not here: redirects, compression, proxies; the gateway has none, and whoever needs a proxy gives its address
as an endpoint.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ._clock import now
from ._worlds import Disconnected, Stream, World

_CONNECT = 3.0
_LINE_MAX = 65_536
FAILURES = (OSError, EOFError, ValueError, asyncio.TimeoutError)


@dataclass(frozen=True)
class Request:
    """A request. ``fresh``: on a connection of its own, so that none is used whose end was overlooked."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    fresh: bool = False


@dataclass(frozen=True)
class Response:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class Reader:
    """Reads answers from a stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = b""
        self.begun = False

    async def _more(self, until: float) -> None:
        data = await self._stream.receive(until)
        if not data:
            raise EOFError("the connection was closed")
        self.begun = True
        self._buffer += data

    async def line(self, until: float) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > _LINE_MAX:
                raise ValueError("a line of the answer has no end")
            await self._more(until)
        line, self._buffer = self._buffer[:end], self._buffer[end + 1 :]
        return line.rstrip(b"\r")

    async def exactly(self, length: int, until: float) -> bytes:
        while len(self._buffer) < length:
            await self._more(until)
        data, self._buffer = self._buffer[:length], self._buffer[length:]
        return data

    async def head(self, until: float) -> Response:
        status = (await self.line(until)).split(b" ", 2)
        if len(status) < 2 or not status[0].startswith(b"HTTP/1."):
            raise ValueError("the answer is not HTTP")
        headers = {}
        while line := await self.line(until):
            name, _, value = line.partition(b":")
            headers[name.decode("latin-1").strip().lower()] = value.decode("latin-1").strip()
        return Response(int(status[1]), headers)

    async def chunk(self, until: float) -> bytes:
        """The next chunk of a body; empty after the last one."""
        length = int((await self.line(until)).split(b";")[0], 16)
        data = await self.exactly(length, until)
        while await self.line(until):
            if length:
                raise ValueError("a chunk of the answer is longer than it says")
        return data

    async def body(self, head: Response, until: float) -> bytes:
        if head.status in (204, 304):
            return b""
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while part := await self.chunk(until):
                parts.append(part)
            return b"".join(parts)
        return await self.exactly(int(head.headers.get("content-length", "0")), until)


class Connection:
    """A connection to an endpoint."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.reader = Reader(stream)

    def close(self) -> None:
        self.stream.close()


class Endpoint:
    """One address where the service is reached, with its idle connections."""

    def __init__(self, address: str, world: World) -> None:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"an endpoint is an address such as http://127.0.0.1:7180, not {address!r}")
        self.address = address
        self._tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port or (443 if self._tls else 80)
        self._named = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.rstrip("/")
        self._world = world
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._guard = threading.Lock()
        self._closed = False

    def renew(self) -> None:
        """Leaves all connections to the parent of this process."""
        for connection in self._open:
            connection.stream.abandon()
        self._idle, self._open, self._guard = [], set(), threading.Lock()

    async def _connect(self, until: float) -> Connection:
        until = min(until, now() + _CONNECT)
        try:
            stream = await self._world.connect(self._host, self._port, self._tls, until)
        except FAILURES as error:
            raise Disconnected(f"{self.address}: {error or 'no answer'}", sent=False) from error
        connection = Connection(stream)
        with self._guard:
            self._open.add(connection)
        return connection

    def _take(self) -> Connection | None:
        with self._guard:
            return self._idle.pop() if self._idle else None

    def _give(self, connection: Connection) -> None:
        with self._guard:
            if connection in self._open and not self._closed:
                self._idle.append(connection)
                return
        self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        with self._guard:
            self._open.discard(connection)
        connection.close()

    def _bytes_of(self, request: Request) -> bytes:
        lines = [f"{request.method} {self._prefix}{request.path} HTTP/1.1", f"host: {self._named}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if request.body or request.method in ("POST", "PUT"):
            lines.append(f"content-length: {len(request.body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + request.body

    async def exchange(self, request: Request, until: float) -> Response:
        """Sends a request and waits for its answer."""
        data = self._bytes_of(request)
        while True:
            kept = None if request.fresh else self._take()
            connection = kept or await self._connect(until)
            try:
                await connection.stream.send(data, until)
                head = await connection.reader.head(until)
                body = await connection.reader.body(head, until)
            except FAILURES as error:
                self._drop(connection)
                is_stale = kept is not None and not connection.reader.begun
                if is_stale and not _is_timeout(error) and not self._closed:
                    # It was closed while it was idle; those behind it most likely too.
                    continue
                raise Disconnected(f"{self.address}: {error or 'no answer'}", sent=True) from error
            except BaseException:
                self._drop(connection)
                raise
            connection.reader.begun = False
            if head.headers.get("connection", "").lower() == "close":
                self._drop(connection)
            else:
                self._give(connection)
            return Response(head.status, head.headers, body)

    async def follow(self, request: Request, until: float) -> tuple[Response, Connection | None]:
        """Sends a request whose answer has no end; gives the connection unless the answer is a
        failure."""
        connection = await self._connect(until)
        try:
            await connection.stream.send(self._bytes_of(request), until)
            head = await connection.reader.head(until)
            if head.status == 200:
                return head, connection
            body = await connection.reader.body(head, until)
        except FAILURES as error:
            self._drop(connection)
            raise Disconnected(f"{self.address}: {error or 'no answer'}", sent=True) from error
        except BaseException:
            self._drop(connection)
            raise
        self._drop(connection)
        return Response(head.status, head.headers, body), None

    def release(self, connection: Connection) -> None:
        """Ends a connection that was followed."""
        self._drop(connection)

    def close(self) -> None:
        """Ends all connections; whoever waits on one is told that it broke."""
        with self._guard:
            # What is said from now on, to withdraw a call, leaves no connection behind.
            self._closed = True
            connections = list(self._open)
            self._open.clear()
            self._idle.clear()
        for connection in connections:
            connection.close()


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, (asyncio.TimeoutError, socket.timeout, TimeoutError))
