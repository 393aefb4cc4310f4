"""The columns of `cockpit launch --dry-run`: one row per replica."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from cockpit.launch.plan import LaunchPlan
from cockpit.model.masking import masked_env
from cockpit.present.columns import Column, TableView, ValueKind
from cockpit.present.command_text import shell_text
from cockpit.present.safe import safe


class Launch(msgspec.Struct, frozen=True):
    """The command, environment and files with which one replica would be started."""

    name: str
    """Name of the job; for a task of a batch followed by its number."""
    rank: int
    node: str
    given: str
    """The command as written in the job file."""
    plan: LaunchPlan


def _texts(values: dict[str, str]) -> str:
    return " ".join(f"{safe(name)}={safe(value)}" for name, value in masked_env(values).items())


_OF_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}

LAUNCH: Final = TableView(
    name="launch",
    help="What each replica of a job would be started with",
    empty="The file holds no job.",
    columns=(
        Column("name", "NAME", "The job's name"),
        Column("rank", "RANK", "Which replica, from 0", ValueKind.INTEGER),
        Column("host", "HOST", "Its host name", field="plan.hostname"),
        Column("node", "NODE", "An example of a node that is just what it asks for", wide=True),
        Column("given", "GIVEN", "The command as the job file has it", wide=True),
        Column("command", "COMMAND", "What the mode makes of it, before expansion", field="plan.command"),
        Column("argv", "ARGV", "The program and its arguments, expanded", ValueKind.WORDS, field="plan.argv"),
        Column("workdir", "WORKDIR", "Where it begins", field="plan.workdir", wide=True),
        Column(
            "env",
            "ENV",
            "Its whole environment",
            ValueKind.RECORD,
            field="plan.env",
            words=lambda row, _: _texts(row.plan.env),
            record_json=masked_env,
            schema=_OF_TEXTS,
            wide=True,
        ),
        Column(
            "files",
            "FILES",
            "Files that it gets: text by path",
            ValueKind.RECORD,
            field="plan.files",
            words=lambda row, _: ", ".join(map(safe, row.plan.files)),
            schema=_OF_TEXTS,
            wide=True,
        ),
        Column(
            "hints", "HINTS", "What is worth knowing about the command", ValueKind.WORDS, field="plan.hints", rare=True
        ),
    ),
)


class LaunchScript(msgspec.Struct, frozen=True):
    """The command and script that would submit one job."""

    name: str
    argv: tuple[str, ...]
    script: str


LAUNCH_SCRIPT: Final = TableView(
    name="launch-script",
    help="What would submit each job to a Slurm cluster",
    empty="The file holds no job.",
    columns=(
        Column("name", "NAME", "The job's name"),
        Column("argv", "ARGV", "The command and its options", ValueKind.WORDS),
        Column("script", "SCRIPT", "What it reads: the script that is run", wide=True),
    ),
)


def launch_lines(launches: Sequence[Launch]) -> Iterator[str]:
    """Yield harmless lines; the environment that all replicas of a job have in common is shown once."""
    for name in dict.fromkeys(each.name for each in launches):
        # Tasks of a batch are jobs of their own here, each with its environment.
        ours = [each for each in launches if each.name == name]
        # With one replica everything would be common, and a heading above it would only puzzle.
        common = dict(set.intersection(*(set(each.plan.env.items()) for each in ours))) if len(ours) > 1 else {}
        if common:
            yield f"{safe(name)}: environment of every rank"
            yield from _texts_launch_page(common)
            yield ""
        for each in ours:
            yield from _replica(each, common)
            yield ""


def _replica(launch: Launch, common: dict[str, str]) -> Iterator[str]:
    """Yield one replica's host, environment, files and commands."""
    plan = launch.plan
    yield f"{safe(launch.name)}: rank {launch.rank}, host {safe(plan.hostname)}"
    yield from _texts_launch_page({name: value for name, value in plan.env.items() if name not in common})
    for path, text in plan.files.items():
        yield f"  {safe(path)}"
        yield from (f"    {safe(each)}" for each in text.splitlines())
    # Three forms of one command: as written, as the launch mode makes it, and with variables replaced. The first
    # difference shows where something went wrong.
    yield from _command_lines("given", launch.given)
    yield from _command_lines("command", plan.command)
    yield f"  runs     {shell_text(plan.argv)}"
    yield from (f"  hint     {safe(hint)}" for hint in plan.hints)


def _command_lines(name: str, command: str) -> Iterator[str]:
    """Yield the command under a label, with its original line breaks."""
    # A command of several lines is a script: joined lines would be another one.
    first, *others = command.strip("\n").split("\n")
    yield f"  {name:<8} {safe(first)}"
    yield from (f"           {safe(each)}" for each in others)


def _texts_launch_page(env: dict[str, str]) -> Iterator[str]:
    return (f"  {safe(name)}={safe(value)}" for name, value in sorted(masked_env(env).items()))
