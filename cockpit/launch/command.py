"""Checks and expands a job's command: one program and its arguments. For pipes, `&&` and the like, wrap it in a shell.

`$NAME`, `${NAME}`, `$((…))` and backslash-newline are expanded, outside of single quotes. A variable that is not set
stays as it is written, and so does arithmetic with one: it may be a variable of a script that is passed to a shell.
Unlike in a shell, a value is not split at its spaces and not matched against files: one word stays one argument. As in
a shell, a word disappears that has only unquoted variables, all of them empty.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from cockpit.errors import SpecErrors
from cockpit.launch.arithmetic import ExpressionError, evaluate, names
from cockpit.launch.lexer import Literal, NotSimple, Part, Sum, Variable, Word, lex, script_follows
from cockpit.model.text import is_visible, visible

STAYS_OPEN = "sleep infinity"
"""Command of a session without a command of its own; users then open shells in it."""
ENTRYPOINT = "entrypoint"
"""Word that is replaced by the image's ENTRYPOINT, with the job's arguments or else the image's CMD."""
_LONGEST_ADVICE = 200
_SPECIAL_IN_DOUBLE_QUOTES = frozenset('$`"\\!')


def command_errors(command: str) -> list[str]:
    """Return why a text cannot be a command: at most one clause, to follow the field's path, with what to do."""
    words = lex(command)
    if not isinstance(words, NotSimple):
        return []
    why = visible(words.why, 200)
    if not words.wrappable:
        return [why]
    return [f"{why}; a command is one executable with its arguments, so wrap it: {_advice(command)}"]


def expand(command: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the program and its arguments with all variables expanded.

    Raises `SpecErrors`, which begin with `command:`, for a wrong command or for arithmetic that fails.
    """
    # The first word never disappears: without a program there is nothing to run.
    first, *rest = _words(command)
    try:
        return (_expand(first, env), *(_expand(word, env) for word in rest if not _disappears(word, env)))
    except ExpressionError as error:
        raise SpecErrors([f"command: $((…)) {visible(str(error), 200)}"]) from None


def unset_names(command: str, env: Mapping[str, str]) -> list[str]:
    """Return the variables, as written, that are not set and that no shell in the command can set."""
    words = _words(command)
    outside = [word for at, word in enumerate(words) if not script_follows(words[:at])]
    parts = [part for word in outside for part in word.parts if not isinstance(part, Literal)]
    return list(dict.fromkeys(part.source for part in parts if any(name not in env for name in _names(part))))


def words_of(command: str) -> list[str]:
    """Return the words of a command as they are written; empty for a wrong command."""
    words = lex(command)
    return [] if isinstance(words, NotSimple) else [word.source for word in words]


def wrapped(command: str) -> str:
    """Return the command that runs the text in bash, in double quotes if it has no character that is special there."""
    text = command.strip(" \t\n")
    if _SPECIAL_IN_DOUBLE_QUOTES.isdisjoint(text):
        return f'bash -c "{text}"'
    return f"bash -c {shlex.quote(text)}"


def _advice(command: str) -> str:
    advice = wrapped(command)
    return advice if len(advice) <= _LONGEST_ADVICE and is_visible(advice) else "bash -c '…'"


def _words(command: str) -> list[Word]:
    words = lex(command)
    if isinstance(words, NotSimple):
        raise SpecErrors([f"command: {error}" for error in command_errors(command)])
    return words


def _expand(word: Word, env: Mapping[str, str]) -> str:
    return "".join(_value(part, env) for part in word.parts)


def _value(part: Part, env: Mapping[str, str]) -> str:
    if isinstance(part, Literal):
        return part.text
    if any(name not in env for name in _names(part)):
        return part.source
    return env[part.name] if isinstance(part, Variable) else str(evaluate(part.text, env))


def _names(part: Variable | Sum) -> list[str]:
    """Return the variables' names in a variable or a sum."""
    return [part.name] if isinstance(part, Variable) else names(part.text)


def _disappears(word: Word, env: Mapping[str, str]) -> bool:
    return not word.quoted and not _expand(word, env)
