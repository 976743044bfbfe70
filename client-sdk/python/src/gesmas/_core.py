"""Calls and everything else that is asked for, through whichever endpoint answers.

What may be sent again is sent again until its deadline: reads, whatever is the same when it is done twice,
and updates, each under a key of its own. A server is asked for an answer within ``_SLICE`` seconds,
and the next request with the same key waits on, so that a replica that has gone silent is noticed.
Invariants: an update without a key is never sent again once a server may have got it; when the deadline
of one with a key has passed without word, it is withdrawn, which also tells what became of it; a call whose
caller is cancelled is withdrawn; the outcome of a call is forgotten only when no attempt at it can still be under
way somewhere.
Not here: what is kept alive (``_session.py``) and what is heard (``_events.py``).
"""

from __future__ import annotations

import enum
import json
import random
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from ._http import Endpoint, Request, Response
from ._interface import Interface, Method
from ._types import format_seconds
from ._worlds import Disconnected, Signal, World, now
from .errors import (
    ArgumentError,
    Closed,
    DeadlineExceeded,
    GesmasError,
    SessionOver,
    StillRunning,
    Unknown,
    Unreachable,
    of_problem,
)

_SLICE = 5.0
"""After how long a server is asked to answer, so that it is known to live."""
_SILENCE = 7.5
"""After how long without an answer another endpoint is tried."""
_GRACE = 5.0
"""How long after its deadline a call waits for word of what became of it."""
_LATE = 1.0
"""How long after a deadline the server's own word on it may take."""
_LONGEST = 12 * 3_600.0
"""The deadline of calls that have none; outcomes are kept a little longer, and a day at most."""
_FORGET_MAX = 50
"""Outcomes that one call has forgotten."""
_FORGET_KEPT = 1_000
"""Outcomes that wait for that; those that are too many expire in the cluster by themselves."""
_PAUSE_FIRST, _PAUSE_LONGEST = 0.02, 1.0


class Same(enum.Enum):
    """Stands for an option that is to stay as it is."""

    SAME = enum.auto()


SAME = Same.SAME


@dataclass(frozen=True)
class Options:
    """How calls are made."""

    timeout: float | None = 30.0
    idempotent: bool = True
    stale: bool = False
    key: str | None = None
    wait: float | None = None

    def changed(self, **changes: Any) -> Options:
        given = {name: value for name, value in changes.items() if value is not SAME}
        return replace(self, **given)


@dataclass
class _Trace:
    """What is known of the attempts at one thing."""

    sent: bool = False
    """It may be under way or have taken effect, as of before the last answer."""
    lost: bool = False
    """A server may have got it and may act on it only later: its answer was not heard."""
    last: str = "no endpoint answered"
    problem: GesmasError | None = None


class Core:
    """See the head of the file."""

    def __init__(self, endpoints: list[str], world: World) -> None:
        if not endpoints:
            raise ArgumentError("endpoints", "a client needs at least one endpoint")
        self.world = world
        self._endpoints = [Endpoint(address, world) for address in endpoints]
        # Clients with the same list do not all begin at the same replica.
        self._current = random.randrange(len(endpoints))
        self._interfaces: dict[str, Interface] = {}
        self._outcomes: deque[str] = deque(maxlen=_FORGET_KEPT)
        self.closed = False
        self.endings: set[Signal] = set()
        """What is told when the client is closed."""

    @property
    def endpoint(self) -> str:
        return self._endpoints[self._current].address

    def at(self) -> Endpoint:
        return self._endpoints[self._current]

    def turn_from(self, endpoint: Endpoint) -> None:
        """The next request goes elsewhere, unless another request has turned already."""
        if self.at() is endpoint:
            self._current = (self._current + 1) % len(self._endpoints)

    def close(self) -> None:
        self.closed = True
        for ending in list(self.endings):
            ending.set()
        for endpoint in self._endpoints:
            endpoint.close()

    # -- attempts ---------------------------------------------------------------------------------

    async def attempts(
        self,
        request_at: Callable[[float], Request],
        until: float,
        *,
        patience: float = _SILENCE,
        grace: float = 0.0,
        may_close: bool = True,
        trace: _Trace | None = None,
        again_if: Callable[[Response], bool] = lambda response: False,
    ) -> Response:
        """Sends a request that may be sent again, until it has an answer that counts.

        ``request_at`` gives it for each attempt, ``again_if`` says which answers do not count; an attempt may last
        until ``grace`` after the end, when the server's own word on the deadline comes.
        Raises ``Unreachable`` when the time is up."""
        trace = trace or _Trace()
        pause, failures = _PAUSE_FIRST, 0
        while True:
            if self.closed and may_close:
                raise Closed("closed", "the client was closed")
            endpoint, start = self.at(), now()
            if start >= until:
                raise Unreachable("unreachable", f"no replica served the request in time: {trace.last}")
            try:
                request = request_at(start)
                response = await endpoint.exchange(request, min(until + grace, start + patience))
            except Disconnected as error:
                trace.sent |= error.sent
                trace.lost |= error.sent
                trace.last = str(error)
            else:
                trace.sent |= response.status == 202
                if again_if(response):
                    continue
                if response.status != 503 and not _is_unknown(response):
                    return response
                # 503: nothing took effect.
                trace.sent |= response.status != 503
                trace.problem = problem_of(response)
                trace.last = trace.problem.detail
            self.turn_from(endpoint)
            failures += 1
            if failures % len(self._endpoints) == 0 and not self.closed:
                await self.world.pause(min(pause * (0.5 + random.random()), max(0.0, until - now())))
                pause = min(2 * pause, _PAUSE_LONGEST)

    async def ask(
        self, method: str, path: str, body: bytes = b"", *, timeout: float = 30.0, **more: Any
    ) -> Response:
        """Something that may be done twice, with an answer that is no failure."""
        request = Request(method, path, {"content-type": "application/json"} if body else {}, body)
        response = await self.attempts(lambda _: request, now() + timeout, **more)
        return checked(response)

    def done_with(self, outcome: str) -> None:
        """An outcome that nobody will ask for again; the next call has it forgotten."""
        self._outcomes.append(outcome)

    def outcomes(self) -> str:
        """Outcomes to forget, and from now on not to mention again."""
        taken: list[str] = []
        while self._outcomes and len(taken) < _FORGET_MAX:
            taken.append(self._outcomes.popleft())
        return ",".join(taken)

    # -- calls ------------------------------------------------------------------------------------

    async def interface(self, class_name: str, timeout: float) -> Interface:
        known = self._interfaces.get(class_name)
        if known is None:
            response = await self.ask("GET", f"/v1/classes/{quote(class_name, safe='')}", timeout=timeout)
            known = self._interfaces[class_name] = Interface(json.loads(response.body))
        return known

    async def call(
        self,
        target: str,
        name: str,
        arguments: Mapping[str, Any],
        options: Options,
        session: str | None,
    ) -> Any:
        """Calls a method."""
        class_name, object_name = split(target)
        timeout = _LONGEST if options.timeout is None else min(options.timeout, _LONGEST)
        until = now() + timeout
        interface = await self.interface(class_name, timeout)
        method = interface.method(name)
        call = _Call(self, method, target, until, options, session, method.body(arguments))
        try:
            if method.reads:
                return await call.read()
            if options.idempotent or options.key is not None:
                return await call.keyed(options.key or secrets.token_urlsafe(18))
            return await call.once()
        except GesmasError as error:
            if error.code in ("class-mismatch", "method-unknown", "argument"):
                # The class may have been replaced since its interface was asked for.
                self._interfaces.pop(class_name, None)
            raise

    async def create(self, target: str, arguments: Mapping[str, Any], timeout: float) -> None:
        class_name, _ = split(target)
        interface = await self.interface(class_name, timeout)
        body = interface.method("init").body(arguments)
        await self.ask("PUT", path_of(target), body, timeout=timeout)


class _Call:
    """One call."""

    def __init__(
        self,
        core: Core,
        method: Method,
        target: str,
        until: float,
        options: Options,
        session: str | None,
        body: bytes,
    ) -> None:
        self._core, self._method, self._until, self._body = core, method, until, body
        self._options, self._session = options, session
        self._path = f"{path_of(target)}/{quote(method.name, safe='')}"
        self._what = f"{method.name} of {target}"

    def _request(self, seconds: float, **headers: str) -> Request:
        sent = {"content-type": "application/json", "gesmas-deadline": format_seconds(seconds)}
        if self._session is not None:
            sent["gesmas-session"] = self._session
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return Request("POST", self._path, sent, self._body)

    def _left(self, start: float) -> float:
        return max(0.001, self._until - start)

    def _result(self, response: Response) -> Any:
        if response.status == 200:
            return self._method.result_of(response.body)
        raise problem_of(response, self._method)

    async def read(self) -> Any:
        stale = {"gesmas_consistency": "stale"} if self._options.stale else {}

        def request(start: float) -> Request:
            seconds = min(_SLICE, self._left(start))
            return self._request(seconds, **stale)

        def is_slow(response: Response) -> bool:
            # Its own time was up, not that of the call: another replica may know more.
            return response.status == 504 and now() < self._until

        response = await self._core.attempts(request, self._until, grace=_LATE, again_if=is_slow)
        return self._result(response)

    async def once(self) -> Any:
        """Without a key: at most once, and cancelled by hanging up."""
        until = self._until + _GRACE
        while True:
            if self._core.closed:
                raise Closed("closed", "the client was closed")
            endpoint, start = self._core.at(), now()
            plain = self._request(self._left(start))
            request = Request(plain.method, plain.path, plain.headers, plain.body, fresh=True)
            try:
                response = await endpoint.exchange(request, until)
            except Disconnected as error:
                if error.sent:
                    what = f"the connection broke while {self._what} was under way: {error}"
                    raise Unknown("unknown", what) from error
                last = str(error)
            else:
                if response.status != 503:
                    return self._result(response)
                last = problem_of(response).detail
            self._core.turn_from(endpoint)
            if now() >= self._until:
                raise Unreachable("unreachable", f"no replica took {self._what} in time: {last}")
            await self._core.world.pause(min(_PAUSE_FIRST, self._left(now())))

    async def keyed(self, key: str) -> Any:
        """Under a key: exactly once, through whatever replicas."""
        trace = _Trace()
        try:
            return await self._keyed(key, trace)
        except StillRunning:
            raise
        except GesmasError as error:
            if isinstance(error, Closed) and trace.sent:
                await self._withdraw_quietly(key)
            if isinstance(error, SessionOver) and trace.sent:
                what = f"the session ended while {self._what} was under way"
                raise Unknown("unknown", what) from error
            raise
        except BaseException:
            # The caller gives up: a key would let the call run on without it.
            self._core.world.last_words(self._withdraw_quietly(key))
            raise

    async def _keyed(self, key: str, trace: _Trace) -> Any:
        wait = self._options.wait
        ends = None if wait is None else now() + wait
        forget = self._core.outcomes()

        def request(start: float) -> Request:
            left = self._left(start)
            seconds = _SLICE if ends is None else min(_SLICE, max(0.0, ends - start))
            # A whole number of seconds that is not shorter: answers come sooner if there are any.
            slice_ = str(min(int(seconds) + (seconds % 1 > 0), int(left) + 2))
            more = {"gesmas_forget": forget} if forget else {}
            return self._request(left, idempotency_key=key, prefer=f"wait={slice_}", **more)

        def is_running(response: Response) -> bool:
            return response.status == 202 and (ends is None or now() < ends) and now() < self._until

        try:
            response = await self._core.attempts(
                request, self._until, grace=_LATE, trace=trace, again_if=is_running
            )
        except Unreachable:
            if not trace.sent:
                raise
            return await self._settle(key)
        if response.status == 202:
            if ends is not None and now() < self._until:
                raise StillRunning(key)
            return await self._settle(key)
        outcome = response.headers.get("gesmas-outcome")
        if outcome is not None and self._options.key is None and not trace.lost:
            self._core.done_with(outcome)
        return self._result(response)

    async def _settle(self, key: str) -> Any:
        """The deadline has passed without word: whatever the call does now, it stops, and says what it
        did."""
        try:
            response = await self._withdraw(key, now() + _GRACE)
        except Unreachable as error:
            what = f"nobody has said what became of {self._what}: {error.detail}"
            raise Unknown("unknown", what) from error
        if response.status == 409 and problem_of(response).code == "cancelled":
            raise DeadlineExceeded("cancelled", f"the time was up for {self._what}")
        return self._result(response)

    async def _withdraw(self, key: str, until: float) -> Response:
        request = self._request(_GRACE, idempotency_key=key, gesmas_cancel="true")
        return await self._core.attempts(lambda _: request, until, patience=_GRACE, may_close=False)

    async def _withdraw_quietly(self, key: str) -> None:
        try:
            await self._withdraw(key, now() + _GRACE)
        except GesmasError:
            # It ends by its deadline then.
            pass


def split(target: str) -> tuple[str, str]:
    """Class and name of ``Class/name``."""
    class_name, slash, object_name = target.partition("/")
    if not (slash and class_name and object_name):
        raise ArgumentError("name", f"an object is named as Class/name, not {target!r}")
    return class_name, object_name


def path_of(target: str) -> str:
    class_name, object_name = split(target)
    return f"/v1/objects/{quote(class_name, safe='')}/{quote(object_name, safe='')}"


def _parsed(response: Response) -> dict[str, Any]:
    try:
        parsed = json.loads(response.body)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {}


def problem_of(response: Response, method: Method | None = None) -> GesmasError:
    """The error that an answer stands for."""
    problem = _parsed(response)
    error = problem.get("error") if method is None else method.error_of(problem)
    return of_problem(response.status, problem, error)


def checked(response: Response) -> Response:
    if response.status >= 300:
        raise problem_of(response)
    return response


def _is_unknown(response: Response) -> bool:
    return response.status == 504 and str(_parsed(response).get("type", "")).endswith(":unknown")
