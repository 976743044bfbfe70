"""The clock by which deadlines and leases are judged.

The rule, which the clients of all languages keep (docs/clients.md): it counts the time in which the machine
sleeps, it never goes backward, and where it cannot know it takes more time to have passed, not less.
Linux has a clock that counts sleep. Elsewhere the steady clock may stand still while the machine sleeps, and the wall
clock, which anybody may set, tells of it: what the wall clock gains on the steady one counts as slept, what it
loses counts as nothing.
Invariant: no reading is smaller than one before it; at most ``blind`` seconds of sleep are not counted, which leases
are shortened by, unless the wall clock is set back by as much while the machine sleeps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ._forks import renewed_in_children

_BLIND = 0.25
"""What the wall clock gains is noise up to here: two clocks are not read at once, nor equally fine."""


class Clock:
    """See the head of the file. Without a wall clock the steady one counts sleep itself."""

    def __init__(
        self, steady: Callable[[], float], wall: Callable[[], float] | None = None
    ) -> None:
        self._steady, self._wall = steady, wall
        self.blind = 0.0 if wall is None else _BLIND
        self._slept = 0.0
        self._last = steady()
        self._lead = 0.0 if wall is None else wall() - self._last
        self.renew()
        renewed_in_children(self)

    def renew(self) -> None:
        # A thread that is not in this process may have held it when the process began.
        self._guard = threading.Lock()

    def now(self) -> float:
        """Seconds since some moment."""
        with self._guard:
            steady = self._steady()
            if self._wall is not None:
                self._count_sleep(self._wall() - steady)
            self._last = max(self._last, steady + self._slept)
            return self._last

    def _count_sleep(self, lead: float) -> None:
        if lead > self._lead + self.blind:
            self._slept += lead - self._lead
            self._lead = lead
        else:
            # From the lowest on: a step back must not hide the sleep that comes after it.
            self._lead = min(self._lead, lead)


def _clock_of_this_machine() -> Clock:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return Clock(lambda: time.clock_gettime(time.CLOCK_BOOTTIME))
    return Clock(time.monotonic, time.time)


clock = _clock_of_this_machine()


def now() -> float:
    """Seconds since some moment, by the clock of the process."""
    return clock.now()


def safe_until(sent_at: float, timeout: float) -> float:
    """Until when something can be relied on that lasts for ``timeout`` from when the cluster heard of it, in a
    message that was sent first at ``sent_at``."""
    return sent_at + timeout - clock.blind
