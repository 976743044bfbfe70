"""Whatever is asked for, through whichever endpoint answers.

What may be sent again is sent again until its time is up.
Invariants: outcomes that were handed in to be forgotten are mentioned once; in a process that was forked a client
has no connection, outcome or session of its parent.
Not here: calls (``_call.py``), what is kept alive (``_session.py``) and what is heard (``_events.py``).
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ._clock import now
from ._forks import renewed_in_children
from ._http import Endpoint, Request, Response
from ._interface import Interface, Method
from ._worlds import Disconnected, Signal, World
from .errors import ArgumentError, Closed, GesmasError, Unreachable, of_problem

_SILENCE = 7.5
"""After how long without an answer another endpoint is tried."""
_FORGET_MAX = 50
"""Outcomes that one call has forgotten."""
_FORGET_KEPT = 1_000
"""Outcomes that wait for that; those that are too many expire in the cluster by themselves."""
_PAUSE_FIRST, _PAUSE_LONGEST = 0.02, 1.0


@dataclass
class Trace:
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
        renewed_in_children(self)

    def renew(self) -> None:
        """In a child: connections of its own, and nothing that its parent answers for."""
        self.world.renew()
        for endpoint in self._endpoints:
            endpoint.renew()
        self._outcomes = deque(maxlen=_FORGET_KEPT)
        self.endings = set()

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
        self.world.expect_no_more()
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
        trace: Trace | None = None,
        again_if: Callable[[Response], bool] = lambda response: False,
    ) -> Response:
        """Sends a request that may be sent again, until it has an answer that counts.

        ``request_at`` gives it for each attempt, ``again_if`` says which answers do not count; an attempt may last
        until ``grace`` after the end, when the server's own word on the deadline comes.
        Raises ``Unreachable`` when the time is up."""
        trace = trace or Trace()
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

    # -- objects ----------------------------------------------------------------------------------

    async def interface(self, class_name: str, timeout: float) -> Interface:
        known = self._interfaces.get(class_name)
        if known is None:
            response = await self.ask("GET", f"/v1/classes/{quote(class_name, safe='')}", timeout=timeout)
            known = self._interfaces[class_name] = Interface(json.loads(response.body))
        return known

    def forget_interface(self, class_name: str) -> None:
        """What is known of a class is out of date."""
        self._interfaces.pop(class_name, None)

    async def create(self, target: str, arguments: Mapping[str, Any], timeout: float) -> None:
        class_name, _ = split(target)
        interface = await self.interface(class_name, timeout)
        body = interface.method("init").body(arguments)
        await self.ask("PUT", path_of(target), body, timeout=timeout)


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
