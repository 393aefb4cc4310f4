"""Words of a script: the one place where what a person typed becomes text that a shell reads."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple


class Variable(NamedTuple):
    """A value that the script knows only while it runs."""

    name: str


def quoted(text: str) -> str:
    """Return one shell word with exactly this text."""
    return shlex.quote(text)


def word(*parts: str | Variable) -> str:
    """Return one shell word of fixed texts and of variables."""
    # Neighbouring texts are quoted together, so that a word without variables is quoted once.
    runs = groupby(parts, lambda each: isinstance(each, Variable))
    return "".join(_filled_in(run) if filled else quoted("".join(map(str, run))) for filled, run in runs)


def json_word(value: object) -> str:
    """Return one shell word with the value as JSON. A `Variable` in it contains JSON itself."""
    return word(*_pieces(value))


def _filled_in(variables: Iterator[str | Variable]) -> str:
    return "".join(f'"${{{each.name}}}"' for each in variables if isinstance(each, Variable))


def _pieces(value: object) -> Iterator[str | Variable]:
    """Yield the JSON of a value as literal texts and variables."""
    if isinstance(value, Variable):
        yield value
    elif isinstance(value, dict) and value:
        for number, (key, each) in enumerate(value.items()):
            # The shape of `json.dumps`, with what the shell puts in between.
            yield f"{', ' if number else '{'}{json.dumps(key)}: "
            yield from _pieces(each)
        yield "}"
    else:
        yield json.dumps(value)
