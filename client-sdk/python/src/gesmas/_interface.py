"""Interfaces of classes, as ``GET /v1/classes/CLASS`` describes them.

Invariant: arguments and results are converted by the interface that the server has, never by guesses from
the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._types import Type, decode, encode, parse_fields, parse_type
from .errors import ArgumentError


@dataclass(frozen=True)
class Method:
    """A method that can be called, or ``init``."""

    name: str
    reads: bool
    parameters: dict[str, Type]
    result: Type
    error: Type | None

    def fitting(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Those of the arguments that it has parameters for."""
        return {name: value for name, value in arguments.items() if name in self.parameters}

    def body(self, arguments: Mapping[str, Any]) -> bytes:
        """The arguments as the body of a request."""
        members = {}
        for name, value in arguments.items():
            ty = self.parameters.get(name)
            try:
                member = value if ty is None else encode(ty, value)
                json.dumps(member)
            except (TypeError, ValueError, AttributeError) as error:
                what = f"the argument `{name}` of {self.name} cannot be sent: {error}"
                raise ArgumentError("argument", what) from error
            members[name] = member
        return json.dumps(members).encode("utf-8")

    def result_of(self, body: bytes) -> Any:
        """The result in the body of an answer."""
        return decode(self.result, json.loads(body)["result"])

    def error_of(self, problem: Mapping[str, Any]) -> Any:
        """The error of the class in a problem; none if there is none."""
        if self.error is None or problem.get("error") is None:
            return problem.get("error")
        return decode(self.error, problem["error"])


class Interface:
    """What a class understands."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        named = described.get("types", {})
        self.methods = {
            method["name"]: _method(method, named) for method in described.get("methods", ())
        }

    def method(self, name: str) -> Method:
        """A method; one that is not known takes whatever is given, and the server says what it thinks
        of that."""
        return self.methods.get(name) or Method(name, False, {}, Type("unit"), None)


def _method(described: Mapping[str, Any], named: Mapping[str, Any]) -> Method:
    error = described.get("error")
    return Method(
        name=described["name"],
        reads=described.get("kind") == "read",
        parameters=dict(parse_fields(described.get("parameters", ()), named)),
        result=parse_type(described.get("result", "unit"), named),
        error=None if error is None else parse_type(error, named),
    )
