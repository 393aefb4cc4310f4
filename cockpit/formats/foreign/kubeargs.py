"""The `$(NAME)` of Kubernetes in commands, arguments and the values of variables.

Source: core/v1 Container `command`, `args` and EnvVar `value`. A name that is known is replaced, `$$` is a dollar sign,
and everything else stays as it is, an unknown name too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from cockpit.launch.lexer import Literal, NotSimple, Sum, Variable, lex
from cockpit.launch.shellform import shell_text

_REFERENCE: Final = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: Final = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_ESCAPES: Final = str.maketrans({char: f"\\{char}" for char in '\\"$`'})
_SIGNIFICANT: Final = re.compile(r"\$(?=[$(])")


def expand_references(text: str, values: Mapping[str, str]) -> str:
    """Return the text with the values of the names that are known in place of `$(NAME)`."""

    def value(match: re.Match[str]) -> str:
        return "$" if match["name"] is None else values.get(match["name"], match[0])

    return _REFERENCE.sub(value, text)


def command_of(words: Sequence[str], known: Collection[str]) -> str:
    """Return the command of a job that is started with these arguments. `known`: the names that are replaced."""
    return " ".join(_word(word, known) for word in words)


def _word(word: str, known: Collection[str]) -> str:
    """Return an argument as a word of a command. `known`: the names that become variables."""
    # Texts and names of variables in turn, with whether it is a variable.
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in _REFERENCE.finditer(word):
        name = match["name"]
        # Kubernetes allows names such as `a.b`, which no shell can have as a variable: these stay text.
        is_variable = name is not None and name in known and _NAME.fullmatch(name) is not None
        literal = word[at : match.start()] + ("" if is_variable else "$" if name is None else match[0])
        pieces += [(literal, False), *([(str(name), True)] if is_variable else [])]
        at = match.end()
    pieces.append((word[at:], False))
    if not any(is_variable for _, is_variable in pieces):
        return shlex.quote("".join(text for text, _ in pieces))
    literals = "".join(text for text, is_variable in pieces if not is_variable)
    # Nothing needs quotes, so the word stays readable.
    if _PLAIN.fullmatch(literals):
        return "".join(f"${{{text}}}" if is_variable else text for text, is_variable in pieces)
    inside = "".join(f"${{{text}}}" if is_variable else text.translate(_ESCAPES) for text, is_variable in pieces)
    return f'"{inside}"'


def arguments_of(command: str, known: Collection[str]) -> list[str]:
    """Return the arguments by which Kubernetes starts the command of a job. What it cannot expand, a shell does.

    `known`: the names that it replaces, of the container's variables.
    """
    words = lex(command)
    if isinstance(words, NotSimple):
        # The container would get pipes and redirections as arguments: it is started without a shell.
        return ["bash", "-c", escape(command)]
    parts = [part for word in words for part in word.parts]
    # Kubernetes expands `$(NAME)` of the container's own variables only, and computes nothing.
    if any(isinstance(part, Sum) or (isinstance(part, Variable) and part.name not in known) for part in parts):
        return ["bash", "-c", escape(shell_text(command, known))]
    return [
        "".join(escape(part.text) if isinstance(part, Literal) else f"$({_name_of(part)})" for part in word.parts)
        for word in words
    ]


def escape(text: str) -> str:
    """Return the text as Kubernetes must have it for the container to get it unchanged."""
    return _SIGNIFICANT.sub("$$", text)


def _name_of(part: Variable | Sum) -> str:
    return part.name if isinstance(part, Variable) else part.text
