"""Why things that a client asked for did not come to be.

Invariant: the class of an error says what is known of the effect. ``Unknown`` is raised whenever a call
may have taken effect and its end was not heard; every other error is certain.
Not here: errors of Python's own; a task that is cancelled ends with ``asyncio.CancelledError``, as
everywhere. What became of its call is told by ``fate_of``.
"""

from __future__ import annotations

from typing import Any

from .values import Variant


class GesmasError(Exception):
    """Any failure. ``code`` is a stable word for programs, ``detail`` and ``advice`` are for people,
    ``id`` finds the details in the server's log, ``status`` is that of HTTP if a server said so."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        advice: str | None = None,
        id: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.advice = advice
        self.id = id
        self.status = status


class ClassError(GesmasError):
    """The method returned an error of its class: ``error`` is its value, ``variant`` its name, and
    ``fields`` what it says besides. What the method did stands, unless ``aborted``."""

    def __init__(self, code: str, detail: str, *, error: Any, **more: Any) -> None:
        super().__init__(code, detail, **more)
        self.error = error
        self.aborted = code == "aborted"

    @property
    def variant(self) -> str:
        return self.error.name if isinstance(self.error, Variant) else str(self.error)

    @property
    def fields(self) -> Any:
        return self.error.fields if isinstance(self.error, Variant) else None


class Cancelled(GesmasError):
    """The call was blocked and is ended: by an operator, by the end of its session, or withdrawn."""


class DeadlineExceeded(GesmasError):
    """The time was up: the call has ended, after its clean-up, or was never made."""


class StillRunning(GesmasError):
    """The call runs on; the same call with the same ``key`` waits on. Only with the option ``wait``."""

    def __init__(self, key: str) -> None:
        super().__init__("running", "the call runs on", status=202)
        self.key = key


class Unknown(GesmasError):
    """The call may or may not have taken effect: look at the object before trying again."""


class Unreachable(GesmasError):
    """No replica served the call in time. It did nothing."""


class ArgumentError(GesmasError):
    """An argument, a name or an option is wrong; nothing was sent on, and ``detail`` names it."""


class NotFound(GesmasError):
    """What was named is not there."""


class ObjectUnknown(NotFound):
    """There is no such object."""


class ClassUnknown(NotFound):
    """There is no such class."""


class MethodUnknown(NotFound):
    """The class has no such method."""


class SessionOver(NotFound):
    """The session is over: what it owned is given back, its blocked calls are cancelled."""


class Conflict(GesmasError):
    """Something else is there already."""


class ObjectExists(Conflict):
    """The object was created with other arguments."""


class ObjectRemoved(GesmasError):
    """The object was removed while the call ran."""


class KeyReused(GesmasError):
    """The key stands for another call."""


class Refused(GesmasError):
    """A limit or a rule says no: the call did nothing."""


class Trapped(GesmasError):
    """The method failed; what it did since it last waited is undone."""


class Forked(GesmasError):
    """A session, or something that it holds, belongs to the process that this one was forked from."""


class NotHeld(GesmasError):
    """What a guard stood for was given back."""


class Closed(GesmasError):
    """The client was closed; a call that was under way was withdrawn."""


_BY_CODE: dict[str, type[GesmasError]] = {
    "cancelled": Cancelled,
    "unknown": Unknown,
    "object-unknown": ObjectUnknown,
    "class-unknown": ClassUnknown,
    "method-unknown": MethodUnknown,
    "not-callable": MethodUnknown,
    "session-unknown": SessionOver,
    "object-exists": ObjectExists,
    "object-removed": ObjectRemoved,
    "key-reused": KeyReused,
}

_BY_STATUS: dict[int, type[GesmasError]] = {
    400: ArgumentError,
    404: NotFound,
    405: ArgumentError,
    409: Conflict,
    500: Trapped,
    503: Unreachable,
    504: DeadlineExceeded,
}

CLASS_CODES = ("failed", "aborted", "init-refused")


def of_problem(status: int, problem: dict[str, Any], error: Any = None) -> GesmasError:
    """The error that an ``application/problem+json`` stands for; ``error`` is its decoded class error."""
    code = str(problem.get("type", "")).rpartition(":")[2] or "unexpected"
    detail = str(problem.get("detail", "")) or f"the server answered {status}"
    more: dict[str, Any] = {"advice": problem.get("advice"), "id": problem.get("id"), "status": status}
    if code in CLASS_CODES and error is not None:
        return ClassError(code, detail, error=error, **more)
    if code == "cancelled" and status == 504:
        return DeadlineExceeded(code, detail, **more)
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, Refused)
    return kind(code, detail, **more)
