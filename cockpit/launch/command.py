"""A job's command: one program and its arguments. What a shell does beyond that, a shell is to be asked for.

Expanded are `$NAME`, `${NAME}`, `$((…))` and backslash-newline, outside of single quotes. A name that the environment
lacks stays as it is written, and so does a sum with one: it may be a variable of the script that a shell is handed.
The result is never split at its spaces nor matched against files: one word stays one argument; only a word that is
nothing but unquoted variables, all empty, disappears, as in a shell.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from cockpit.errors import SpecErrors
from cockpit.launch.arithmetic import ExpressionError, evaluate, names
from cockpit.launch.lexer import Literal, Part, Sum, Unlike, Variable, Word, lex, script_follows
from cockpit.model.text import is_visible, visible

STAYS_OPEN = "sleep infinity"
"""What a session without a command runs: its shells are started by those who enter it."""
ENTRYPOINT = "entrypoint"
"""The program of a job that runs what its image says: the ENTRYPOINT, with the job's arguments or else its CMD."""
_LONGEST_ADVICE = 200
_SPECIAL_IN_DOUBLE_QUOTES = frozenset('$`"\\!')


def command_errors(command: str) -> list[str]:
    """Why a text cannot be a job's command: at most one clause to follow the field's path, with what to do."""
    words = lex(command)
    if not isinstance(words, Unlike):
        return []
    why = visible(words.why, 200)
    if not words.wrappable:
        return [why]
    return [f"{why}; a command is one executable with its arguments, so wrap it: {_advice(command)}"]


def expand(command: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """The arguments that the program is started with; never empty. Raises `SpecErrors`, led by `command:`, where the
    command is none or its arithmetic fails with this environment."""
    first, *rest = _words(command)
    try:
        return (_expanded(first, env), *(_expanded(word, env) for word in rest if not _disappears(word, env)))
    except ExpressionError as error:
        raise SpecErrors([f"command: $((…)) {visible(str(error), 200)}"]) from None


def unset_names(command: str, env: Mapping[str, str]) -> list[str]:
    """The variables, as written, that the environment lacks and that no shell of the command can set either."""
    words = _words(command)
    outside = [word for at, word in enumerate(words) if not script_follows(words[:at])]
    parts = [part for word in outside for part in word.parts if not isinstance(part, Literal)]
    return list(dict.fromkeys(part.source for part in parts if any(name not in env for name in _names(part))))


def words_of(command: str) -> list[str]:
    """Its arguments before anything is expanded, as they were written; none where it is no command."""
    words = lex(command)
    return [] if isinstance(words, Unlike) else [word.source for word in words]


def wrapped(command: str) -> str:
    """The command that hands the text to bash as it is. Double quotes where nothing in it is special within them."""
    text = command.strip(" \t\n")
    if _SPECIAL_IN_DOUBLE_QUOTES.isdisjoint(text):
        return f'bash -c "{text}"'
    return f"bash -c {shlex.quote(text)}"


def _advice(command: str) -> str:
    advice = wrapped(command)
    return advice if len(advice) <= _LONGEST_ADVICE and is_visible(advice) else "bash -c '…'"


def _words(command: str) -> list[Word]:
    words = lex(command)
    if isinstance(words, Unlike):
        raise SpecErrors([f"command: {error}" for error in command_errors(command)])
    return words


def _expanded(word: Word, env: Mapping[str, str]) -> str:
    return "".join(_value(part, env) for part in word.parts)


def _value(part: Part, env: Mapping[str, str]) -> str:
    if isinstance(part, Literal):
        return part.text
    if any(name not in env for name in _names(part)):
        return part.source
    return env[part.name] if isinstance(part, Variable) else str(evaluate(part.text, env))


def _names(part: Variable | Sum) -> list[str]:
    """The names of the variables that it is made of."""
    return [part.name] if isinstance(part, Variable) else names(part.text)


def _disappears(word: Word, env: Mapping[str, str]) -> bool:
    return not word.quoted and not _expanded(word, env)
