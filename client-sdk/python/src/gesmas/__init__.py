"""Client of gesmas, a replicated coordination server that its users program.

```python
with gesmas.Client("http://127.0.0.1:7180", "http://127.0.0.1:7181") as client:
    client.create("Queue/jobs", capacity=16)
    client.call("Queue/jobs", "produce", item=b"resize cat.png")
    with client.session() as session, session.lock("mail") as held:
        print(held.token)
```
``gesmas.aio`` has the same for asyncio.
"""

from ._events import Event, Gap
from ._session import SessionState
from .client import Caller, Client, Events, Session
from .errors import (
    ArgumentError,
    Cancelled,
    ClassError,
    ClassUnknown,
    Closed,
    Conflict,
    DeadlineExceeded,
    GesmasError,
    KeyReused,
    MethodUnknown,
    NotFound,
    ObjectExists,
    ObjectRemoved,
    ObjectUnknown,
    Refused,
    SessionOver,
    StillRunning,
    Trapped,
    Unknown,
    Unreachable,
)
from .standard import Barrier, Counter, Election, Held, Lock, Queue, Semaphore
from .values import Duration, Record, Some, Time, Variant

__all__ = [
    "ArgumentError",
    "Barrier",
    "Caller",
    "Cancelled",
    "ClassError",
    "ClassUnknown",
    "Client",
    "Closed",
    "Conflict",
    "Counter",
    "DeadlineExceeded",
    "Duration",
    "Election",
    "Event",
    "Events",
    "Gap",
    "GesmasError",
    "Held",
    "KeyReused",
    "Lock",
    "MethodUnknown",
    "NotFound",
    "ObjectExists",
    "ObjectRemoved",
    "ObjectUnknown",
    "Queue",
    "Record",
    "Refused",
    "Semaphore",
    "Session",
    "SessionOver",
    "SessionState",
    "Some",
    "StillRunning",
    "Time",
    "Trapped",
    "Unknown",
    "Unreachable",
    "Variant",
]
