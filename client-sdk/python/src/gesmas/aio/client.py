"""The face of asyncio: the same as the plain one, awaited.

A task that is cancelled while it waits for a call withdraws the call: a blocked call leaves its queue in the
cluster. One that was served at that moment was served.
Invariant: a client belongs to one event loop. Nothing decides here; that is done in the core, which both
faces share.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator
from types import TracebackType
from typing import Any

from .._call import SAME, Fate, FateCore, Options, Same, call
from .._core import Core, path_of, split
from .._events import Event, EventCore, Gap
from .._session import SessionCore, SessionState
from .._worlds import AsyncWorld

_WITHDRAWALS = 6.0
"""How long closing waits for the withdrawals of calls, seconds."""


class Caller:
    """What calls can be made through: a client, a session, or either with other options."""

    def __init__(self, core: Core, session: SessionCore | None, options: Options) -> None:
        self._core, self._session_core, self._options = core, session, options

    def options(
        self,
        *,
        timeout: float | None | Same = SAME,
        idempotent: bool | Same = SAME,
        key: str | None | Same = SAME,
        wait: float | None | Same = SAME,
        stale: bool | Same = SAME,
    ) -> Caller:
        """The same, with other options for the calls that are made through it:

        - ``timeout``: seconds that a call may take, 30 if not said, ``None`` for as long as it takes;
        - ``idempotent``: ``True``, unless updates are to go without a key: at most once instead of exactly
          once, and cancelled by hanging up;
        - ``key``: the key instead of a random one, for a call that may be made again, by anybody;
        - ``wait``: seconds after which ``StillRunning`` is raised, with the key to wait on with;
        - ``stale``: reads may be answered from what a replica has, which may be old."""
        changed = self._options.changed(
            timeout=timeout, idempotent=idempotent, key=key, wait=wait, stale=stale
        )
        return Caller(self._core, self._session_core, changed)

    async def call(self, target: str, method: str, /, **arguments: Any) -> Any:
        """Calls a method of an object: ``call("Queue/jobs", "produce", item=b"resize cat.png")``."""
        session = self._session_core
        return await call(self._core, target, method, arguments, self._options, session)

    async def create(self, target: str, /, **arguments: Any) -> None:
        """Creates an object with the arguments of its class's ``init``; again changes nothing."""
        await self._core.create(target, arguments, self._seconds)

    async def remove(self, target: str, /) -> None:
        """Removes an object, also one that is not there; its callers are told."""
        await self._core.ask("DELETE", path_of(target), timeout=self._seconds)

    @property
    def _seconds(self) -> float:
        return 30.0 if self._options.timeout is None else self._options.timeout


class Client(Caller):
    """A client of the replicas at these addresses, any of which will do."""

    def __init__(self, *endpoints: str, timeout: float | None = 30.0) -> None:
        world = AsyncWorld()
        core = Core(list(endpoints), world)
        super().__init__(core, None, Options(timeout=timeout))
        self._world = world

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections. Calls that other tasks wait for are withdrawn and end as ``Closed``; those
        that cancelled tasks have waited for are gone when this returns. Sessions are not closed by it."""
        self._core.close()
        await self._world.finish(_WITHDRAWALS)

    @property
    def endpoint(self) -> str:
        """Where the next request goes."""
        return self._core.endpoint

    def session(self, timeout: float = 30.0, *, patience: float = 30.0) -> Opening:
        """Opens a session that lives as long as the cluster hears of it within ``timeout`` seconds, which
        a task sees to. To be awaited, or to be used as a context."""
        return Opening(self, timeout, patience)

    async def put_class(self, name: str, module: bytes) -> None:
        """Loads a class; it can be called when this returns."""
        await self._core.ask("PUT", f"/v1/classes/{name}", module, timeout=120.0, patience=120.0)

    async def blocked(self, target: str) -> list[dict[str, Any]]:
        """The calls that are blocked in an object."""
        class_name, name = split(target)
        path = f"/v1/invocations?class={class_name}&object={name}"
        response = await self._core.ask("GET", path, timeout=self._seconds)
        return list(json.loads(response.body)["invocations"])

    async def cancel(self, invocation: str) -> None:
        """Cancels a blocked call, as an operator."""
        await self._core.ask("DELETE", f"/v1/invocations/{invocation}", timeout=self._seconds)


class Opening:
    """A session that is being opened: ``await`` gives it, ``async with`` closes it too."""

    def __init__(self, client: Client, timeout: float, patience: float) -> None:
        self._client, self._timeout, self._patience = client, timeout, patience
        self._session: Session | None = None

    async def _open(self) -> Session:
        core = await SessionCore.open(self._client._core, self._timeout, self._patience)
        return Session(core, self._client._options)

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    async def __aenter__(self) -> Session:
        self._session = await self._open()
        return self._session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.__aexit__(kind, error, trace)


class Session(Caller):
    """A lease on the service. Locks, permits and memberships belong to it, and are given back when it is
    over. Used as a context it is closed at the end."""

    def __init__(self, session: SessionCore, options: Options) -> None:
        super().__init__(session.core, session, options)
        self._session = session
        self._streams: list[Events] = []

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session.is_foreign and error is not None:
            # A child leaves by an error what its parent is in.
            return
        await self.close()

    @property
    def id(self) -> str:
        """Its number, as methods and operators see it."""
        return self._session.id

    @property
    def timeout(self) -> float:
        """Its timeout in seconds, as the cluster granted it."""
        return self._session.timeout

    @property
    def state(self) -> SessionState:
        return self._session.state

    @property
    def is_lost(self) -> bool:
        """Whether it is, or may be, over."""
        return self._session.is_lost

    async def wait_lost(self, timeout: float | None = None) -> bool:
        """Waits until it is, or may be, over; tells whether it is."""
        return await self._session.wait_lost(timeout)

    async def keep_alive(self) -> None:
        """Shows now that the client lives, and what it has of its events; a thread does so anyway."""
        await self._session.keep_alive()

    def acknowledge(self, number: int) -> None:
        """That event and all before were consumed and need not come again."""
        self._session.acknowledge(number)

    def new_owner(self) -> int:
        """A number that nobody else on this session was given, by which a ``Lock`` tells owners apart."""
        return self._session.new_owner()

    def events(self) -> Events:
        """Its events as they come, from the first that is not acknowledged. One at a time: a second
        stream takes over from the first."""
        events = Events(EventCore(self._session))
        self._streams.append(events)
        return events

    def lock(self, name: str) -> Lock:
        """A handle to ``Lock/name`` with an owner of its own: handles exclude each other."""
        return Lock(self, name)

    def rw_lock(self, name: str) -> RwLock:
        """A handle to ``RwLock/name``: many read or one writes."""
        return RwLock(self, name)

    def semaphore(self, name: str) -> Semaphore:
        """A handle to ``Semaphore/name``."""
        return Semaphore(self, name)

    def election(self, name: str) -> Election:
        """A handle to ``Election/name``."""
        return Election(self, name)

    def membership(self, name: str) -> Membership:
        """A handle to ``Membership/name``."""
        return Membership(self, name)

    async def close(self) -> None:
        """Ends it: what it owns is given back, its blocked calls are cancelled."""
        self._session.check_own()
        for events in self._streams:
            events.close()
        await self._session.close()


async def fate_of(error: BaseException) -> Fate | None:
    """What became of the call that an error was raised by, directly or as its cause, when its caller gave it up:
    by cancelling its task, by Ctrl-C, by closing the client. Waits until that is known; none for other errors,
    whose class says it."""
    found = FateCore.of(error)
    return None if found is None else await found.learn()


class Events(AsyncIterator["Event | Gap"]):
    """The events of a session. An event counts as consumed when the next one is asked for."""

    def __init__(self, core: EventCore) -> None:
        self._core = core

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event | Gap:
        found = await self._core.next()
        if found is None:
            raise StopAsyncIteration
        return found

    def reconnect(self) -> None:
        """Breaks the connection and makes another, through the endpoint that is next."""
        self._core.reconnect()

    def close(self) -> None:
        """Ends the stream; a task that waits for an event gets none."""
        self._core.close()


from .standard import Election, Lock, Membership, RwLock, Semaphore  # noqa: E402  (it is made of sessions)
