"""A launch that has not happened, as a page to read: of each replica its files, environment and command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cockpit.present.command_text import shell_text
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.present.tables.launch import Launch


def launch_lines(launches: Sequence[Launch]) -> Iterator[str]:
    """Harmless lines; what all replicas of a job have in common is said once."""
    for name in dict.fromkeys(each.name for each in launches):
        ours = [each for each in launches if each.name == name]
        common = dict(set.intersection(*(set(each.plan.env.items()) for each in ours))) if len(ours) > 1 else {}
        if common:
            yield f"{safe(name)}: environment of every rank"
            yield from _texts(common)
            yield ""
        for each in ours:
            yield from _replica(each, common)
            yield ""


def _replica(launch: Launch, common: dict[str, str]) -> Iterator[str]:
    plan = launch.plan
    yield f"{safe(launch.name)}: rank {launch.rank}, host {safe(plan.hostname)}"
    yield from _texts({name: value for name, value in plan.env.items() if name not in common})
    for path, text in plan.files.items():
        yield f"  {safe(path)}"
        yield from (f"    {safe(each)}" for each in text.splitlines())
    yield from _said("given", launch.given)
    yield from _said("command", plan.command)
    yield f"  runs     {shell_text(plan.argv)}"
    yield from (f"  hint     {safe(hint)}" for hint in plan.hints)


def _said(name: str, command: str) -> Iterator[str]:
    """With the line breaks that it was written with."""
    first, *others = command.strip("\n").split("\n")
    yield f"  {name:<8} {safe(first)}"
    yield from (f"           {safe(each)}" for each in others)


def _texts(env: dict[str, str]) -> Iterator[str]:
    return (f"  {safe(name)}={safe(env[name])}" for name in sorted(env))
