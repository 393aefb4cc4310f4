"""The words of `cockpit nodes …` and `cockpit reservations …` for who is not a command: what they ask for."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.headless.registry import VERBS
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from argparse import Namespace

    from cockpit.backends.base import Backend
    from cockpit.model.ids import Millis

NODES, RESERVATIONS = "nodes", "reservations"
Deed = Callable[["Backend"], Awaitable[None]]


class Asked(NamedTuple):
    """What a line of words asks for."""

    deeds: tuple[Deed, ...]
    """In order; a refusal leaves the rest."""
    done: str
    """What to say when they are done."""


def asked_of_nodes(noun: str, text: str, now: Millis) -> Asked:
    """`create course --nodes n01 …` after `reservations`, `drain n07 --reason …` after `nodes`. Raises `UsageError`; a
    wish for help is one too."""
    verbs = [name.split()[1] for name in VERBS if name.startswith(f"{noun} ")]
    words = _split(noun, text)
    if words[0] not in verbs:
        hint = nearest(words[0], verbs)
        known = f"did you mean {hint}?" if hint else f"there are {', '.join(verbs)}"
        raise UsageError(f"{noun}: there is no {safe(words[0])}; {known}")
    try:
        _, args = parse([noun, *words])
    except TextAsked as asked:
        raise UsageError(str(asked)) from None
    return _READ[noun, words[0]](args, now)


def _create(args: Namespace, now: Millis) -> Asked:
    from cockpit.headless.verbs.reservations import wanted_reservation

    wanted = wanted_reservation(args, now)
    return Asked((lambda backend: backend.make_reservation(wanted),), f"reserved {wanted.name}")


def _end(args: Namespace, _now: Millis) -> Asked:
    return Asked(tuple(_of("end_reservation", name) for name in args.names), f"ended {', '.join(args.names)}")


def _drain(args: Namespace, _now: Millis) -> Asked:
    done = f"drained {', '.join(args.nodes)}: nothing more starts there"
    return Asked(tuple(_of("drain_node", name, args.reason) for name in args.nodes), done)


def _resume(args: Namespace, _now: Millis) -> Asked:
    return Asked(tuple(_of("resume_node", name) for name in args.nodes), f"gave back {', '.join(args.nodes)}")


def _of(operation: str, *arguments: str) -> Deed:
    def deed(backend: Backend) -> Awaitable[None]:
        doing: Awaitable[None] = getattr(backend, operation)(*arguments)
        return doing

    return deed


def _split(noun: str, text: str) -> list[str]:
    try:
        return shlex.split(text) or [""]
    except ValueError:
        raise UsageError(f"{noun}: a quote is not closed") from None


_READ: dict[tuple[str, str], Callable[[Namespace, Millis], Asked]] = {
    (RESERVATIONS, "create"): _create,
    (RESERVATIONS, "end"): _end,
    (NODES, "drain"): _drain,
    (NODES, "resume"): _resume,
}
