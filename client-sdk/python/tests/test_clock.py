"""The clock, and what is counted by it: with clocks that jump, stand still and lie, and a server that loses answers.

Beside it, what guards share, as the same server shows it."""

from __future__ import annotations

import json
import random
import socket
import threading
import unittest
from collections.abc import Callable

from gesmas import Session, SessionState, _clock
from gesmas._call import Options
from gesmas._clock import Clock
from gesmas._core import Core
from gesmas._grants import Asked, Grant, Way
from gesmas._session import SessionCore
from gesmas._worlds import PlainWorld, run

HOUR = 3_600.0


class Machine:
    """A machine whose clocks are set, and which sleeps."""

    def __init__(self, *, counts_sleep: bool = False) -> None:
        self.steady, self.wall = 100.0, 1_700_000_000.0
        self._counts_sleep = counts_sleep
        self.clock = Clock(lambda: self.steady, None if counts_sleep else lambda: self.wall)

    def passes(self, seconds: float) -> None:
        self.steady += seconds
        self.wall += seconds

    def sleeps(self, seconds: float) -> None:
        self.wall += seconds
        if self._counts_sleep:
            self.steady += seconds


class ClockTests(unittest.TestCase):
    def test_time_passes_and_sleep_counts(self) -> None:
        for machine in (Machine(), Machine(counts_sleep=True)):
            start = machine.clock.now()
            machine.passes(5.0)
            self.assertAlmostEqual(machine.clock.now() - start, 5.0)
            machine.sleeps(HOUR)
            self.assertAlmostEqual(machine.clock.now() - start, HOUR + 5.0, places=3)
            machine.passes(5.0)
            self.assertAlmostEqual(machine.clock.now() - start, HOUR + 10.0, places=3)

    def test_what_the_wall_clock_loses_is_never_taken_back(self) -> None:
        machine = Machine()
        start = machine.clock.now()
        machine.wall += HOUR
        ahead = machine.clock.now()
        machine.wall -= HOUR
        self.assertEqual(machine.clock.now(), ahead)
        # A lease that was counted while it was ahead ends in its time, and not an hour later.
        until = _clock.safe_until(machine.clock.now(), 30.0)
        machine.passes(30.0)
        self.assertGreaterEqual(machine.clock.now(), until)
        self.assertAlmostEqual(machine.clock.now() - start, HOUR + 30.0, places=3)

    def test_a_step_back_hides_no_sleep_after_it(self) -> None:
        machine = Machine()
        start = machine.clock.now()
        machine.wall += HOUR
        machine.clock.now()
        machine.wall -= 3 * HOUR
        machine.clock.now()
        machine.sleeps(HOUR)
        self.assertAlmostEqual(machine.clock.now() - start, 2 * HOUR, places=3)

    def test_no_reading_is_smaller_and_none_counts_less_than_has_passed(self) -> None:
        for seed in range(200):
            draw, machine = random.Random(seed), Machine()
            passed, sleeps, last, begin = 0.0, 0, machine.clock.now(), machine.clock.now()
            for _ in range(200):
                step = draw.expovariate(1 / 3.0)
                match draw.randrange(4):
                    case 0:
                        machine.sleeps(step)
                        passed += step
                        sleeps += 1
                    case 1:
                        machine.wall += draw.choice((-1, 1)) * draw.expovariate(1 / 100.0)
                    case _:
                        machine.passes(step)
                        passed += step
                reading = machine.clock.now()
                self.assertGreaterEqual(reading, last, f"seed {seed}")
                least = passed - sleeps * machine.clock.blind - 1e-3
                self.assertGreaterEqual(reading - begin, least, f"seed {seed}")
                last = reading

    def test_short_sleeps_are_missed_by_no_more_than_leases_allow_for(self) -> None:
        machine = Machine()
        start, slept = machine.clock.now(), 0.0
        for _ in range(1_000):
            machine.sleeps(0.01)
            slept += 0.01
            self.assertGreaterEqual(machine.clock.now() - start, slept - machine.clock.blind - 1e-3)

    def test_noise_between_two_clocks_adds_up_to_nothing(self) -> None:
        machine = Machine()
        start = machine.clock.now()
        for turn in range(100_000):
            machine.passes(0.001)
            machine.wall += 0.02 if turn % 2 else -0.02
            machine.clock.now()
        self.assertAlmostEqual(machine.clock.now() - start, 100.0, places=1)


class Server(threading.Thread):
    """Answers requests as it is told: with a body, or by hanging up."""

    def __init__(self, answers: list[Callable[[], bytes | None]]) -> None:
        super().__init__(daemon=True)
        self._answers = answers
        self.asked: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        for answer in self._answers:
            connection, _ = self._socket.accept()
            with connection:
                request = b""
                while not request.endswith((b"}", b"\r\n\r\n")):
                    request += connection.recv(65_536)
                self.asked.append(request.split(b" ", 2)[1].decode())
                body = answer()
                if body is not None:
                    status = "201 Created" if self.asked[-1].endswith("/sessions") else "200 OK"
                    head = f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
                    connection.sendall(head.encode() + body)

    def close(self) -> None:
        self._socket.close()


class LeaseTests(unittest.TestCase):
    def setUp(self) -> None:
        self.machine, self._clock = Machine(counts_sleep=True), _clock.clock
        _clock.clock = self.machine.clock

    def tearDown(self) -> None:
        _clock.clock = self._clock

    def test_a_lease_counts_from_the_first_sending_of_its_opening(self) -> None:
        def lost() -> None:
            # The cluster has heard it; its answer does not arrive.
            self.machine.passes(7.5)

        opened = json.dumps({"session": "5", "timeout": "30s"}).encode()
        server = Server([lost, lost, lambda: opened])
        core = Core([server.address], PlainWorld())
        session = Session(run(SessionCore.open(core, 30.0, 30.0)), Options())
        self.assertIs(session.state, SessionState.OPEN)
        self.machine.passes(14.9)
        self.assertIs(session.state, SessionState.OPEN)
        self.machine.passes(0.1)
        self.assertIs(session.state, SessionState.DOUBTFUL)
        core.close()
        server.close()

    def test_a_machine_that_slept_doubts_at_once(self) -> None:
        opened = json.dumps({"session": "5", "timeout": "30s"}).encode()
        server = Server([lambda: opened])
        core = Core([server.address], PlainWorld())
        session = Session(run(SessionCore.open(core, 30.0, 30.0)), Options())
        self.assertFalse(session.is_lost)
        self.machine.sleeps(30.0)
        self.assertTrue(session.is_lost)
        self.assertTrue(session.wait_lost(0.0))
        core.close()
        server.close()


class ShareTests(unittest.TestCase):
    def test_what_a_session_has_once_is_given_back_with_the_last_of_its_guards(self) -> None:
        opened = json.dumps({"session": "5", "timeout": "600s"}).encode()
        method = {"name": "leave", "parameters": [{"name": "token", "type": "u64"}], "result": "unit"}
        described = json.dumps({"methods": [method]}).encode()
        left = json.dumps({"result": None}).encode()
        server = Server([lambda: opened, lambda: described, lambda: left])
        core = Core([server.address], PlainWorld())
        session = run(SessionCore.open(core, 600.0, 30.0))
        way = Way(
            "Membership/m",
            endless=Asked("join", {}),
            back=lambda token: Asked("leave", {"token": token}),
            is_shared=True,
        )
        first, again = (Grant(core, session, way, 17, key) for key in ("first", "again"))
        run(first.give_back())
        run(first.give_back())
        self.assertEqual((first.is_left, len(server.asked)), (True, 1))
        run(again.give_back())
        self.assertEqual(server.asked[2:], ["/v1/objects/Membership/m/leave"])
        run(again.give_back())
        self.assertEqual(len(server.asked), 3)
        core.close()
        server.close()


if __name__ == "__main__":
    unittest.main()
