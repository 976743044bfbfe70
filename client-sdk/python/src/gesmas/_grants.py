"""Grants: what an object has given to a session, or to the holder of a lease, and takes back.

```
acquire ──► call under a key ──► accepted: the caller has a guard, which gives it back
                  │                       (released, left, dropped)
                  └──► cancelled, timed out, closed: withdrawn; what was granted first is given back
```
This is the one mechanism for whatever can be held; handles only say how something is taken and given back.
Invariants: what was granted belongs to one guard, or is given back within a round trip of the cluster; a giving
back that has begun goes on, aside, when its caller is cancelled or the cluster does not answer, until the session is
over, whose end gives it back too; it is made under one key, and so has an effect once; what a session has once,
however often it asks for it, is given back with the last of its guards.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ._call import Options, call, is_late
from ._clock import now
from ._core import Core
from ._forks import this_life
from ._session import SessionCore
from .errors import Cancelled, DeadlineExceeded, Forked, GesmasError, Unknown, Unreachable

G = TypeVar("G")

_PATIENCE = 30.0
"""How long a caller waits for the answer to a giving back."""
_ROUND = 5.0
"""How long one aside is asked for, before it is looked whether the session is over."""
_LONGER = 15.0
"""A method that says by itself when the time is up gets a little longer."""


@dataclass(frozen=True)
class Asked:
    """A method and its arguments; those that it has no parameter for are left out."""

    method: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Way:
    """How something is taken and given back.

    ``timed`` returns nothing when so many seconds are up; a method that has none such gets a deadline.
    ``back`` says for a result how it is given back; ``is_shared`` that a session that asks again is given the same
    once more, and nothing counts how often; ``lasts`` is for how long it is held at most."""

    target: str
    endless: Asked
    back: Callable[[Any], Asked]
    timed: Callable[[float], Asked] | None = None
    at_once: Asked | None = None
    is_shared: bool = False
    lasts: float | None = None


class Grant:
    """See the head of the file."""

    def __init__(
        self, core: Core, session: SessionCore | None, way: Way, result: Any, key: str
    ) -> None:
        self._core, self._session, self._target = core, session, way.target
        self._back = way.back(result)
        self._key = f"{key}-back"
        self._runs_out = None if way.lasts is None else now() + way.lasts
        self._life = this_life()
        self.is_left = False
        """It is given back, or that has begun."""
        self._is_back = False
        self._share = (way.target, result) if way.is_shared else None
        if self._share is not None and session is not None:
            session.share(self._share)

    def check_own(self) -> None:
        """Raises ``Forked`` in a child of the process that holds it."""
        if self._life is not this_life():
            what = f"{self._target} is held by the process that this one was forked from"
            raise Forked("forked", what, advice="acquire it in this process, within a session of its own")

    async def give_back(self) -> None:
        """Gives it back, once however often it is asked for."""
        self.check_own()
        world, name = self._core.world, "gesmas-return"
        try:
            # From here on it is not given back by being dropped.
            self.is_left = True
            if not self._is_back:
                await self._ask(_PATIENCE)
        except (Unreachable, Unknown):
            world.aside(self.see_through(), name)
            raise
        except GesmasError:
            raise
        except BaseException:
            world.last_words(self.see_through(), name)
            raise

    async def see_through(self) -> None:
        """Gives it back, however long that takes."""
        self.is_left = True
        while not self._is_back:
            try:
                await self._ask(_ROUND)
            except (Unreachable, Unknown):
                if self._is_over():
                    return
            except GesmasError:
                return

    def give_up(self) -> None:
        """Its caller is being cancelled before it has it."""
        self.is_left = True
        self._core.world.last_words(self.see_through(), "gesmas-return")

    def drop(self) -> None:
        """Nobody has it any more. Called while garbage is collected: it waits for nothing."""
        is_mine = self._life is this_life() and not sys.is_finalizing()
        if self.is_left or not is_mine or (self._session is not None and self._session.over.is_set()):
            return
        self.is_left = True
        self._core.world.dropped(self.see_through, "gesmas-return")
        what = f"a guard of {self._target} was dropped while it was held: it is given back now"
        warnings.warn(what, RuntimeWarning, stacklevel=3)

    async def _ask(self, patience: float) -> None:
        if self._share is not None and self._session is not None:
            if not self._session.unshare(self._share):
                self._is_back = True
                return
            self._share = None
        options = Options(timeout=patience)
        arguments = (self._core, self._target, self._back.method, self._back.arguments, options)
        try:
            await call(*arguments, self._session, key=self._key, settles=False, fits=True)
        except (DeadlineExceeded, Cancelled) as error:
            # It is certain that this call did nothing; its key is used up.
            self._key += "+"
            raise Unreachable("unreachable", error.detail) from error
        except (Unreachable, Unknown):
            raise
        except GesmasError:
            self._is_back = True
            raise
        self._is_back = True

    def _is_over(self) -> bool:
        if self._session is not None:
            return self._session.over.is_set()
        return self._runs_out is None or now() >= self._runs_out


class Taking(Generic[G]):
    """The result of one acquisition on its way to its caller."""

    def __init__(
        self,
        core: Core,
        session: SessionCore | None,
        way: Way,
        guard: Callable[[Any, Grant], G],
    ) -> None:
        self._core, self._session, self._way, self._guard = core, session, way, guard
        self._grant: Grant | None = None

    @property
    def is_accepted(self) -> bool:
        return self._grant is not None

    def accept(self, result: Any, key: str) -> G | None:
        if result is None:
            return None
        self._grant = self._of(result, key)
        return self._guard(result, self._grant)

    async def undo(self, result: Any, key: str) -> None:
        if result is not None:
            await self._of(result, key).see_through()

    async def undo_accepted(self) -> None:
        assert self._grant is not None
        await self._grant.see_through()

    def _of(self, result: Any, key: str) -> Grant:
        return Grant(self._core, self._session, self._way, result, key)


async def acquire(
    core: Core,
    session: SessionCore | None,
    way: Way,
    timeout: float | None,
    guard: Callable[[Any, Grant], G],
) -> G | None:
    """Takes something; with a timeout, nothing if it was not there in time."""
    if session is not None:
        session.check_own()
    if not core.closed:
        core.world.expect_drops()
    seconds = None
    if timeout is None:
        asked = way.endless
    elif timeout <= 0 and way.at_once is not None:
        asked, seconds = way.at_once, _PATIENCE
    elif way.timed is not None:
        asked, seconds = way.timed(timeout), timeout + _LONGER
    else:
        asked, seconds = way.endless, max(timeout, 0.001)
    taking = Taking(core, session, way, guard)
    options, began = Options(timeout=seconds), now()
    try:
        taken = await call(
            core, way.target, asked.method, asked.arguments, options, session, given=taking, fits=True
        )
    except GesmasError as error:
        is_deadline = timeout is not None and asked is way.endless
        if is_deadline and is_late(error) and now() >= began + max(timeout or 0.0, 0.0):
            return None
        raise
    return taken  # type: ignore[no-any-return]
