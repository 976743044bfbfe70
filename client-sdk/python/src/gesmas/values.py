"""Values of classes that Python has no type of its own for.

Time and spans of time count nanoseconds in the cluster; ``datetime`` and ``timedelta`` count
microseconds. ``Time`` and ``Duration`` are those with the rest: they compare and add up like their bases,
and ``nanoseconds`` is exact, also on the way back to the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Duration(timedelta):
    """A span of time."""

    nanoseconds: int

    def __new__(cls, nanoseconds: int) -> Duration:
        self = super().__new__(cls, microseconds=nanoseconds // 1_000)
        self.nanoseconds = nanoseconds
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Duration, (self.nanoseconds,)

    def __repr__(self) -> str:
        return f"Duration({self.nanoseconds})"


class Time(datetime):
    """A point of time, in UTC; ``nanoseconds`` are those since the epoch of Unix."""

    nanoseconds: int

    def __new__(cls, nanoseconds: int, *date: Any, **more: Any) -> Any:
        if date or more:
            # What is computed from a time (a sum, a replacement) is a ``datetime`` like others.
            return datetime(nanoseconds, *date, **more)
        at = _EPOCH + timedelta(microseconds=nanoseconds // 1_000)
        self = super().__new__(
            cls, at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond, timezone.utc
        )
        self.nanoseconds = nanoseconds
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return Time, (self.nanoseconds,)

    def __repr__(self) -> str:
        return f"Time({self.nanoseconds})"


class Record(dict[str, Any]):
    """The fields of a record, by item and by attribute: ``holder["token"]``, ``holder.token``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass(frozen=True)
class Variant:
    """A variant of a choice that says something besides its name. One that does not is a ``str``."""

    name: str
    fields: Any = None


@dataclass(frozen=True)
class Some:
    """A value that is there, where the value itself may be ``None``."""

    value: Any


def nanoseconds_of(span: timedelta) -> int:
    """The length of a span, exactly."""
    if isinstance(span, Duration):
        return span.nanoseconds
    return ((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) * 1_000


def seconds_of(span: float | timedelta) -> float:
    """The length of a span, as clocks count it."""
    return nanoseconds_of(span) / 1_000_000_000 if isinstance(span, timedelta) else float(span)


def nanoseconds_since_epoch(time: datetime) -> int:
    """A point of time, exactly. One without a time zone is none."""
    if isinstance(time, Time):
        return time.nanoseconds
    if time.tzinfo is None:
        raise ValueError("a time needs a time zone: datetime.now(timezone.utc), say")
    return nanoseconds_of(time - _EPOCH)
