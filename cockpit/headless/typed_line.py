"""Parses lines that a user types in the cockpit, such as `:accounts add …` and `:nodes drain …`, as the commands of the
same words."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Sequence
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from cockpit.formats.slurm.sacctmgr import ASSOCIATION_SETTINGS, QOS_SETTINGS
from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.headless.registry import VERBS
from cockpit.model import accountchange as change
from cockpit.model.view import AccountsShown
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.present.units import spoken

if TYPE_CHECKING:
    from cockpit.backends.base import Backend
    from cockpit.model.ids import Millis


def typed(noun: str, text: str, verbs: Sequence[str]) -> tuple[str, Namespace]:
    """Return one of the noun's verbs and its arguments. Raises `UsageError`, also for a request for help."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise UsageError(f"{noun}: a quote is not closed") from None
    if not words or words[0] not in verbs:
        hint = nearest(words[0], verbs) if words else None
        more = f"did you mean {hint}?" if hint else f"there are {', '.join(verbs)}"
        raise UsageError(f"{noun}: there is no {safe(words[0]) if words else 'act without a word'}; {more}")
    try:
        _, args = parse([noun, *words])
    except TextAsked as asked:
        raise UsageError(str(asked)) from None
    if args.cluster:
        raise UsageError("--cluster: this is about the cluster that is shown; :ctx opens another")
    return words[0], args


NOUN = "accounts"
LISTS = "qos"
"""A verb that changes nothing."""
CHANGES = tuple(name.split()[1] for name in VERBS if name.startswith(f"{NOUN} ") and name != f"{NOUN} {LISTS}")
_REMOVALS = change.RemoveAccount | change.RemoveUser | change.RemoveQos | change.RemoveCoordinators
_ACCOUNT_OPTIONS = ("--parent", "--shares", "--priority", "--qos", "--default-qos")
_USER_OPTIONS = ("--account", "--partition", *_ACCOUNT_OPTIONS[1:], "--default")


class AccountRequest(NamedTuple):
    """The request that a line of words makes."""

    change: change.AccountChange
    done: str
    """The sentence to show when it is done."""

    @property
    def removes(self) -> bool:
        return isinstance(self.change, _REMOVALS)


def asked_change(text: str) -> AccountRequest:
    """`add-user bob --account vision MaxJobs=4`: the words after `cockpit accounts`.

    Raises `UsageError`, and `SpecErrors` with all errors of the settings. A wish for help is a `UsageError` too.
    """
    _, args = typed(NOUN, text, CHANGES)
    return AccountRequest(args.change(args), f"{args.done} {args.name}")


def completions(line: str, shown: AccountsShown | None) -> list[str]:
    """The line with what its last word may become, the shortest first; nothing where it is not about accounts."""
    head, _, last = line.rpartition(" ")
    words = head.split()
    if words[:1] != [NOUN]:
        return []
    words_here = (
        word for word in _next(words[1:], shown or AccountsShown((), ())) if word.lower().startswith(last.lower())
    )
    return [f"{head} {word}" for word in sorted(words_here, key=len)]


def _next(words: Sequence[str], shown: AccountsShown) -> Iterable[str]:
    if not words:
        return (*CHANGES, LISTS)
    accounts = dict.fromkeys(row.association.account for row in shown.rows)
    users = dict.fromkeys(row.association.user for row in shown.rows if row.association.user)
    qos = [each.name for each in shown.qos]
    verb, last = words[0], words[-1]
    if last in {"--account", "--parent"}:
        return accounts
    if last in {"--qos", "--default-qos"}:
        return qos
    if verb.endswith("-coordinator"):
        return users if len(words) > 1 else accounts
    named = qos if verb.endswith("-qos") else users if verb.endswith("-user") else accounts
    return [*(named if len(words) == 1 else ()), *_settings(verb)]


def _settings(verb: str) -> Sequence[str]:
    if verb.startswith("remove"):
        return _USER_OPTIONS[:2] if verb == "remove-user" else ()
    if verb.endswith("-qos"):
        return ("--priority", *(f"{name}=" for name in QOS_SETTINGS))
    options = _USER_OPTIONS if verb.endswith("-user") else _ACCOUNT_OPTIONS
    return (*options, *(f"{name}=" for name in ASSOCIATION_SETTINGS))


NODES, RESERVATIONS = "nodes", "reservations"
_REASON = re.compile(
    r"(?P<before>drain\s+[^-\s].*?\s--reason)[\s=]+(?P<reason>[^'\"\s].*?)(?P<after>(?:\s+-{1,2}[a-z].*)?)"
)
"""A reason without quotes behind the nodes that are drained: its words up to the next option."""
Deed = Callable[["Backend"], Awaitable[None]]


class NodeRequests(NamedTuple):
    """The requests that a line of words makes."""

    deeds: tuple[Deed, ...]
    """The requests in order; a refusal skips the rest."""
    done: str
    """The sentence to show when they are done."""


def asked_of_nodes(noun: str, text: str, now: Millis) -> NodeRequests:
    """`create course --nodes n01 …` after `reservations`, `drain n07 --reason …` after `nodes`. Raises `UsageError`; a
    wish for help is one too. A reason for which only the end of the line is left needs no quotes."""
    if noun == NODES and (match := _REASON.fullmatch(text.strip())) is not None:
        text = f"{match['before']} {quote(match['reason'])}{match['after']}"
    verbs = [name.split()[1] for name in VERBS if name.startswith(f"{noun} ")]
    verb, args = typed(noun, text, verbs)
    return _READ[noun, verb](args, now)


def _create(args: Namespace, now: Millis) -> NodeRequests:
    from cockpit.headless.verbs.reservations import wanted_reservation

    wanted = wanted_reservation(args, now)
    return NodeRequests((lambda backend: backend.make_reservation(wanted),), f"reserved {wanted.name}")


def _end(args: Namespace, _now: Millis) -> NodeRequests:
    return NodeRequests(
        tuple(_call_of("end_reservation", name) for name in args.names), f"ended {', '.join(args.names)}"
    )


def _drain(args: Namespace, _now: Millis) -> NodeRequests:
    done = f"drained {', '.join(args.nodes)}: nothing more starts there"
    if args.within is not None:
        done += f", and what runs there has {spoken(args.within)} to go"
    return NodeRequests(tuple(_call_of("drain_node", name, args.reason, args.within) for name in args.nodes), done)


def _resume(args: Namespace, _now: Millis) -> NodeRequests:
    return NodeRequests(
        tuple(_call_of("resume_node", name) for name in args.nodes), f"gave back {', '.join(args.nodes)}"
    )


def _call_of(operation: str, *arguments: str | int | None) -> Deed:
    def deed(backend: Backend) -> Awaitable[None]:
        doing: Awaitable[None] = getattr(backend, operation)(*arguments)
        return doing

    return deed


_READ: dict[tuple[str, str], Callable[[Namespace, Millis], NodeRequests]] = {
    (RESERVATIONS, "create"): _create,
    (RESERVATIONS, "end"): _end,
    (NODES, "drain"): _drain,
    (NODES, "resume"): _resume,
}
