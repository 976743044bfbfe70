"""Values as JSON and back, without a server: what the cases cannot reach, since the server writes only one form
of what it reads in many."""

from __future__ import annotations

import copy
import pickle
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from gesmas import Duration, Some, Time
from gesmas._events import Parser
from gesmas._types import decode, encode, format_time, parse_duration, parse_time, parse_type

NAMED = {
    "Metres": {"record": [{"name": "0", "type": "option<u64>"}]},
    "Box": {"record": [{"name": "width", "type": "u64"}, {"name": "content", "type": "bytes"}]},
}


class Values(unittest.TestCase):
    def test_types_are_read_as_interfaces_write_them(self) -> None:
        ty = parse_type("map<(u8, bool), list<bytes<16>>>", {})
        self.assertEqual([part.word for part in ty.parts[0].parts], ["u8", "bool"])
        self.assertEqual(ty.parts[1].parts[0].word, "bytes")
        with self.assertRaises(ValueError):
            parse_type("u8 u8", {})

    def test_an_option_of_what_may_be_null_is_written_apart(self) -> None:
        for text in ("option<option<u8>>", "option<unit>", "option<Metres>"):
            ty = parse_type(text, NAMED)
            self.assertEqual(encode(ty, Some(None)), {"some": None})
            self.assertEqual(decode(ty, {"some": None}), Some(None))
            self.assertIsNone(encode(ty, None))

    def test_what_people_have_at_hand_is_taken(self) -> None:
        @dataclass
        class Box:
            width: int
            content: bytes

        wanted = {"width": "5", "content": {"base64": "/w=="}}
        self.assertEqual(encode(parse_type("Box", NAMED), Box(5, b"\xff")), wanted)
        self.assertEqual(encode(parse_type("bytes", {}), "text"), {"text": "text"})
        self.assertEqual(encode(parse_type("duration", {}), 1.5), "1500000000ns")
        self.assertEqual(encode(parse_type("duration", {}), "1h"), "1h")
        self.assertEqual(encode(parse_type("u32", {}), True), True, "the server says what it thinks of that")
        with self.assertRaises(ValueError):
            encode(parse_type("time", {}), datetime(2026, 11, 27))

    def test_spans_and_points_are_exact(self) -> None:
        self.assertEqual(parse_duration("1h30m"), 5_400_000_000_000)
        self.assertEqual(parse_duration("1.5s"), 1_500_000_000)
        for text in ("30", "1 fortnight", "s"):
            with self.assertRaises(ValueError):
                parse_duration(text)
        for nanoseconds in (0, 1, 999_999_999, (1 << 64) - 1):
            self.assertEqual(parse_time(format_time(nanoseconds)), nanoseconds)

    def test_they_are_like_their_bases(self) -> None:
        span, point = Duration(1_500_000_001), Time(1_500_000_001)
        self.assertEqual(span, timedelta(seconds=1.5))
        self.assertEqual(point, datetime(1970, 1, 1, 0, 0, 1, 500_000, timezone.utc))
        for value in (span, point):
            for again in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
                self.assertEqual(again.nanoseconds, 1_500_000_001)
        later = point + timedelta(seconds=1)
        self.assertEqual((later, type(later)), (datetime(1970, 1, 1, 0, 0, 2, 500_000, timezone.utc), datetime))
        self.assertEqual(point - later, timedelta(seconds=-1))
        self.assertEqual(point.replace(year=2000).year, 2000)
        self.assertEqual(point.astimezone(timezone(timedelta(hours=2))), point)
        self.assertEqual(span + span, timedelta(seconds=3))

    def test_events_are_whole_whatever_the_pieces_they_come_in(self) -> None:
        stream = ': sign of life\n\nid: 1\r\nevent: event\ndata: {"ö": 1}\n\nid: 2\nevent: over\n\n'.encode()
        for size in range(1, len(stream) + 1):
            parser, found = Parser(), []
            for start in range(0, len(stream), size):
                found += parser.feed(stream[start : start + size])
            self.assertEqual([fields["id"] for fields in found], ["1", "2"])
            self.assertEqual(found[0]["data"], '{"ö": 1}')


if __name__ == "__main__":
    unittest.main()
