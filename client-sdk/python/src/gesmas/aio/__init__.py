"""The client for asyncio: the same words as ``gesmas``, awaited.

```python
async with gesmas.aio.Client("http://127.0.0.1:7180") as client:
    await client.create("Queue/jobs", capacity=16)
    async with await client.session() as session, session.lock("mail") as held:
        print(held.token)
```
"""

from .client import Caller, Client, Events, Session, fate_of
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

__all__ = [
    "Barrier",
    "Caller",
    "Client",
    "Counter",
    "Election",
    "Events",
    "Guard",
    "Held",
    "Lease",
    "Leased",
    "Lock",
    "Membership",
    "Queue",
    "RwLock",
    "Semaphore",
    "Session",
    "fate_of",
]
