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

from ._call import Ending, Fate
from ._events import Event, Gap
from ._session import SessionState
from .client import Caller, Client, Events, Session, fate_of
from .errors import (
    ArgumentError,
    Cancelled,
    ClassError,
    ClassUnknown,
    Closed,
    Conflict,
    DeadlineExceeded,
    Forked,
    GesmasError,
    KeyReused,
    MethodUnknown,
    NotFound,
    NotHeld,
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
from .standard import (
    Barrier,
    Counter,
    Election,
    Guard,
    Held,
    Lease,
    Leased,
    Lock,
    Membership,
    Queue,
    RwLock,
    Semaphore,
)
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
    "Ending",
    "Event",
    "Events",
    "Fate",
    "Forked",
    "Gap",
    "GesmasError",
    "Guard",
    "Held",
    "Lease",
    "Leased",
    "KeyReused",
    "Lock",
    "Membership",
    "MethodUnknown",
    "NotFound",
    "NotHeld",
    "ObjectExists",
    "ObjectRemoved",
    "ObjectUnknown",
    "Queue",
    "Record",
    "Refused",
    "RwLock",
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
    "fate_of",
]
