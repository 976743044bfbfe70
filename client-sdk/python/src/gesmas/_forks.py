"""What becomes of a client in a process that was forked.

A child has the memory of its parent, and none of its threads: it must not speak on its connections, whose answers
the parent reads, nor wait for locks that a thread of the parent has.
Invariant: before a child runs anything else, everything that is entered here is made anew; what cannot be made
anew knows the life in which it was made.
Not here: programs that are started (``spawn``, ``exec``): they have nothing of their parent.
"""

from __future__ import annotations

import os
from typing import Any, Protocol
from weakref import WeakSet


class Renewable(Protocol):
    """Something that a child has of its own."""

    def renew(self) -> None: ...


class _Lives:
    def __init__(self) -> None:
        self.current = object()
        self.renewable: WeakSet[Any] = WeakSet()

    def begin(self) -> None:
        self.current = object()
        for thing in list(self.renewable):
            thing.renew()


_LIVES = _Lives()

inherited: list[Any] = []
"""Connections of the parent that a child must neither close in good order nor collect: the loops of asyncio
share what they watch connections with, and a child that stops watching stops its parent too."""


def this_life() -> object:
    """Stands for this process: another in each child."""
    return _LIVES.current


def renewed_in_children(thing: Renewable) -> None:
    """Has something made anew in each child, as long as it is there."""
    _LIVES.renewable.add(thing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIVES.begin)
