"""The standard classes that one would otherwise wrap by hand: thin, typed, in the words of the classes.

Each is a handle to an object by its name; the object needs no handle to exist. Whatever holds something needs a
session. What is not here is called by its name: ``session.call("Latch/ready", "count_down")``.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

from .client import Caller, Session
from .errors import ClassError, SessionOver
from .values import Record


class Handle:
    """A named object, and what it is called through."""

    CLASS = ""

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self.name = name

    @property
    def target(self) -> str:
        return f"{self.CLASS}/{self.name}"

    def _call(self, method: str, /, **arguments: Any) -> Any:
        return self._caller.call(self.target, method, **arguments)

    def _call_within(self, seconds: float, method: str, /, **arguments: Any) -> Any:
        """Calls a method that says by itself when ``seconds`` are up, and so gets a little longer."""
        return self._caller.options(timeout=seconds + 15.0).call(self.target, method, **arguments)


class Queue(Handle):
    """``Queue``: bounded, first in first out. An item is gone once it is taken."""

    CLASS = "Queue"

    def create(self, capacity: int) -> None:
        self._caller.create(self.target, capacity=capacity)

    def put(self, item: bytes | str, timeout: float | None = None) -> bool:
        """Appends an item; with a timeout, tells whether there was room in time."""
        if timeout is None:
            self._call("produce", item=item)
            return True
        return cast(bool, self._call_within(timeout, "produce_for", item=item, duration=timeout))

    def get(self, timeout: float | None = None) -> bytes | None:
        """Takes the oldest item; with a timeout, nothing if there was none in time."""
        if timeout is None:
            return cast(bytes, self._call("consume"))
        return cast("bytes | None", self._call_within(timeout, "consume_for", duration=timeout))

    def get_nowait(self) -> bytes | None:
        return cast("bytes | None", self._call("try_consume"))

    def __len__(self) -> int:
        return cast(int, self._call("length"))


class Counter(Handle):
    """``Counter``: a number that many change at once."""

    CLASS = "Counter"

    def get(self) -> int:
        return cast(int, self._call("get"))

    def add(self, number: int = 1) -> int:
        """Adds, and returns the new count."""
        return cast(int, self._call("add", number=number))

    def reset(self) -> int:
        """Sets it to 0, and returns what it was."""
        return cast(int, self._call("reset"))


class Barrier(Handle):
    """``Barrier``: parties wait for each other, again and again."""

    CLASS = "Barrier"

    def create(self, parties: int) -> None:
        self._caller.create(self.target, parties=parties)

    def wait(self, timeout: float | None = None) -> int | None:
        """Blocks until all parties wait, and returns their generation; with a timeout, nothing if
        they were not there in time."""
        if timeout is None:
            return cast(int, self._call("wait"))
        return cast("int | None", self._call_within(timeout, "wait_for", duration=timeout))


class Held:
    """Something that a session holds under a fencing token.

    Whoever works under it looks at ``is_lost``, stops when it is, and hands ``token`` to whatever it works
    on, which refuses smaller tokens than it has seen."""

    def __init__(self, session: Session, token: int) -> None:
        self.session = session
        self.token = token

    @property
    def is_lost(self) -> bool:
        """Whether it is, or may be, lost."""
        return self.session.is_lost

    def wait_lost(self, timeout: float | None = None) -> bool:
        """Waits until it is, or may be, lost; tells whether it is."""
        return self.session.wait_lost(timeout)

    def check(self) -> None:
        """Raises ``SessionOver`` if it is, or may be, lost."""
        if self.is_lost:
            raise SessionOver("session-unknown", f"session {self.session.id} may be over")


class Lock(Handle):
    """``Lock``: one holder, fair, fenced. As a context it is held within; each handle is an owner of
    its own, and one that has the lock gets it again."""

    CLASS = "Lock"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._session = session
        self._owner = session.new_owner()
        self._held: list[Held] = []

    def acquire(self, timeout: float | None = None) -> Held | None:
        """Takes the lock; with a timeout, nothing if it was not free in time."""
        if timeout is None:
            caller = self._session.options(timeout=None)
            token = caller.call(self.target, "lock", owner=self._owner)
        elif timeout <= 0:
            token = self._call("try_lock", owner=self._owner)
        else:
            token = self._call_within(timeout, "lock_for", owner=self._owner, duration=timeout)
        return None if token is None else Held(self._session, token)

    def release(self, held: Held) -> None:
        """Gives the lock back; ``ClassError`` with ``NotHeld`` if it is not held any more."""
        self._call("unlock", token=held.token)

    def holder(self) -> Record | None:
        """Who holds it."""
        return cast("Record | None", self._call("holder"))

    def __enter__(self) -> Held:
        held = self.acquire()
        assert held is not None
        self._held.append(held)
        return held

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        release_quietly(self, self._held.pop(), error is not None)


def release_quietly(lock: Lock, held: Held, failing: bool) -> None:
    """Gives a lock back at the end of its context. An error in the context is not hidden by one here: a session
    that is over has given the lock back already."""
    try:
        lock.release(held)
    except (ClassError, SessionOver):
        if not failing:
            raise


class Semaphore(Handle):
    """``Semaphore``: permits that the session holds, fair."""

    CLASS = "Semaphore"

    def create(self, permits: int) -> None:
        self._caller.create(self.target, permits=permits)

    def acquire(self, permits: int = 1, timeout: float | None = None) -> int | None:
        """Takes permits and returns the grant that gives them back; with a timeout, nothing if they were
        not free in time."""
        if timeout is None:
            caller = self._caller.options(timeout=None)
            return cast(int, caller.call(self.target, "acquire", permits=permits))
        grant = self._call_within(timeout, "acquire_for", permits=permits, duration=timeout)
        return cast("int | None", grant)

    def release(self, grant: int) -> None:
        self._call("release", grant=grant)

    def available(self) -> int:
        return cast(int, self._call("available"))


class Election(Handle):
    """``Election``: one candidate leads at a time, fenced."""

    CLASS = "Election"

    def __init__(self, session: Session, name: str) -> None:
        super().__init__(session, name)
        self._session = session

    def campaign(self, candidate: bytes | str) -> Held:
        """Blocks until this session leads."""
        caller = self._session.options(timeout=None)
        return Held(self._session, caller.call(self.target, "campaign", candidate=candidate))

    def resign(self, held: Held) -> None:
        self._call("resign", token=held.token)

    def leader(self) -> Record | None:
        return cast("Record | None", self._call("leader"))
