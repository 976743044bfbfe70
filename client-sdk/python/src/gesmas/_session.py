"""Sessions: kept alive from aside, through any endpoint.

A keep-alive leaves every third of the timeout. The session is held for safe from the *first sending* of the last
message that was answered, never from the answer, so that the client doubts before the cluster expires it. An
opening is one message, however often it is sent: the cluster counts from the first that it got. Each keep-alive
is a message of its own, and the cluster hears it anew.
Invariants: ``is_lost`` looks at the clock and not at what a timer has noted, so a process that
stood still sees at once that it may have lost the session; a session that is over stays so; one whose opening or
closing is cancelled is closed all the same; a process uses no session of the process that it was forked from.
"""

from __future__ import annotations

import enum
import json
import secrets
import threading
from collections import Counter
from itertools import count

from ._clock import now, safe_until
from ._core import Core, checked
from ._forks import this_life
from ._http import Request
from ._types import format_seconds, parse_duration
from ._worlds import Signal, ends
from .errors import Closed, Forked, GesmasError, SessionOver, Unreachable

_ATTEMPT_LONGEST = 6.0
"""A replica confirms a keep-alive within five seconds or says that it cannot."""
_CLOSING = 5.0


class SessionState(enum.Enum):
    """Whether a session can be relied on."""

    OPEN = "open"
    DOUBTFUL = "doubtful"
    """The cluster may not have heard of it for its timeout: it may be over."""
    OVER = "over"


class SessionCore:
    """See the head of the file."""

    def __init__(self, core: Core, id: str, timeout: float, opened_at: float) -> None:
        self._core, self.id, self.timeout = core, id, timeout
        self._life = this_life()
        self._safe_until = safe_until(opened_at, timeout)
        self._acknowledged = 0
        self._announced = 0
        self._over = core.world.signal()
        self._owners = count(1)
        self._shares: Counter[object] = Counter()
        self._guard = threading.Lock()
        core.endings.add(self._over)
        core.world.aside(self._keep(), f"gesmas-session-{id}")

    @classmethod
    async def open(cls, core: Core, timeout: float, patience: float) -> SessionCore:
        key, sent_at = secrets.token_urlsafe(18), now()
        body = json.dumps({"timeout": format_seconds(timeout)}).encode("ascii")
        headers = {"content-type": "application/json", "idempotency-key": key}
        request = Request("POST", "/v1/sessions", headers, body)
        try:
            response = checked(await core.attempts(lambda _: request, sent_at + patience))
            opened = json.loads(response.body)
            granted = parse_duration(opened["timeout"]) / 1_000_000_000
            return cls(core, opened["session"], granted, sent_at)
        except Closed:
            await _close_unclaimed(core, request)
            raise
        except GesmasError:
            # It was refused, or nobody answers; one that was opened all the same expires.
            raise
        except BaseException:
            core.world.last_words(_close_unclaimed(core, request), "gesmas-session-unclaimed")
            raise

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to the process that this one was forked from."""
        return self._life is not this_life()

    def check_own(self) -> None:
        """Raises ``Forked`` in a child of the process that opened it."""
        if self.is_foreign:
            raise Forked(
                "forked",
                f"session {self.id} belongs to the process that opened it, and this one was forked from it",
                advice="open another session in this process",
            )

    @property
    def core(self) -> Core:
        self.check_own()
        return self._core

    @property
    def over(self) -> Signal:
        self.check_own()
        return self._over

    @property
    def state(self) -> SessionState:
        if self.over.is_set():
            return SessionState.OVER
        return SessionState.OPEN if now() < self._safe_until else SessionState.DOUBTFUL

    @property
    def is_lost(self) -> bool:
        return self.state is not SessionState.OPEN

    def new_owner(self) -> int:
        self.check_own()
        return next(self._owners)

    def share(self, what: object) -> None:
        """One guard more stands for something that the session has once, however often it asks."""
        with self._guard:
            self._shares[what] += 1

    def unshare(self, what: object) -> bool:
        """One guard less; tells whether it was the last."""
        with self._guard:
            self._shares[what] -= 1
            is_last = self._shares[what] <= 0
            if is_last:
                del self._shares[what]
            return is_last

    def acknowledge(self, number: int) -> None:
        """That event and all before were consumed; the next keep-alive says so."""
        self._acknowledged = max(self._acknowledged, number)

    @property
    def acknowledged(self) -> int:
        return self._acknowledged

    async def wait_lost(self, timeout: float | None) -> bool:
        """Waits until the session is, or may be, lost; tells whether it is."""
        until = None if timeout is None else now() + timeout
        while not self.is_lost:
            end = self._safe_until if until is None else min(until, self._safe_until)
            if until is not None and now() >= until:
                return False
            await ends(self.over, end)
        return True

    async def keep_alive(self, patience: float | None = None) -> None:
        """Shows that the client lives, and what it has of its events."""
        sent_at, acknowledged = now(), self._acknowledged
        attempt = min(self.timeout / 3, _ATTEMPT_LONGEST)

        def request(start: float) -> Request:
            nonlocal sent_at, acknowledged
            sent_at, acknowledged = start, self._acknowledged
            news = {"events": str(acknowledged)} if acknowledged > self._announced else {}
            headers = {"content-type": "application/json"}
            return Request("POST", f"{self._path}/keep-alive", headers, json.dumps(news).encode())

        until = now() + (self.timeout if patience is None else patience)
        response = await self.core.attempts(request, until, patience=attempt)
        try:
            checked(response)
        except SessionOver:
            self._end()
            raise
        self._safe_until = max(self._safe_until, safe_until(sent_at, self.timeout))
        self._announced = max(self._announced, acknowledged)

    @property
    def _path(self) -> str:
        return f"/v1/sessions/{self.id}"

    async def _keep(self) -> None:
        while not await ends(self._over, now() + self.timeout / 3):
            try:
                await self.keep_alive()
            except Unreachable:
                # Doubtful by now, and perhaps not over: the cluster counts no time in which it is down.
                continue
            except (Closed, SessionOver):
                return
            except GesmasError:
                continue

    def _end(self) -> None:
        self.over.set()
        self.core.endings.discard(self.over)

    async def close(self) -> None:
        """Ends the session in the cluster; without an answer it expires by itself."""
        self._end()
        try:
            await _close(self.core, self.id)
        except BaseException:
            self.core.world.last_words(_close(self.core, self.id), "gesmas-session-closing")
            raise


async def _close(core: Core, id: str) -> None:
    try:
        path = f"/v1/sessions/{id}"
        await core.ask("DELETE", path, timeout=_CLOSING, patience=_CLOSING, may_close=False)
    except GesmasError:
        pass


async def _close_unclaimed(core: Core, opening: Request) -> None:
    """Closes a session whose opening was given up: the same opening tells which it is."""
    try:
        until = now() + _CLOSING
        response = await core.attempts(lambda _: opening, until, patience=_CLOSING, may_close=False)
        await _close(core, json.loads(checked(response).body)["session"])
    except GesmasError:
        # It expires then.
        pass
