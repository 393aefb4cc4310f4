"""The description of one operation of a backend, and the decorator that makes it of the operation's typed method.

`protocol.operations` declares all of them. The server's and the clients' handling, the check of rights and what happens
once per request id are derived from the description.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from enum import StrEnum
from functools import wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec


class Right(StrEnum):
    """The right that an operation needs."""

    ASK = "ask"
    """None: the operation itself limits its result, or its changes, to what the user may see or change."""
    LOOK = "look"
    """The right to see the job that the operation is about."""
    ACT = "act"
    """The right to do with that job what its owner may do."""
    ADMINISTER = "administer"
    """The right to change what belongs to the whole cluster."""


class Style(StrEnum):
    """How an operation is asked and answered."""

    READS = "reads"
    """It changes nothing, has one answer at once, and may be repeated."""
    WAITS = "waits"
    """It changes nothing, but may take any time. If its arguments have a field `wait`, only when this is true."""
    LISTS = "lists"
    """It changes nothing, and its answer comes in pieces."""
    CHANGES = "changes"
    """It changes something, once per request id."""
    SPECIAL = "special"
    """Clients have separate code for it: its answer never ends, or comes with file descriptors."""


class Operation(NamedTuple):
    """One operation. Types are imported when they are first needed, since a short command needs few of them."""

    name: str
    """Its name on the wire."""
    right: Right
    style: Style
    args: Callable[[], type[msgspec.Struct]]
    """Returns the type of its arguments; the fields have the names of the method's parameters."""
    constant: Mapping[str, Any] = {}
    """Arguments that clients always send, and that the method does not have."""
    wrapped: Callable[[], type[msgspec.Struct]] | None = None
    """Returns the type of the answer where it has one field, which is the method's result."""
    join: Callable[[Iterable[bytes | msgspec.Raw]], Any] | None = None
    """Returns the result from the encoded pieces of the answer; None: they are lists, which are joined."""
    method: Callable[..., Any] | None = None
    """The typed method; None for `Style.SPECIAL`."""
    parameters: tuple[str, ...] = ()

    def arguments(self, given: Mapping[str, Any]) -> msgspec.Struct:
        """Return the arguments of a call as they are sent. An argument that has their type already is sent itself."""
        kind = self.args()
        values = list(given.values())
        # Methods with many parameters take their message as it is; its fields are then the parameters.
        if len(values) == 1 and isinstance(values[0], kind):
            return values[0]
        # The types of messages are frozen and have tuples.
        sent = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        return kind(**self.constant, **sent)

    def answer_type(self) -> Any:  # noqa: ANN401 - a type, also a union
        """Return the type of the answer on the wire."""
        return self.wrapped() if self.wrapped is not None else self._result_type()

    def result(self, answer: Any) -> Any:  # noqa: ANN401 - of the operation
        """Return the result of the method for an answer of `answer_type`."""
        if self.wrapped is None:
            return answer
        (field,) = answer.__struct_fields__
        return msgspec.convert(getattr(answer, field), type=self._result_type())

    def joined(self, pieces: Iterable[bytes | msgspec.Raw]) -> Any:  # noqa: ANN401 - of the operation
        """Return the result of the method for an answer in pieces."""
        if self.join is not None:
            return self.join(pieces)
        decode = msgspec.msgpack.Decoder(self._result_type()).decode
        return [each for piece in pieces for each in decode(piece)]

    def takes_time(self, args: msgspec.Struct) -> bool:
        """Return whether the answer may come at any time, so that there is no time limit for it."""
        # An operation of this style without the field always waits.
        return self.style is Style.WAITS and bool(getattr(args, "wait", True))

    def _result_type(self) -> Any:  # noqa: ANN401 - a type, also a union
        from typing import get_type_hints

        assert self.method is not None, f"{self.name} has no typed method"
        return get_type_hints(self.method)["return"]


class Performs(Protocol):
    """Something that carries out operations."""

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        """Carry out an operation with the arguments of a call, by parameter, and return its result."""
        ...


Method = TypeVar("Method", bound=Callable[..., Coroutine[Any, Any, Any]])


def operation(
    right: Right,
    style: Style,
    args: Callable[[], type[msgspec.Struct]],
    *,
    constant: Mapping[str, Any] = {},
    wrapped: Callable[[], type[msgspec.Struct]] | None = None,
    join: Callable[[Iterable[bytes | msgspec.Raw]], Any] | None = None,
) -> Callable[[Method], Method]:
    """Make an operation of a typed method without a body; a call of it becomes a call of `perform`."""

    def described(method: Method) -> Method:
        code = method.__code__
        # Without `self`. Read from the code object: inspect takes milliseconds to import, which every short command
        # would pay.
        names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
        row = Operation(method.__name__, right, style, args, constant, wrapped, join, method, names)

        @wraps(method)
        async def call(self: Performs, *values: object, **named: object) -> Any:  # noqa: ANN401 - of the operation
            # Positional arguments get their names. mypy checks calls against the declared method, so none is left over.
            return await self.perform(row, dict(zip(names, values, strict=False)) | named)

        call.operation = row  # type: ignore[attr-defined] # read by `operations_of`
        return call  # type: ignore[return-value] # it is called like the method

    return described


def operations_of(declaration: type) -> Iterable[Operation]:
    """Yield the operations that a class declares, in their order."""
    for member in vars(declaration).values():
        if isinstance(row := getattr(member, "operation", None), Operation):
            yield row
