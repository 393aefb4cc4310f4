"""Requests that only one kind of cluster serves, such as Slurm's signals, steps and scontrol updates."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from cockpit.model.capabilities import Ability


class SignalTarget(StrEnum):
    """The processes of a job that a signal is sent to."""

    ALL = "all"
    """The script, its child processes, and its steps."""
    SCRIPT = "script"
    STEPS = "steps"


class SubmitScript(msgspec.Struct, frozen=True):
    """A batch script, unchanged, or one command."""

    script: str
    """The script's text; empty where `wrap` is the command."""
    options: tuple[str, ...] = ()
    """The command's options, which override those in the script."""
    file: str = ""
    """The script's file on this machine, as the user wrote it; empty: it came from standard input."""
    arguments: tuple[str, ...] = ()
    """Arguments of the script."""
    wrap: str = ""
    """A command of the shell, to be submitted without a script."""


class SendSignal(msgspec.Struct, frozen=True):
    job: int
    signal: str
    """The signal's name without SIG, or its number."""
    to: SignalTarget = SignalTarget.ALL
    task: int | None = None


class UpdateJob(msgspec.Struct, frozen=True):
    """Fields by the cluster's own names for them."""

    job: int
    fields: dict[str, str]
    task: int | None = None


class MoveToTop(msgspec.Struct, frozen=True):
    """Move jobs before all other jobs of their owner (`scontrol top`)."""

    jobs: tuple[str, ...]
    """The jobs as the cluster names them: `123`, `123_4`."""


Directive = SubmitScript | SendSignal | UpdateJob | MoveToTop
_NEEDS: Mapping[type[Directive], tuple[str, ...]] = {
    # Both: a way to the cluster may take scripts and yet be one on which nothing can be submitted, such as a recording.
    SubmitScript: (Ability.SCRIPTS, "submit"),
    SendSignal: (Ability.SIGNALS,),
    UpdateJob: (Ability.UPDATE,),
    MoveToTop: (Ability.TOP,),
}


def needs_of(wanted: Directive) -> tuple[str, ...]:
    """Return the abilities and operations that a cluster needs to carry out the directive."""
    return _NEEDS[type(wanted)]
