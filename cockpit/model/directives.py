"""What only a cluster does that is acted on by commands of its own, as Slurm is."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Reach(StrEnum):
    """Which processes of a job a signal is for."""

    ALL = "all"
    """Its script, what that started, and its steps."""
    SCRIPT = "script"
    STEPS = "steps"


class SubmitScript(msgspec.Struct, frozen=True):
    """A batch script as it is, or one command."""

    script: str
    """Its text; empty where `wrap` is the command."""
    options: tuple[str, ...] = ()
    """Of the command, which outweigh those in the script."""
    file: str = ""
    """Where the script is on this machine, by the words of the user; empty: it came on standard input."""
    arguments: tuple[str, ...] = ()
    """What the script is called with."""
    wrap: str = ""
    """A command of the shell, to be submitted without a script."""


class SendSignal(msgspec.Struct, frozen=True):
    job: int
    signal: str
    """Its name without SIG, or its number."""
    to: Reach = Reach.ALL
    task: int | None = None


class UpdateJob(msgspec.Struct, frozen=True):
    """Fields by the cluster's own names for them."""

    job: int
    fields: dict[str, str]
    task: int | None = None


class MoveToTop(msgspec.Struct, frozen=True):
    """Before all other jobs of their owner."""

    jobs: tuple[str, ...]
    """As the cluster names them: `123`, `123_4`."""


Directive = SubmitScript | SendSignal | UpdateJob | MoveToTop
