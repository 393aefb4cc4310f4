"""The groups of the form's fields, and what the heading of a group says while its fields are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from cockpit.formats.job.texts import SPECS, TASKS, member_of
from cockpit.present.form.fields import IMAGE, KIND, title
from cockpit.present.safe import safe
from cockpit.present.spans import MUTED, STRONG, Line, Span, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class FieldGroup(NamedTuple):
    """A group of fields."""

    title: str
    fields: tuple[str, ...]
    """The names of its fields, in their order."""


GROUPS: Final = (
    FieldGroup(
        "What runs",
        (
            *("name", "command", "algorithm", TASKS, IMAGE, "output", KIND, "script", "env"),
            *("array", "sweep", "worker_pools", "parameter_servers", "hooks"),
        ),
    ),
    FieldGroup("Resources", ("nodes", SPECS, "mode", "exclusive", "elastic")),
    FieldGroup(
        "Placement and queue",
        (
            *("partitions", "account", "qos", "priority", "nice", "project", "reservation", "pool"),
            *("driver_version", "node_names", "node_selector", "tolerations"),
            *("suspension", "divide_over_clusters", "failover"),
        ),
    ),
    FieldGroup(
        "Time and retries",
        (
            *("time_limit", "grace_period", "begin_at", "deadline", "dependencies", "hold"),
            *("terminal", "debug_hold", "restart", "resume"),
        ),
    ),
    FieldGroup("Data", ("datasets", "models", "volumes", "staging", "home")),
    FieldGroup("Description", ("labels", "access")),
)
FOLDED, UNFOLDED = "▸", "▾"


def group_of(path: str) -> FieldGroup:
    """Return the group of the field at a path."""
    return next(group for group in GROUPS if _name(path) in group.fields)


def grouped(paths: Iterable[str]) -> list[tuple[FieldGroup, list[str]]]:
    """Return the groups that have some of these fields, each with its fields in order."""
    known = list(paths)
    # Field by field, so that those of one spec or task keep their order.
    found = [(group, [path for name in group.fields for path in known if _name(path) == name]) for group in GROUPS]
    return [(group, own) for group, own in found if own]


def heading_line(group: FieldGroup, texts: Mapping[str, str], errors: Mapping[str, str], *, is_folded: bool) -> Line:
    """Return the heading; while the fields are hidden it names the errors, else the values, else the fields.

    `texts`: the group's fields with their texts. `errors`: by path.
    """
    sign = Span(f"{FOLDED if is_folded else UNFOLDED} {group.title}", STRONG)
    if not is_folded:
        return line(sign)
    wrong = [f"{title(path)} {errors[path]}" for path in texts if path in errors]
    if wrong:
        return line(sign, Span(f"   ✗ {safe(wrong[0])}", "warning"))
    values = [f"{title(path)} {text.strip()}" for path, text in texts.items() if text.strip()]
    if values:
        return line(sign, Span(f"   {safe(' · '.join(values))}", ""))
    return line(sign, Span(f"   {_listed(texts)}", MUTED))


def _listed(paths: Iterable[str]) -> str:
    names: Sequence[str] = [title(path) for path in paths]
    return f"{', '.join(names)}: by default"


def _name(path: str) -> str:
    member = member_of(path)
    return path if member is None else member.group
