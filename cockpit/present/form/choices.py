"""The choices of a form's field: those that match what is typed, what taking one writes, and how they are drawn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.formats.job.texts import field_of, values_of
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.present.width import cut, pad, widest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GAP: Final = "  "
MARGIN: Final = "   "
"""Of a line, with the mark of a chosen value in it."""
MOST_VALUE_COLUMNS: Final = 30
CHOSEN: Final = "✓"


FREE: Final = frozenset({"algorithm", "datasets", "image", "models", "project", "volumes"})
"""Fields that may well have another value than their choices."""


class FieldChoice(NamedTuple):
    """A value that a field may have."""

    value: str
    """The value as the user reads it."""
    about: str = ""
    """Facts about it, such as `3 of 8 free now`."""
    why_not: str = ""
    """Why the job may not have it, or does not fit it; empty: it may, as far as the form knows."""
    reference: Mapping[str, object] | None = None
    """What a job file writes for an entry of the catalogue; None: the value itself."""


def is_list(path: str) -> bool:
    """Return whether the field holds several values."""
    return field_of(path).kind.schema().get("type") == "array"


def is_fixed(path: str) -> bool:
    """Return whether the field takes no other values than a few words."""
    schema = field_of(path).kind.schema()
    return "enum" in schema or schema.get("type") == "boolean"


def written(path: str, text: str) -> list[str]:
    """Return the values that the field's text holds."""
    text = text.strip()
    if not is_list(path):
        return [text] if text else []
    if text.startswith("["):
        entries = _entries(path, text)
        return [str(each.get("name", "")) if isinstance(each, dict) else str(each) for each in entries]
    return [word for each in text.split(",") if (word := each.strip())]


def wanted(path: str, text: str, choices: Sequence[FieldChoice]) -> str:
    """Return the part of the text that filters the choices: of a list the last value, unless it is one of them."""
    values = written(path, text)
    if not values or text.strip().startswith("[") or text.rstrip().endswith(","):
        return ""
    return "" if values[-1] in {each.value for each in choices} else values[-1]


def matching(choices: Sequence[FieldChoice], typed: str) -> list[FieldChoice]:
    """Return the choices that contain the typed text: first those that begin with it; without regard to case."""
    word = typed.casefold()
    begins = [each for each in choices if each.value.casefold().startswith(word)]
    # What is said about a choice is searched only where no value matches.
    contains = [each for each in choices if word in each.value.casefold() and each not in begins]
    return begins + contains or [each for each in choices if word in each.about.casefold()]


def with_choice(path: str, text: str, choice: FieldChoice, choices: Sequence[FieldChoice]) -> str:
    """Return the field's text once the choice is taken: a list gets it as well, or loses it where it has it already."""
    if not is_list(path):
        return choice.value if choice.reference is None else _json(choice.reference)
    if choice.reference is not None:
        before = _entries(path, text) if text.strip().startswith("[") else []
        rest = [each for each in before if not (isinstance(each, dict) and each.get("name") == choice.value)]
        entries = rest if len(rest) < len(before) else [*before, dict(choice.reference)]
        return _json(entries) if entries else ""
    values = written(path, text)
    if wanted(path, text, choices):
        values.pop()  # the part that the choice completes
    kept = [each for each in values if each != choice.value]
    return ", ".join(kept if len(kept) < len(values) else [*kept, choice.value])


class ChoiceColumns(NamedTuple):
    """The widths of the columns of a list of choices."""

    value: int
    about: int

    @classmethod
    def of(cls, choices: Sequence[FieldChoice]) -> ChoiceColumns:
        values = widest([safe(each.value) for each in choices])
        abouts = [sum(len(safe(text)) + len(GAP) for text in (each.why_not, each.about) if text) for each in choices]
        return cls(min(MOST_VALUE_COLUMNS, values), max(abouts, default=0))

    @property
    def wanted(self) -> int:
        return self.value + self.about + len(MARGIN) + 1


def choice_line(each: FieldChoice, *, is_chosen: bool, value_columns: int) -> Line:
    """Return the line of a choice: a mark where the field has it, the value, why not, and facts."""
    value = pad(cut(safe(each.value), value_columns), value_columns)
    spans = [
        Span(f" {CHOSEN} " if is_chosen else MARGIN, ACCENT),
        Span(value, MUTED if each.why_not else STRONG),
    ]
    # The reason first: where both do not fit, it is what the user needs.
    spans += [Span(f"{GAP}{safe(each.why_not)}", "warning")] if each.why_not else []
    spans += [Span(f"{GAP}{safe(each.about)}", MUTED)] if each.about else []
    return line(*spans)


def _entries(path: str, text: str) -> list[object]:
    value = values_of({path: text}).get(path)
    return list(value) if isinstance(value, list) else []


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
