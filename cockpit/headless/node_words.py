"""The words of `cockpit nodes …` and `cockpit reservations …` typed in the cockpit: the requests that they make."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from shlex import quote, split
from typing import TYPE_CHECKING, NamedTuple

from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.headless.registry import VERBS
from cockpit.headless.typed_line import parse_line
from cockpit.present.units import spoken

if TYPE_CHECKING:
    from argparse import Namespace

    from cockpit.backends.base import Backend
    from cockpit.model.ids import Millis

NODES, RESERVATIONS = "nodes", "reservations"
_REASON = re.compile(
    r"(?P<before>drain\s+[^-\s].*?\s--reason)[\s=]+(?P<reason>[^'\"\s].*?)(?P<after>(?:\s+-{1,2}[a-z].*)?)"
)
"""A reason without quotes behind the nodes that are drained: its words up to the next option."""
NodeOperation = Callable[["Backend"], Awaitable[None]]


class NodeRequests(NamedTuple):
    """The requests that a line of words makes."""

    operations: tuple[NodeOperation, ...]
    """The operations of the cluster, in order; a refusal skips the rest."""
    done: str
    """The sentence to show when they are done."""
    back: NodeRequests | str
    """The requests that undo them, or why nothing does."""
    offer: str = ""
    """What `back` does, in words that follow a key: `ends it`."""
    drained: tuple[str, ...] = ()
    """The nodes that they drain, which `back` returns to service."""


def node_requests(noun: str, text: str, now: Millis) -> NodeRequests:
    """Parse `create course --nodes n01 …` after `reservations`, or `drain n07 --reason …` after `nodes`.

    Raises `UsageError`, also for a request for help. A reason that is the end of the line needs no quotes."""
    # Quoted here, so that the parser of the command line takes all words of the reason as one.
    if noun == NODES and (match := _REASON.fullmatch(text.strip())) is not None:
        text = f"{match['before']} {quote(match['reason'])}{match['after']}"
    verbs = [name.split()[1] for name in VERBS if name.startswith(f"{noun} ")]
    verb, args = parse_line(noun, text, verbs)
    return _READ[noun, verb](args, now)


def reclaim_requests(text: str) -> NodeRequests:
    """Parse `n07 --grace 5m`, the words after `reclaim`. Raises `UsageError`, also for a request for help."""
    try:
        _, args = parse(["reclaim", *split(text)])
    except ValueError:
        raise UsageError("reclaim: a quote is not closed") from None
    except TextAsked as asked:
        raise UsageError(str(asked)) from None
    if args.cluster:
        raise UsageError("--cluster: this is about the cluster that is shown; :ctx opens another")
    done = f"reclaimed {', '.join(args.nodes)}: running jobs have {spoken(args.grace)} to end"
    back = "A provider's reclaim cannot be taken back; :nodes resume returns the nodes to service."
    return NodeRequests(tuple(_call_of("drain_node", name, args.reason, args.grace) for name in args.nodes), done, back)


def _create(args: Namespace, now: Millis) -> NodeRequests:
    from cockpit.headless.verbs.reservations import wanted_reservation

    wanted = wanted_reservation(args, now)
    back = NodeRequests((_call_of("end_reservation", wanted.name),), f"ended {wanted.name}", "")
    return NodeRequests((lambda backend: backend.make_reservation(wanted),), f"reserved {wanted.name}", back, "ends it")


def _end(args: Namespace, _now: Millis) -> NodeRequests:
    operations = tuple(_call_of("end_reservation", name) for name in args.names)
    back = "An ended reservation is made again by :reservations create."
    return NodeRequests(operations, f"ended {', '.join(args.names)}", back)


def _drain(args: Namespace, _now: Millis) -> NodeRequests:
    done = f"drained {', '.join(args.nodes)}: nothing more starts there"
    if args.within is not None:
        done += f", and what runs there has {spoken(args.within)} to go"
    operations = tuple(_call_of("drain_node", name, args.reason, args.within) for name in args.nodes)
    return NodeRequests(operations, done, _resume(args, _now), "gives it back", drained=tuple(args.nodes))


def _resume(args: Namespace, _now: Millis) -> NodeRequests:
    operations = tuple(_call_of("resume_node", name) for name in args.nodes)
    return NodeRequests(operations, f"gave back {', '.join(args.nodes)}", "A node is drained again with its reason.")


def _call_of(operation: str, *arguments: str | int | None) -> NodeOperation:
    def call(backend: Backend) -> Awaitable[None]:
        doing: Awaitable[None] = getattr(backend, operation)(*arguments)
        return doing

    return call


_READ: dict[tuple[str, str], Callable[[Namespace, Millis], NodeRequests]] = {
    (RESERVATIONS, "create"): _create,
    (RESERVATIONS, "end"): _end,
    (NODES, "drain"): _drain,
    (NODES, "resume"): _resume,
}
