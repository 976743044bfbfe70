"""Calls: reads, updates under a key, updates without one.

An update has a key of its own, unless its caller wants none, and is sent again under it until its time is up. A
server is asked for an answer within ``_SLICE`` seconds, and the next request with the same key waits on, so
that a replica that has gone silent is noticed.
Invariants: an update without a key is never sent again once a server may have got it; when the deadline
of one with a key has passed without word, it is withdrawn, which also tells what became of it; a call whose
caller gives it up is withdrawn, and its ``Fate`` is found by ``fate_of``; a wait without a limit has none; the
outcome of a call is forgotten only when no attempt at it can still be under way somewhere.
Not here: what is done with a result that nobody took (``_grants.py``).
"""

from __future__ import annotations

import enum
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import quote

from ._clock import now
from ._core import Core, Trace, path_of, problem_of, split
from ._http import Request, Response
from ._interface import Method
from ._session import SessionCore
from ._types import format_seconds
from ._worlds import Disconnected, Signal, World
from .errors import (
    Cancelled,
    ClassError,
    Closed,
    DeadlineExceeded,
    GesmasError,
    SessionOver,
    StillRunning,
    Unknown,
    Unreachable,
)

_SLICE = 5.0
"""After how long a server is asked to answer, so that it is known to live."""
_GRACE = 5.0
"""How long after its deadline a call waits for word of what became of it."""
_LATE = 1.0
"""How long after a deadline the server's own word on it may take."""
_LONGEST = 12 * 3_600.0
"""The longest deadline that the cluster is told. A call of a session has none instead of a longer one, since
the end of its session ends it."""
_ROUND = 600.0
"""A call of nobody and without a limit must not outlive its client by more: it is made again after that time."""
_PAUSE = 0.02


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


class Ending(enum.Enum):
    """How a call ended whose caller had given it up."""

    WITHDRAWN = "withdrawn"
    """It did nothing; or it was blocked, and what it had done before it blocked stands."""
    RETURNED = "returned"
    """It was served first, and had a result."""
    FAILED = "failed"
    """It had an error of its own first."""
    UNKNOWN = "unknown"
    """Nobody has said it in time: it may have any end, or run on to its deadline or the end of its session."""


@dataclass(frozen=True)
class Fate:
    """What became of a call whose caller had given it up: a task that was cancelled, Ctrl-C, a closed client."""

    ending: Ending
    result: Any = None
    error: GesmasError | None = None


class Given(Protocol):
    """What a caller is given for the result of a call, and how that is undone if nobody takes it."""

    def accept(self, result: Any, key: str) -> Any: ...

    @property
    def is_accepted(self) -> bool: ...

    async def undo(self, result: Any, key: str) -> None: ...

    async def undo_accepted(self) -> None: ...


class FateCore:
    """A fate that may not be known yet."""

    _NAME = "_gesmas_fate"

    def __init__(self, world: World, error: BaseException) -> None:
        self._known: Signal = world.signal()
        self._fate = Fate(Ending.UNKNOWN)
        setattr(error, self._NAME, self)

    def tell(self, fate: Fate) -> None:
        self._fate = fate
        self._known.set()

    async def learn(self) -> Fate:
        while not self._known.is_set():
            await self._known.wait(1.0)
        return self._fate

    @classmethod
    def of(cls, error: BaseException | None) -> FateCore | None:
        """That of the call that an error, or what it came from, was raised by."""
        for _ in range(100):
            if error is None:
                break
            found = getattr(error, cls._NAME, None)
            if isinstance(found, cls):
                return found
            error = error.__cause__ or error.__context__
        return None


async def call(
    core: Core,
    target: str,
    name: str,
    arguments: Mapping[str, Any],
    options: Options,
    session: SessionCore | None,
    *,
    given: Given | None = None,
    key: str | None = None,
    settles: bool = True,
    fits: bool = False,
) -> Any:
    """Calls a method.

    ``given`` turns the result into what the caller gets; ``key`` is a random one that the caller has chosen;
    a call that does not settle is never withdrawn: its caller makes it again, under the same key; ``fits`` leaves
    out arguments that the method has no parameter for."""
    if session is not None:
        session.check_own()
    class_name, _ = split(target)
    until = math.inf if options.timeout is None else now() + options.timeout
    while True:
        end = _end_of_round(until, options, session)
        interface = await core.interface(class_name, end - now())
        method = interface.method(name)
        body = method.body(method.fitting(arguments) if fits else arguments)
        made = Call(core, method, target, end, options, session, body, given, settles)
        try:
            if method.reads:
                return await made.read()
            if options.idempotent or options.key is not None:
                return await made.keyed(options.key or key or secrets.token_urlsafe(18))
            return await made.once()
        except GesmasError as error:
            if error.code in ("class-mismatch", "method-unknown", "argument"):
                # The class may have been replaced since its interface was asked for.
                core.forget_interface(class_name)
            if not (end < until and now() >= end and options.key is None and is_late(error)):
                raise


def _end_of_round(until: float, options: Options, session: SessionCore | None) -> float:
    if session is not None or not (options.idempotent or options.key is not None):
        return until
    return min(until, now() + (_ROUND if until == math.inf and options.key is None else _LONGEST))


def is_late(error: GesmasError) -> bool:
    """Whether a call did nothing, or cleaned up, for want of time."""
    if isinstance(error, ClassError):
        return error.variant == "Cancelled"
    return isinstance(error, (DeadlineExceeded, Cancelled, Unreachable))


class Call:
    """One call."""

    def __init__(
        self,
        core: Core,
        method: Method,
        target: str,
        until: float,
        options: Options,
        session: SessionCore | None,
        body: bytes,
        given: Given | None,
        settles: bool,
    ) -> None:
        self._core, self._method, self._until, self._body = core, method, until, body
        self._options, self._session, self._given, self._settles = options, session, given, settles
        self._path = f"{path_of(target)}/{quote(method.name, safe='')}"
        self._what = f"{method.name} of {target}"

    def _request(self, seconds: float, **headers: str) -> Request:
        deadline = "none" if seconds > _LONGEST else format_seconds(seconds)
        sent = {"content-type": "application/json", "gesmas-deadline": deadline}
        if self._session is not None:
            sent["gesmas-session"] = self._session.id
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
        try:
            return await self._once()
        except GesmasError:
            raise
        except BaseException as error:
            FateCore(self._core.world, error).tell(Fate(Ending.UNKNOWN))
            raise

    async def _once(self) -> Any:
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
            await self._core.world.pause(min(_PAUSE, self._left(now())))

    async def keyed(self, key: str) -> Any:
        """Under a key: exactly once, through whatever replicas."""
        trace = Trace()
        try:
            return await self._keyed(key, trace)
        except StillRunning:
            raise
        except GesmasError as error:
            if not self._settles:
                raise
            if isinstance(error, Closed) and trace.sent:
                await self._give_up(key, FateCore(self._core.world, error))
            if isinstance(error, SessionOver) and trace.sent:
                what = f"the session ended while {self._what} was under way"
                raise Unknown("unknown", what) from error
            if isinstance(error, Unknown) and self._given is not None:
                # Its caller does not wait longer; what it may still be granted is nobody's.
                self._core.world.aside(self._give_up(key, None), "gesmas-withdrawal")
            raise
        except BaseException as error:
            # The caller gives up: a key would let the call run on without it.
            if self._settles:
                fate = FateCore(self._core.world, error)
                self._core.world.last_words(self._give_up(key, fate), "gesmas-withdrawal")
            raise

    async def _keyed(self, key: str, trace: Trace) -> Any:
        wait = self._options.wait
        ends = None if wait is None else now() + wait
        forget = self._core.outcomes()

        def request(start: float) -> Request:
            left = self._left(start)
            seconds = _SLICE if ends is None else min(_SLICE, max(0.0, ends - start))
            # A whole number of seconds that is not shorter: answers come sooner if there are any.
            slice_ = str(min(math.ceil(seconds), int(min(left, _LONGEST)) + 2))
            more = {"gesmas_forget": forget} if forget else {}
            return self._request(left, idempotency_key=key, prefer=f"wait={slice_}", **more)

        def is_running(response: Response) -> bool:
            return response.status == 202 and (ends is None or now() < ends) and now() < self._until

        try:
            # What is given back is given back although the client is being closed.
            may_close = self._settles
            response = await self._core.attempts(
                request, self._until, grace=_LATE, trace=trace, again_if=is_running, may_close=may_close
            )
        except Unreachable:
            if not trace.sent:
                raise
            return self._accepted(await self._settle(key), key)
        if response.status == 202:
            if ends is not None and now() < self._until:
                raise StillRunning(key)
            return self._accepted(await self._settle(key), key)
        try:
            return self._accepted(self._result(response), key)
        finally:
            # Not before it is accepted: until then the call may have to be withdrawn.
            outcome = response.headers.get("gesmas-outcome")
            if outcome is not None and self._options.key is None and not trace.lost:
                self._core.done_with(outcome)

    def _accepted(self, result: Any, key: str) -> Any:
        return result if self._given is None else self._given.accept(result, key)

    async def _settle(self, key: str) -> Any:
        """The deadline has passed without word: whatever the call does now, it stops, and says what it
        did."""
        what = f"nobody has said what became of {self._what}"
        if not self._settles:
            raise Unknown("unknown", what)
        try:
            response = await self._withdraw(key, now() + _GRACE)
        except Unreachable as error:
            raise Unknown("unknown", f"{what}: {error.detail}") from error
        if response.status == 409 and problem_of(response).code == "cancelled":
            raise DeadlineExceeded("cancelled", f"the time was up for {self._what}")
        return self._result(response)

    async def _withdraw(self, key: str, until: float) -> Response:
        request = self._request(_GRACE, idempotency_key=key, gesmas_cancel="true")
        return await self._core.attempts(lambda _: request, until, patience=_GRACE, may_close=False)

    async def _give_up(self, key: str, fate: FateCore | None) -> None:
        """Withdraws the call, and undoes what it gave to nobody."""
        end, given = Fate(Ending.UNKNOWN), self._given
        try:
            if given is not None and given.is_accepted:
                await given.undo_accepted()
                return
            response = await self._withdraw_at_last(key)
            end = self._end_of(response)
            if end.ending is Ending.RETURNED and given is not None:
                await given.undo(end.result, key)
        except GesmasError:
            # The call ends by its deadline or with its session then.
            pass
        finally:
            if fate is not None:
                fate.tell(end)

    async def _withdraw_at_last(self, key: str) -> Response:
        """What might hold something is withdrawn however long that takes: the end of its session is the
        other end of it."""
        while True:
            try:
                return await self._withdraw(key, now() + _GRACE)
            except Unreachable:
                session = self._session
                if self._given is None or session is None or session.over.is_set():
                    raise

    def _end_of(self, response: Response) -> Fate:
        try:
            return Fate(Ending.RETURNED, result=self._result(response))
        except GesmasError as error:
            is_withdrawn = isinstance(error, (Cancelled, DeadlineExceeded)) or is_late(error)
            ending = Ending.WITHDRAWN if is_withdrawn else Ending.FAILED
            return Fate(ending, error=error)
