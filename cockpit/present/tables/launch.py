"""The columns of `cockpit launch --dry-run`: one row per replica."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cockpit.launch.plan import LaunchPlan
from cockpit.present.columns import Column, Context, TableView, ValueKind
from cockpit.present.safe import safe


class Launch(msgspec.Struct, frozen=True):
    """What one replica would be started with."""

    name: str
    """The job's; of a batch's task with its number."""
    rank: int
    node: str
    given: str
    """The command as the job file has it."""
    plan: LaunchPlan


def _texts(values: dict[str, str]) -> str:
    return " ".join(f"{safe(name)}={safe(value)}" for name, value in values.items())


def _env_text(row: Any, _: Context) -> str:  # noqa: ANN401 - a Launch
    return _texts(row.plan.env)


def _files_text(row: Any, _: Context) -> str:  # noqa: ANN401 - a Launch
    return ", ".join(map(safe, row.plan.files))


_OF_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}

LAUNCH: Final = TableView(
    name="launch",
    help="What each replica of a job would be started with",
    empty="The file holds no job.",
    columns=(
        Column("name", "NAME", ValueKind.TEXT, "The job's name", field="name"),
        Column("rank", "RANK", ValueKind.INTEGER, "Which replica, from 0", field="rank"),
        Column("host", "HOST", ValueKind.TEXT, "Its host name", field="plan.hostname"),
        Column(
            "node", "NODE", ValueKind.TEXT, "An imagined node that is just what it asks for", field="node", wide=True
        ),
        Column("given", "GIVEN", ValueKind.TEXT, "The command as the job file has it", field="given", wide=True),
        Column(
            "command", "COMMAND", ValueKind.TEXT, "What the mode makes of it, before expansion", field="plan.command"
        ),
        Column("argv", "ARGV", ValueKind.WORDS, "The program and its arguments, expanded", field="plan.argv"),
        Column("workdir", "WORKDIR", ValueKind.TEXT, "Where it begins", field="plan.workdir", wide=True),
        Column(
            "env",
            "ENV",
            ValueKind.RECORD,
            "Its whole environment",
            field="plan.env",
            words=_env_text,
            schema=_OF_TEXTS,
            wide=True,
        ),
        Column(
            "files",
            "FILES",
            ValueKind.RECORD,
            "Files that it gets: text by path",
            field="plan.files",
            words=_files_text,
            schema=_OF_TEXTS,
            wide=True,
        ),
        Column(
            "hints", "HINTS", ValueKind.WORDS, "What is worth knowing about the command", field="plan.hints", rare=True
        ),
    ),
)
