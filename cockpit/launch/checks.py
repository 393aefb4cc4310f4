"""All rules of a spec at once: its fields, their conflicts, and the grammar of its command."""

from __future__ import annotations

from cockpit.launch.command import command_errors
from cockpit.model.kindrules import MOST_BATCH_TASKS
from cockpit.model.rules import spec_errors
from cockpit.model.spec import JobSpec
from cockpit.model.textrules import COMMAND_BYTES


def submission_errors(spec: JobSpec) -> list[str]:
    """One sentence per wrong field, led by its path. The engine asks this of every submission."""
    return [*spec_errors(spec), *grammar_errors(spec)]


def grammar_errors(spec: JobSpec) -> list[str]:
    """What is wrong with the commands as commands. An empty or oversized one has its error from the rules already."""
    commands = {"command": spec.command}
    commands |= {f"tasks[{index}].command": task.command for index, task in enumerate(spec.tasks[:MOST_BATCH_TASKS])}
    commands |= {f"worker_pools[{index}].command": pool.command for index, pool in enumerate(spec.worker_pools)}
    return [
        f"{path}: {error}"
        for path, command in commands.items()
        if command and len(command) <= COMMAND_BYTES
        for error in command_errors(command)
    ]
