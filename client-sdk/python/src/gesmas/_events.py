"""Events of a session, as server-sent events through any endpoint.

An event is acknowledged when the next one is asked for, or by ``Session.acknowledge``; the next keep-alive says
so to the cluster, and so does a reconnection. What is not acknowledged comes again after a reconnection, and is
not given to the caller twice.
Invariant: numbers rise; what is missing between them was announced as a ``Gap``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from ._clock import now
from ._core import problem_of
from ._http import FAILURES, Connection, Endpoint, Request
from ._session import SessionCore
from ._types import decode_bytes
from ._worlds import Disconnected
from .errors import SessionOver

_SILENCE = 25.0
"""The server shows every ten seconds that a stream lives."""
_PAUSE_FIRST, _PAUSE_LONGEST = 0.02, 1.0


@dataclass(frozen=True)
class Event:
    """What a method sent to the session."""

    number: int
    payload: bytes


@dataclass(frozen=True)
class Gap:
    """Events that made way for newer ones before they were acknowledged."""

    first: int
    last: int


class Parser:
    """Takes server-sent events apart."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, data: bytes) -> list[dict[str, str]]:
        """The events that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        events = []
        for line in lines:
            name, _, value = line.rstrip(b"\r").decode("utf-8").partition(":")
            if name:
                self._fields[name] = value.removeprefix(" ")
            elif not value and self._fields:
                events.append(self._fields)
                self._fields = {}
        return events


class EventCore:
    """See the head of the file."""

    def __init__(self, session: SessionCore) -> None:
        self._session = session
        self._given = session.acknowledged
        self._given_by_stream = 0
        self._connection: Connection | None = None
        self._endpoint: Endpoint | None = None
        self._parser = Parser()
        self._ready: list[Event | Gap] = []
        self._pause = _PAUSE_FIRST
        self.closed = False

    async def next(self) -> Event | Gap | None:
        """The next event; none when the session is over or the stream was closed."""
        if self._given_by_stream:
            self._session.acknowledge(self._given_by_stream)
        while not self._ready:
            if self.closed or self._session.over.is_set() or self._session.core.closed:
                return None
            try:
                await self._hear()
            except BaseException:
                # What was half read is read again.
                self._disconnect()
                raise
        found = self._ready.pop(0)
        self._given = found.last if isinstance(found, Gap) else found.number
        self._given_by_stream = self._given
        return found

    async def _hear(self) -> None:
        if self._connection is None and not await self._connect():
            return
        assert self._connection is not None
        try:
            data = await self._connection.reader.chunk(now() + _SILENCE)
        except FAILURES as error:
            return await self._broken(error)
        if not data:
            return await self._broken(None)
        self._pause = _PAUSE_FIRST
        for fields in self._parser.feed(data):
            self._take(fields)

    def _take(self, fields: dict[str, str]) -> None:
        kind, last = fields.get("event"), self._given
        if self._ready:
            newest = self._ready[-1]
            last = newest.last if isinstance(newest, Gap) else newest.number
        if kind == "over":
            self._session.over.set()
        elif kind == "event" and int(fields["id"]) > last:
            payload = decode_bytes(json.loads(fields["data"])["payload"])
            self._ready.append(Event(int(fields["id"]), payload))
        elif kind == "gap" and int(fields["id"]) > last:
            data = json.loads(fields["data"])
            self._ready.append(Gap(max(int(data["from"]), last + 1), int(data["to"])))

    async def _connect(self) -> bool:
        endpoint = self._session.core.at()
        headers = {
            "accept": "text/event-stream",
            "last-event-id": str(self._session.acknowledged),
        }
        request = Request("GET", f"/v1/sessions/{self._session.id}/events", headers)
        try:
            response, connection = await endpoint.follow(request, now() + _SILENCE)
        except Disconnected as error:
            await self._turn(endpoint, error)
            return False
        if connection is None:
            if isinstance(problem_of(response), SessionOver):
                self._session.over.set()
            else:
                await self._turn(endpoint, None)
            return False
        self._parser = Parser()
        self._connection, self._endpoint = connection, endpoint
        return True

    async def _broken(self, error: Exception | None) -> None:
        endpoint = self._endpoint
        self._disconnect()
        if endpoint is not None and not self.closed:
            await self._turn(endpoint, error)

    async def _turn(self, endpoint: Endpoint, error: Exception | None) -> None:
        core = self._session.core
        if error is not None:
            core.turn_from(endpoint)
        if not core.closed:
            await core.world.pause(self._pause)
            self._pause = min(2 * self._pause, _PAUSE_LONGEST)

    def _disconnect(self) -> None:
        connection, endpoint = self._connection, self._endpoint
        self._connection = self._endpoint = None
        if connection is not None and endpoint is not None:
            endpoint.release(connection)

    def reconnect(self) -> None:
        """Breaks the connection, as a network may; whoever waits for an event goes on waiting."""
        self._session.check_own()
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """Ends the stream; whoever waits for an event gets none."""
        self.closed = True
        self._session.check_own()
        if self._connection is not None:
            self._connection.close()
