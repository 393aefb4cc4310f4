"""Translates the paths of cockpit's containers into those on a cluster without containers."""

from __future__ import annotations

import re

from cockpit.launch.lexer import Literal, NotSimple, Word, lex, script_follows
from cockpit.launch.shellform import in_double_quotes
from cockpit.launch.workspace import ALGORITHM, OUTPUTS, WORKSPACE
from cockpit.model.spec import JobSpec

_PLAIN = re.compile(r"[\w./+@%-]+")
"""A path that is the same within every kind of quotes."""


def on_nodes(spec: JobSpec, command: str) -> str:
    """The command with the paths that its algorithm and its output have there."""
    for place, path in ((ALGORITHM, spec.algorithm.path if spec.algorithm is not None else ""), (OUTPUTS, spec.output)):
        if _PLAIN.fullmatch(path):
            command = path.rstrip("/").join(_names(place).split(command))
        elif path:
            command = _with_quoted(command, _names(place), path.rstrip("/"))
    return command


def _with_quoted(command: str, place: re.Pattern[str], path: str) -> str:
    """Put a path into a command that has to be quoted there. The script of a `bash -c` stays as it is: which quotes a
    place stands in there, only that shell knows."""
    words = lex(command)
    if isinstance(words, NotSimple):
        return command
    texts = [
        word.source if script_follows(words[:at]) else _word_with_quoted(word, place, path)
        for at, word in enumerate(words)
    ]
    return " ".join(texts) if texts != [word.source for word in words] else command


def _word_with_quoted(word: Word, place: re.Pattern[str], path: str) -> str:
    if not any(isinstance(part, Literal) and place.search(part.text) for part in word.parts):
        return word.source
    parts = [
        in_double_quotes(path.join(place.split(part.text))) if isinstance(part, Literal) else part.source
        for part in word.parts
    ]
    return f'"{"".join(parts)}"'


def is_in_workspace(command: str) -> bool:
    """Return whether the command still names a path of cockpit's containers."""
    return _names(WORKSPACE).search(command) is not None


def _names(place: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])")
