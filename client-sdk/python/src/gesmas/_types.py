"""Types of parameters and results, as interfaces write them, and values as JSON.

Invariants: what is decoded is encoded to the same JSON value, whatever the type; what does not fit a type is sent
as it is if JSON can say it, since the server's complaint names the place better than this could.
Not here: which types a method has (``_interface.py``).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any

from .values import Duration, Record, Some, Time, Variant, nanoseconds_of, nanoseconds_since_epoch

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}

_INTEGER = re.compile(r"[ui](8|16|32|64|128)")
_TOKEN = re.compile(r"\s*([A-Za-z0-9_]+|[<>(),])")
_SPAN = re.compile(r"(\d+)(?:\.(\d+))?\s*([a-zµ]+)\s*")
_POINT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z")


@dataclass(frozen=True)
class Type:
    """A type: its word, and the types within. Records and choices have a name and fields instead."""

    word: str
    parts: tuple[Type, ...] = ()
    name: str = ""
    fields: tuple[tuple[str, Type], ...] = ()
    variants: tuple[tuple[str, tuple[tuple[str, Type], ...]], ...] = ()


def parse_type(text: str, named: Mapping[str, Any]) -> Type:
    """The type that a text such as ``map<text, list<u32>>`` says; ``named`` has those with names."""
    tokens = _TOKEN.findall(text)
    ty, rest = _parse(tokens, named)
    if rest:
        raise ValueError(f"{text!r} is no type")
    return ty


def parse_fields(listed: Iterable[Any], named: Mapping[str, Any]) -> tuple[tuple[str, Type], ...]:
    return tuple((field["name"], parse_type(field["type"], named)) for field in listed)


def _parse(tokens: list[str], named: Mapping[str, Any]) -> tuple[Type, list[str]]:
    word, rest = tokens[0], tokens[1:]
    if word == "(":
        parts, rest = _parse_parts(rest, ")", named)
        return Type("tuple", parts), rest
    if word == "bytes" and rest[:1] == ["<"]:
        return Type("bytes"), rest[3:]
    if rest[:1] == ["<"]:
        parts, rest = _parse_parts(rest[1:], ">", named)
        return Type(word, parts), rest
    definition = named.get(word)
    if definition is None:
        return Type(word), rest
    if "record" in definition:
        return Type("record", name=word, fields=parse_fields(definition["record"], named)), rest
    variants = tuple(
        (variant["name"], parse_fields(variant.get("fields", ()), named))
        for variant in definition["choice"]
    )
    return Type("choice", name=word, variants=variants), rest


def _parse_parts(
    tokens: list[str], end: str, named: Mapping[str, Any]
) -> tuple[tuple[Type, ...], list[str]]:
    parts = []
    while tokens[0] != end:
        part, tokens = _parse(tokens[1:] if tokens[0] == "," else tokens, named)
        parts.append(part)
    return tuple(parts), tokens[1:]


def _may_be_null(ty: Type) -> bool:
    if ty.word == "record" and len(ty.fields) == 1 and ty.fields[0][0] == "0":
        return _may_be_null(ty.fields[0][1])
    return ty.word in ("unit", "option")


# -- to JSON --------------------------------------------------------------------------------------


def encode(ty: Type, value: Any) -> Any:
    """The JSON of a value."""
    encoder = _ENCODERS.get(ty.word)
    if encoder is not None:
        return encoder(ty, value)
    if _INTEGER.fullmatch(ty.word) and isinstance(value, int) and not isinstance(value, bool):
        return str(value) if ty.word[1:] in ("64", "128") else value
    return value


def _encode_bytes(_: Type, value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
    return {"text": value} if isinstance(value, str) else value


def _encode_duration(_: Type, value: Any) -> Any:
    if isinstance(value, timedelta):
        return f"{nanoseconds_of(value)}ns"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{round(value * 1_000_000_000)}ns"
    return value


def _encode_time(_: Type, value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return format_time(nanoseconds_since_epoch(value))


def _encode_option(ty: Type, value: Any) -> Any:
    (inner,) = ty.parts
    if value is None:
        return None
    some = encode(inner, value.value if isinstance(value, Some) else value)
    return {"some": some} if _may_be_null(inner) else some


def _encode_items(ty: Type, value: Any) -> Any:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return value
    return [encode(ty.parts[0], item) for item in value]


def _encode_tuple(ty: Type, value: Any) -> Any:
    if not isinstance(value, (tuple, list)) or len(value) != len(ty.parts):
        return value
    return [encode(part, item) for part, item in zip(ty.parts, value)]


def _encode_map(ty: Type, value: Any) -> Any:
    key, inner = ty.parts
    if not isinstance(value, Mapping):
        return value
    # As pairs: they can be written whatever the type of the keys.
    return [[encode(key, name), encode(inner, item)] for name, item in value.items()]


def _encode_record(ty: Type, value: Any) -> Any:
    return _encode_fields(ty.fields, value)


def _encode_fields(named: tuple[tuple[str, Type], ...], value: Any) -> Any:
    if not named:
        return value
    if named[0][0] == "0":
        if len(named) == 1:
            return encode(named[0][1], value)
        return _encode_tuple(Type("tuple", tuple(ty for _, ty in named)), value)
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if not isinstance(value, Mapping):
        return value
    types = dict(named)
    return {
        name: encode(types[name], item) if name in types else item for name, item in value.items()
    }


def _encode_choice(ty: Type, value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        ((name, inner),) = value.items()
    elif isinstance(value, Variant):
        name, inner = value.name, value.fields
    else:
        return value
    return {name: _encode_fields(dict(ty.variants).get(name, ()), inner)}


_ENCODERS: dict[str, Callable[[Type, Any], Any]] = {
    "bytes": _encode_bytes,
    "duration": _encode_duration,
    "time": _encode_time,
    "option": _encode_option,
    "list": _encode_items,
    "set": _encode_items,
    "tuple": _encode_tuple,
    "map": _encode_map,
    "record": _encode_record,
    "choice": _encode_choice,
}


# -- from JSON ------------------------------------------------------------------------------------


def decode(ty: Type, value: Any) -> Any:
    """The value of a JSON that the server wrote."""
    decoder = _DECODERS.get(ty.word)
    if decoder is not None:
        return decoder(ty, value)
    return int(value) if _INTEGER.fullmatch(ty.word) else value


def _decode_bytes(_: Type, value: Any) -> bytes:
    return decode_bytes(value)


def decode_bytes(value: Any) -> bytes:
    """Bytes from ``{"text": …}`` or ``{"base64": …}``."""
    if "text" in value:
        return str(value["text"]).encode("utf-8")
    try:
        return base64.b64decode(value["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"bytes in base64 are malformed: {error}") from None


def _decode_option(ty: Type, value: Any) -> Any:
    (inner,) = ty.parts
    if value is None:
        return None
    return Some(decode(inner, value["some"])) if _may_be_null(inner) else decode(inner, value)


def _decode_tuple(ty: Type, value: Any) -> Any:
    return tuple(decode(part, item) for part, item in zip(ty.parts, value))


def _decode_map(ty: Type, value: Any) -> Any:
    key, inner = ty.parts
    pairs = value.items() if isinstance(value, Mapping) else value
    return {decode(key, name): decode(inner, item) for name, item in pairs}


def _decode_fields(named: tuple[tuple[str, Type], ...], value: Any) -> Any:
    if named and named[0][0] == "0":
        if len(named) == 1:
            return decode(named[0][1], value)
        return tuple(decode(ty, item) for (_, ty), item in zip(named, value))
    return Record({name: decode(ty, value[name]) for name, ty in named})


def _decode_choice(ty: Type, value: Any) -> Any:
    if isinstance(value, str):
        return value
    ((name, inner),) = value.items()
    return Variant(name, _decode_fields(dict(ty.variants)[name], inner))


_DECODERS: dict[str, Callable[[Type, Any], Any]] = {
    "bytes": _decode_bytes,
    "duration": lambda _, value: Duration(parse_duration(value)),
    "time": lambda _, value: Time(parse_time(value)),
    "option": _decode_option,
    "list": lambda ty, value: [decode(ty.parts[0], item) for item in value],
    "set": lambda ty, value: {decode(ty.parts[0], item) for item in value},
    "tuple": _decode_tuple,
    "map": _decode_map,
    "record": lambda ty, value: _decode_fields(ty.fields, value),
    "choice": _decode_choice,
}


def parse_duration(text: str) -> int:
    """Nanoseconds of ``"1h30m"``."""
    total, place = 0, 0
    while place < len(text):
        part = _SPAN.match(text, place)
        if part is None or part[3] not in NANOSECONDS:
            raise ValueError(f"{text!r} is no duration")
        unit, fraction = NANOSECONDS[part[3]], part[2] or ""
        total += int(part[1]) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        place = part.end()
    return total


def parse_time(text: str) -> int:
    """Nanoseconds since the epoch of ``"2026-11-27T10:00:00.5Z"``."""
    part = _POINT.fullmatch(text)
    if part is None:
        raise ValueError(f"{text!r} is no time")
    seconds = nanoseconds_since_epoch(datetime.fromisoformat(part[1] + "+00:00"))
    return seconds + int((part[2] or "").ljust(9, "0"))


def format_time(nanoseconds: int) -> str:
    """The text of a time."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    text = Time(seconds * 1_000_000_000).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z"


def format_seconds(seconds: float) -> str:
    """A span of seconds as the server reads it."""
    return f"{max(1, round(seconds * 1_000))}ms"
