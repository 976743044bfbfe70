"""The standard classes for asyncio, as ``gesmas.standard`` has them for threads.

Each is a handle to an object by its name; the object needs no handle to exist. What a handle takes belongs to a
guard (``_grants.py``). What is not here is called by its name: ``session.call("Latch/ready", "count_down")``.
"""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Any, cast

from .._call import Options, call
from .._clock import now, safe_until
from .._grants import Asked, Grant, Way, acquire
from .client import Caller, Session
from ..errors import ClassError, Forked, GesmasError, NotHeld, SessionOver
from ..values import Duration, Record, seconds_of


class Handle:
    """A named object, and what it is called through."""

    CLASS = ""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self.name = name

    @property
    def target(self) -> str:
        return f"{self.CLASS}/{self.name}"

    async def _call(self, method: str, /, **arguments: Any) -> Any:
        return await self._caller.call(self.target, method, **arguments)

    async def _call_endless(self, method: str, /, **arguments: Any) -> Any:
        """Calls a method that may wait for ever."""
        return await self._caller.options(timeout=None).call(self.target, method, **arguments)

    async def _call_within(self, seconds: float, method: str, /, **arguments: Any) -> Any:
        """Calls a method that says by itself when ``seconds`` are up, and so gets a little longer."""
        return await self._caller.options(timeout=seconds + 15.0).call(self.target, method, **arguments)


class Queue(Handle):
    """``Queue``: bounded, first in first out. An item is gone once it is taken."""

    CLASS = "Queue"

    async def create(self, capacity: int) -> None:
        await self._caller.create(self.target, capacity=capacity)

    async def put(self, item: bytes | str, timeout: float | None = None) -> bool:
        """Appends an item; with a timeout, tells whether there was room in time."""
        if timeout is None:
            await self._call_endless("produce", item=item)
            return True
        return cast(bool, await self._call_within(timeout, "produce_for", item=item, duration=timeout))

    async def get(self, timeout: float | None = None) -> bytes | None:
        """Takes the oldest item; with a timeout, nothing if there was none in time."""
        if timeout is None:
            return cast(bytes, await self._call_endless("consume"))
        return cast("bytes | None", await self._call_within(timeout, "consume_for", duration=timeout))

    async def get_nowait(self) -> bytes | None:
        return cast("bytes | None", await self._call("try_consume"))

    async def length(self) -> int:
        return cast(int, await self._call("length"))


class Counter(Handle):
    """``Counter``: a number that many change at once."""

    CLASS = "Counter"

    async def get(self) -> int:
        return cast(int, await self._call("get"))

    async def add(self, number: int = 1) -> int:
        """Adds, and returns the new count."""
        return cast(int, await self._call("add", number=number))

    async def reset(self) -> int:
        """Sets it to 0, and returns what it was."""
        return cast(int, await self._call("reset"))


class Barrier(Handle):
    """``Barrier``: parties wait for each other, again and again."""

    CLASS = "Barrier"

    async def create(self, parties: int) -> None:
        await self._caller.create(self.target, parties=parties)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Blocks until all parties wait, and returns their generation; with a timeout, nothing if
        they were not there in time."""
        if timeout is None:
            return cast(int, await self._call_endless("wait"))
        return cast("int | None", await self._call_within(timeout, "wait_for", duration=timeout))


class Guard:
    """Something that is held under a fencing token, until its guard is released.

    It is given back by ``release``, at the end of its context, or when nobody has the guard any more. What works
    under it looks at ``is_lost``, stops when it is, and hands ``token`` to what it works on, which refuses
    smaller tokens than it has seen."""

    def __init__(self, grant: Grant, token: int) -> None:
        self._grant = grant
        self.token = token

    @property
    def is_lost(self) -> bool:
        """Whether it is given back, or is, or may be, lost."""
        self._grant.check_own()
        return self._grant.is_left or self._may_be_over()

    def check(self) -> None:
        """Raises ``SessionOver`` if it is, or may be, lost, and ``NotHeld`` if it is given back or has run
        out."""
        self._grant.check_own()
        if self._grant.is_left:
            raise NotHeld("not-held", "it was given back")
        if self._may_be_over():
            raise self._why()

    def _may_be_over(self) -> bool:
        raise NotImplementedError

    def _why(self) -> GesmasError:
        raise NotImplementedError

    async def release(self) -> None:
        """Gives it back; again changes nothing. That goes on aside if it is cancelled, or fails for want
        of an answer. ``ClassError`` or ``SessionOver`` if it was lost before."""
        await self._grant.give_back()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        except (ClassError, SessionOver, Forked):
            # An error in the context is not hidden by one here: what is lost has been given back.
            if error is None:
                raise

    def __del__(self) -> None:
        if hasattr(self, "_grant"):
            self._grant.drop()


class Held(Guard):
    """The guard of something that a session holds."""

    def __init__(self, session: Session, grant: Grant, token: int) -> None:
        super().__init__(grant, token)
        self.session = session

    def _may_be_over(self) -> bool:
        return self.session.is_lost

    def _why(self) -> GesmasError:
        return SessionOver("session-unknown", f"session {self.session.id} may be over")

    async def wait_lost(self, timeout: float | None = None) -> bool:
        """Waits until its session is, or may be, over; tells whether it is."""
        return await self.session.wait_lost(timeout)

    async def __aenter__(self) -> Held:
        return self


class Holding(Handle):
    """A handle to something that a session can hold. What it takes belongs to a guard from then on; a call that
    is given up while it takes leaves nothing behind."""

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._session = session

    async def _take(self, way: Way, timeout: float | None) -> Held | None:
        def guard(result: Any, grant: Grant) -> Held:
            return Held(self._session, grant, result)

        core = self._session._session
        return await acquire(core.core, core, way, timeout, guard)

    async def release(self, held: Held) -> None:
        """The same as ``held.release()``."""
        await held.release()


class Lock(Holding):
    """``Lock``: one holder, fair, fenced. As a context it is held within; each handle is an owner of
    its own, and one that has the lock gets it again, as often as it is given back."""

    CLASS = "Lock"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._owner = session.new_owner()
        self._held: list[Held] = []

    async def acquire(self, timeout: float | None = None) -> Held | None:
        """Takes the lock; with a timeout, nothing if it was not free in time."""
        owner = {"owner": self._owner}
        way = Way(
            self.target,
            endless=Asked("lock", owner),
            timed=lambda seconds: Asked("lock_for", owner | {"duration": seconds}),
            at_once=Asked("try_lock", owner),
            back=lambda token: Asked("unlock", {"token": token}),
        )
        return await self._take(way, timeout)

    async def holder(self) -> Record | None:
        """The session and owner that hold it."""
        return cast("Record | None", await self._call("holder"))

    async def __aenter__(self) -> Held:
        held = await self.acquire()
        assert held is not None
        try:
            self._held.append(held)
            return held
        except BaseException:
            # The context is not entered and will not be left: nobody has it.
            self._held = [other for other in self._held if other is not held]
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._held.pop().__aexit__(kind, error, trace)


class RwLock(Holding):
    """``RwLock``: many readers or one writer, fair, fenced."""

    CLASS = "RwLock"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._owner = session.new_owner()

    async def read(self, timeout: float | None = None) -> Held | None:
        """Takes it for reading; with a timeout, nothing if that was not possible in time."""
        return await self._take(self._way("read_lock"), timeout)

    async def write(self, timeout: float | None = None) -> Held | None:
        """Takes it for writing; with a timeout, nothing if that was not possible in time."""
        return await self._take(self._way("write_lock"), timeout)

    def _way(self, method: str) -> Way:
        owner = {"owner": self._owner}
        return Way(
            self.target,
            endless=Asked(method, owner),
            timed=lambda seconds: Asked(f"{method}_for", owner | {"duration": seconds}),
            at_once=Asked(f"try_{method}", owner),
            back=lambda token: Asked("unlock", {"token": token}),
        )


class Semaphore(Holding):
    """``Semaphore``: permits that the session holds, fair."""

    CLASS = "Semaphore"

    async def create(self, permits: int) -> None:
        await self._caller.create(self.target, permits=permits)

    async def acquire(self, permits: int = 1, timeout: float | None = None) -> Held | None:
        """Takes permits, whose guard gives all of them back; with a timeout, nothing if they were not free
        in time."""
        wanted = {"permits": permits}
        way = Way(
            self.target,
            endless=Asked("acquire", wanted),
            timed=lambda seconds: Asked("acquire_for", wanted | {"duration": seconds}),
            at_once=Asked("try_acquire", wanted),
            back=lambda grant: Asked("release", {"grant": grant}),
        )
        return await self._take(way, timeout)

    async def available(self) -> int:
        return cast(int, await self._call("available"))


class Election(Holding):
    """``Election``: one candidate leads at a time, fenced."""

    CLASS = "Election"

    async def campaign(self, candidate: bytes | str, timeout: float | None = None) -> Held | None:
        """Blocks until this session leads; with a timeout, nothing if it did not in time. The guard
        resigns."""
        said = {"candidate": candidate}
        way = Way(
            self.target,
            endless=Asked("campaign", said),
            at_once=Asked("try_campaign", said),
            back=lambda token: Asked("resign", {"token": token}),
            is_shared=True,
        )
        return await self._take(way, timeout)

    async def resign(self, held: Held) -> None:
        """The same as ``held.release()``."""
        await held.release()

    async def leader(self) -> Record | None:
        """The candidate that leads."""
        return cast("Record | None", await self._call("leader"))


_ALWAYS = 100 * 365 * 86_400 * 1_000_000_000
"""Longer than anybody waits, nanoseconds."""


class Membership(Holding):
    """``Membership``: who is there, with what each says of itself."""

    CLASS = "Membership"

    async def join(
        self, name: str, metadata: bytes | str = b"", timeout: float | None = 0.0
    ) -> Held | None:
        """The session is a member from now on, until its guard is released. While another session has the name:
        ``ClassError`` with ``NameTaken``, or with a timeout it waits, and returns nothing if that session was
        not over in time."""
        said = {"name": name, "metadata": metadata}
        way = Way(
            self.target,
            endless=Asked("join_for", said | {"duration": Duration(_ALWAYS)}),
            timed=lambda seconds: Asked("join_for", said | {"duration": seconds}),
            at_once=Asked("join", said),
            back=lambda token: Asked("leave", {"name": name, "token": token}),
            is_shared=True,
        )
        return await self._take(way, timeout)

    async def update(self, held: Held, name: str, metadata: bytes | str) -> int:
        """The member says something else of itself; returns the version of the change."""
        held.check()
        said = {"name": name, "token": held.token, "metadata": metadata}
        return cast(int, await self._call("update", **said))


def proof(granted: Record) -> dict[str, Any]:
    """What a lease is renewed and given back with."""
    return {name: granted[name] for name in ("key", "token") if name in granted}


class Leased(Guard):
    """The guard of a lease, which lasts for a time and is kept by ``renew``, in a session or in none. What it knows
    of its end is counted from the first sending of the last renewal that was answered."""

    def __init__(self, handle: Lease, grant: Grant, granted: Record) -> None:
        super().__init__(grant, granted.token)
        self._handle, self._proof = handle, proof(granted)
        self._safe_until = 0.0

    def _may_be_over(self) -> bool:
        return now() >= self._safe_until

    def _why(self) -> GesmasError:
        return NotHeld("not-held", f"{self._handle.target} may have run out")

    async def renew(self, duration: float | timedelta) -> None:
        """It lasts that long from now; ``ClassError`` with ``NotHeld`` if it has run out."""
        self._grant.check_own()
        sent_at, seconds = now(), seconds_of(duration)
        await self._handle._renew(self._proof | {"duration": duration})
        self._safe_until = safe_until(sent_at, seconds)

    async def __aenter__(self) -> Leased:
        return self


class Lease(Handle):
    """``Lease``: something that one holder has for a time, of a session or of nobody."""

    CLASS = "Lease"

    async def acquire(
        self, holder: bytes | str, duration: float | timedelta, timeout: float | None = None
    ) -> Leased | None:
        """Takes the lease for that long; with a timeout, nothing if it was not free in time."""
        said = {"holder": holder, "duration": duration}
        way = Way(
            self.target,
            endless=Asked("acquire", said),
            timed=lambda seconds: Asked("acquire_for", said | {"patience": seconds}),
            at_once=Asked("try_acquire", said),
            back=lambda granted: Asked("release", proof(granted)),
            lasts=seconds_of(duration),
        )
        core, session = self._caller._core, self._caller._session_core
        until = None if timeout is None else now() + timeout

        def guard(granted: Any, grant: Grant) -> Leased:
            return Leased(self, grant, granted)

        while True:
            left = None if until is None else max(0.0, until - now())
            leased = await acquire(core, session, way, left, guard)
            if leased is None:
                return None
            try:
                # Only a renewal tells from when it lasts: nobody knows how long the grant was on its way.
                await leased.renew(duration)
                return leased
            except ClassError:
                # It has run out on the way.
                leased._grant.is_left = True
            except BaseException:
                leased._grant.give_up()
                raise

    async def holder(self) -> Record | None:
        """What the holder said of itself, and until when it holds."""
        return cast("Record | None", await self._call("holder"))

    async def _renew(self, said: dict[str, Any]) -> None:
        core, session, options = self._caller._core, self._caller._session_core, Options()
        await call(core, self.target, "renew", said, options, session, fits=True)
