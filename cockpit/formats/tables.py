"""Tables of fields: they read the mappings of a file into frozen structs, write them back, and make the JSON Schema."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from cockpit.formats.kinds import FieldType, Reading, Schema, described
from cockpit.model.text import visible

_LONGEST_NAME = 64

Struct = TypeVar("Struct", bound=msgspec.Struct)


class Field(msgspec.Struct, frozen=True):
    """One field of a mapping: its name in files, its attribute in the model, and its kind of value."""

    name: str
    kind: FieldType[Any]
    about: str
    """A sentence for the schema."""
    attribute: str = ""
    """The attribute of the struct; by default that of the field's name."""
    required: bool = False
    spared: Callable[[dict[str, Any]], bool] | None = None
    """Decides whether a required field may be missing, by the attributes that are given."""
    alias: bool = False
    """Whether this is another name of an attribute, which is read but not written."""
    always: bool = False
    """Whether it is written even with the model's default, because an administrator may have set another default."""
    derive: Callable[[dict[str, Any]], Any] | None = None
    """Computes the value of a missing field from the attributes that are given."""

    def __post_init__(self) -> None:
        if not self.attribute:
            msgspec.structs.force_setattr(self, "attribute", self.name)


class Table(Generic[Struct]):
    """The fields of one mapping.

    `short`: name of a field whose value may be written alone in place of the mapping. `either`: names of fields of
    which at least one is required.
    """

    def __init__(
        self, struct: type[Struct], fields: Sequence[Field], *, short: str = "", either: tuple[str, ...] = ()
    ) -> None:
        self.fields = tuple(fields)
        self._struct = struct
        self._short = short
        self._by_name = {field.name: field for field in fields}
        # In the order of the table: a derived field may use the attributes of those before it.
        self._needed = tuple(field for field in fields if field.required or field.derive)
        # An instance with all defaults, against which `write` compares. Required fields have stand-ins in it.
        self._usual = struct(**{field.attribute: field.kind.stand_in for field in self._needed})
        self._either = tuple(self._by_name[name] for name in either)
        preset = {field.attribute: field.kind.stand_in for field in self._either[:1]}
        self.stand_in = msgspec.structs.replace(self._usual, **preset)

    def read(self, value: object, at: str, reading: Reading) -> Struct:
        given = self.given(value, at, reading)
        return self.stand_in if given is None else self._struct(**given)

    def given(self, value: object, at: str, reading: Reading) -> dict[str, Any] | None:
        """Return the attributes that the file gives, and all required ones; None if the value is no mapping."""
        # The short form: a text in place of the table gives its most important field.
        if self._short and isinstance(value, str):
            value = {self._short: value}
        if not isinstance(value, dict):
            reading.wrong(at, f"is {described(value)}; write fields: {', '.join(list(self._by_name)[:4])} …")
            return None
        given: dict[str, Any] = {}
        prefix = f"{at}." if at else ""
        for name, item in value.items():
            self._read_field(name, item, prefix, reading, given)
        if self._either and not any(field.name in value for field in self._either):
            reading.wrong(at, f"says neither {' nor '.join(field.name for field in self._either)}; write one of them")
            return None
        for field in self._needed:
            if field.attribute not in given and not (field.spared and field.spared(given)):
                given[field.attribute] = self._absent(field, prefix, reading, given)
        return given

    def _read_field(self, name: str, item: object, prefix: str, reading: Reading, given: dict[str, Any]) -> None:
        """Read one field into `given`, by its attribute."""
        field = self._by_name.get(name)
        if field is None:
            reading.wrong(f"{prefix}{visible(name)}", f"is no field here{self._advice(name)}")
        # By attribute: an alias and its field may both be written.
        elif field.attribute in given:
            reading.wrong(f"{prefix}{name}", "says again what another field says; keep one of them")
        else:
            given[field.attribute] = field.kind.read(item, f"{prefix}{name}", reading)

    def _absent(self, field: Field, prefix: str, reading: Reading, given: dict[str, Any]) -> object:
        if field.derive is not None:
            return field.derive(given)
        # `about` of a required field begins with what to do: "Give a name".
        reading.wrong(f"{prefix}{field.name}", f"is missing; {field.about[0].lower()}{field.about[1:].rstrip('.')}")
        return field.kind.stand_in

    def _advice(self, name: str) -> str:
        # Comparing is quadratic in the length of the name.
        near = difflib.get_close_matches(name, self._by_name, 1) if len(name) <= _LONGEST_NAME else []
        return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(self._by_name)}"

    def write(self, value: Struct) -> dict[str, object]:
        """Return the fields that differ from their defaults, in the order of the table."""
        return {
            field.name: field.kind.write(getattr(value, field.attribute))
            for field in self.fields
            if not field.alias and self._is_written(field, value)
        }

    def _is_written(self, field: Field, value: Struct) -> bool:
        # Its default is an empty value, which means a missing field.
        if field.spared is not None:
            return bool(getattr(value, field.attribute))
        return bool(field.required or field.derive or field.always or self._differs(field, value))

    def _differs(self, field: Field, value: Struct) -> bool:
        given, default = getattr(value, field.attribute), getattr(self._usual, field.attribute)
        return bool(given != default)

    def schema(self) -> Schema:
        table: Schema = {
            "type": "object",
            "properties": {field.name: self._field_schema(field) for field in self.fields},
            "additionalProperties": False,
        }
        if required := [field.name for field in self.fields if field.required and field.spared is None]:
            table["required"] = required
        if self._either:
            # At least one of them, as `given` checks.
            table["anyOf"] = [{"required": [field.name]} for field in self._either]
        return {"anyOf": [self._by_name[self._short].kind.schema(), table]} if self._short else table

    def _field_schema(self, field: Field) -> Schema:
        schema = {"description": field.about, **field.kind.schema()}
        default = None if field in self._needed else getattr(self._usual, field.attribute)
        if default not in (None, "") and not field.alias and not field.always:
            schema["default"] = field.kind.write(default)
        return schema
