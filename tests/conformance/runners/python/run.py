"""Runs the cases of the list with the Python client.

``run.py FACE ENDPOINTS [CASE]``, ``FACE`` being ``plain`` or ``asyncio``; with ``peer`` for a case, it makes the calls
that it is handed. What it says and asks for on its output, whoever runs it answers on its input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback

import cases_calls  # noqa: F401  (they enter themselves)
import cases_failures  # noqa: F401
import cases_forks  # noqa: F401
import cases_holding  # noqa: F401
import cases_sessions  # noqa: F401
import cases_standard  # noqa: F401
from face import Face
from support import CASES, PATIENCE, Line, World


async def peer(face: Face, line: Line) -> None:
    client = face.client()
    while said := await line.listen():
        call = json.loads(said)
        result = await client.call(call["target"], call["method"], **call["arguments"])
        line.say(answer=result.hex() if isinstance(result, bytes) else result)


async def run(face: Face, line: Line, only: str | None) -> None:
    for name, work in CASES.items():
        if only not in (None, name):
            continue
        world = World(face, line, name)
        try:
            await asyncio.wait_for(work(world), 1.5 * PATIENCE)
            line.say(case=name, passed=True)
        except Exception:
            line.say(case=name, passed=False, why=traceback.format_exc())
        finally:
            await world.close()
    line.say(done=True)


async def main() -> None:
    face, line = Face(sys.argv[1], sys.argv[2].split(",")), Line()
    only = sys.argv[3] if len(sys.argv) > 3 else None
    await (peer(face, line) if only == "peer" else run(face, line, only))


if __name__ == "__main__":
    asyncio.run(main())
