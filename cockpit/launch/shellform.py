"""A job's command for others to run: as the text that a shell reads, or as the arguments of a program that expands
nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from cockpit.launch.arithmetic import names
from cockpit.launch.lexer import Literal, NotSimple, Part, Sum, Variable, Word, lex, script_follows

_ESCAPES: Final = str.maketrans({char: f"\\{char}" for char in '\\"$`'})
"""The characters that are special in double quotes."""
_PATTERN: Final = re.compile(r"[*?\[\]{}~]")
"""What a shell expands in unquoted text, and cockpit does not: names of files and homes, and braces."""
_NO_PATTERN: Final = re.compile(
    r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*"|\$\{\w+\}|\$\(\((?:[^()]|\([^()]*\))*\)\)""", re.DOTALL
)
"""Quoted text, and what both expand."""
_SET_BY_THE_SCRIPT: Final = ("COCKPIT_", "SLURM_")


def shell_text(command: str, known: Collection[str] = ()) -> str:
    """Return the command in the form that a POSIX shell runs in the same way: a variable that is not set stays literal.

    `known`: the names that are surely set; words with no other names are not changed.
    """
    words = lex(command)
    if isinstance(words, NotSimple):
        return command
    texts = [
        _shell_word(word) if _needs_a_form(word, known, is_script=script_follows(words[:at])) else word.source
        for at, word in enumerate(words)
    ]
    return " ".join(texts) if texts != [word.source for word in words] else command


def has_patterns(word: Word) -> bool:
    """Return whether a shell would replace unquoted text of the word by names of files, a home or several words."""
    return _PATTERN.search(_NO_PATTERN.sub("", word.source)) is not None


def without_patterns(command: str) -> str:
    """Return the command with quotes around each word that a shell would expand as a pattern; variables stay."""
    words = lex(command)
    if isinstance(words, NotSimple) or not any(map(has_patterns, words)):
        return command
    return " ".join(_quoted(word) if has_patterns(word) else word.source for word in words)


def _quoted(word: Word) -> str:
    parts = [in_double_quotes(part.text) if isinstance(part, Literal) else part.source for part in word.parts]
    return f'"{"".join(parts)}"'


def plain_arguments(command: str) -> tuple[str, ...]:
    """Return the arguments for a program that expands nothing. A command with variables is handed to a shell that
    expands them."""
    words = lex(command)
    if isinstance(words, NotSimple):
        return ("bash", "-c", command)
    if any(not isinstance(part, Literal) for word in words for part in word.parts):
        return ("bash", "-c", shell_text(command))
    return tuple("".join(part.text for part in word.parts if isinstance(part, Literal)) for word in words)


def in_double_quotes(text: str) -> str:
    """Return literal text as it is written between double quotes."""
    return text.translate(_ESCAPES)


def _needs_a_form(word: Word, known: Collection[str], *, is_script: bool) -> bool:
    """Return whether a shell would read the word's source as something else."""
    # cockpit expands variables in a script before bash gets it; a shell would leave them to that bash.
    if is_script and {"$", "`"} & {*word.source}:
        return True
    if has_patterns(word):
        return True
    used = [name for part in word.parts if not isinstance(part, Literal) for name in _names(part)]
    return any(name not in known and not name.startswith(_SET_BY_THE_SCRIPT) for name in used)


def _names(part: Variable | Sum) -> list[str]:
    return [part.name] if isinstance(part, Variable) else names(part.text)


def _shell_word(word: Word) -> str:
    text = "".join(map(_shell_part, word.parts))
    only_variables = all(isinstance(part, Variable) for part in word.parts)
    # Unquoted variables disappear when they are empty, in a shell as here; all other words stay one argument.
    return text if only_variables and not word.quoted else f'"{text}"'


def _shell_part(part: Part) -> str:
    """Return a part in the form for the inside of double quotes."""
    if isinstance(part, Literal):
        return in_double_quotes(part.text)
    if isinstance(part, Variable):
        # `${NAME-\$NAME}`: without a colon, so that an empty variable stays empty.
        return f"${{{part.name}-\\{part.source}}}"
    used = list(dict.fromkeys(names(part.text)))
    if not used:
        return part.source
    tested = "".join(f"${{{name}+x}}" for name in used)
    # One `x` for each name that is set; the sum is computed only if all are.
    marks = "x" * len(used)
    return f'$(if [ "{tested}" = {marks} ]; then echo "{part.source}"; else echo \'{part.source}\'; fi)'
