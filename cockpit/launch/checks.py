"""All rules of a spec at once: its fields, their conflicts, and the grammar of its command."""

from __future__ import annotations

from cockpit.launch.command import command_errors
from cockpit.model.rules import COMMAND_BYTES, spec_errors
from cockpit.model.spec import JobSpec


def submission_errors(spec: JobSpec) -> list[str]:
    """One sentence per wrong field, led by its path. The engine asks this of every submission."""
    return [*spec_errors(spec), *grammar_errors(spec)]


def grammar_errors(spec: JobSpec) -> list[str]:
    """What is wrong with the command as a command. An empty or oversized one has its error from the rules already."""
    if not spec.command or len(spec.command) > COMMAND_BYTES:
        return []
    return [f"command: {error}" for error in command_errors(spec.command)]
