"""Parses lines that a user types in the cockpit, such as `:accounts add …`, as the commands of the same words."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cockpit.formats.slurm.sacctmgr import ASSOCIATION_SETTINGS, QOS_SETTINGS
from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.headless.registry import VERBS
from cockpit.model import accountchange as change
from cockpit.model.view import AccountsShown
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe


def parse_line(noun: str, text: str, verbs: Sequence[str]) -> tuple[str, Namespace]:
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
    # The cockpit shows one cluster, and a change of another would go unseen.
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


def account_request(text: str) -> AccountRequest:
    """Parse the words after `cockpit accounts`, such as `add-user bob --account vision MaxJobs=4`.

    Raises `UsageError`, also for a request for help, and `SpecErrors` with all errors of the settings.
    """
    _, args = parse_line(NOUN, text, CHANGES)
    return AccountRequest(args.change(args), f"{args.done} {args.name}")


def completions(line: str, shown: AccountsShown | None) -> list[str]:
    """Return the line with each of its last word's completions, the shortest first; none if it is about something
    else."""
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
    # The word before decides, where it is an option that takes a value.
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
