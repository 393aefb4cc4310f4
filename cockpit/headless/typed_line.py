"""Parses a line that a user types in the cockpit behind a noun, as the command of the same words."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence

from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe


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
