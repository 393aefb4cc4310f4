"""A command of a cluster as one would type it into a shell, with what it reads behind it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from cockpit.present.safe import safe


def command_lines(argv: Sequence[str], stdin: str = "") -> Iterator[str]:
    """Harmless lines."""
    if not stdin:
        yield safe(shlex.join(argv))
        return
    text, end = stdin.splitlines(), "END_OF_SCRIPT"
    while end in text:
        end += "_"
    yield f"{safe(shlex.join(argv))} <<'{end}'"
    yield from map(safe, text)
    yield end
