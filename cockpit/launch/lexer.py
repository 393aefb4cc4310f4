"""A command's words by the token rules of POSIX (Shell Command Language, 2.2 and 2.3), for one simple command.

Python's `shlex` drops the quotes, after which `';'` looks like `;` and `'$A'` like `$A`; so words keep what was quoted.
 White space that is no blank in a shell (CR, NBSP …), `*`, `?`, `[`, `{` and `~` are ordinary characters here.

The script of `bash -c "…"` (or of another shell) is that shell's to read: in its double quotes `$1`, `${A:-b}`, `$(…)`
and backquotes are literal text.

The steps of `lex`:

1. Join the lines that a backslash continues, as a shell does before it looks for quotes.
2. Split a command without special characters at its blanks; read any other one character by character, and refuse it
   at the first construct that only a shell understands.
3. Refuse a first word that no program can have: an assignment, a word of the shell itself, an empty word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cockpit.launch.arithmetic import ExpressionError, check


class Literal(NamedTuple):
    text: str


class Variable(NamedTuple):
    name: str
    braced: bool = False
    """Written as `${NAME}`."""

    @property
    def source(self) -> str:
        return f"${{{self.name}}}" if self.braced else f"${self.name}"


class Sum(NamedTuple):
    """The inside of `$((…))`."""

    text: str

    @property
    def source(self) -> str:
        return f"$(({self.text}))"


Part = Literal | Variable | Sum


class Word(NamedTuple):
    """One argument of a command."""

    source: str
    """The word as it was written, with its quotes."""
    parts: tuple[Part, ...]
    quoted: bool
    """Something of it was quoted, so that it stays an argument even when it comes out empty."""


class NotSimple(NamedTuple):
    """Why a text is not one simple command."""

    why: str
    """A clause for users: which construct is there, and its meaning in a shell."""
    wrappable: bool = True
    """A shell would take it, so handing it to one helps."""


_BLANKS = re.compile(r"[ \t]*")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_PLAIN = re.compile(r"[^ \t\n'\"\\$`;&|<>()]+")
_BARE = re.compile(r"[^ \t]+")
_MARKS = re.compile(r"[\n'\"\\$`;&|<>()#]")
_PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_SPECIAL = re.compile(r"\$[0-9@*#?$!-]")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")

_OPERATORS = (
    ("&&", "joins two commands"),
    ("||", "joins two commands"),
    (";", "separates two commands"),
    ("&", "starts a command in the background"),
    ("|", "pipes into another command"),
    ("<", "redirects the input"),
    (">", "redirects the output"),
    ("(", "begins a subshell"),
    (")", "ends a subshell"),
)
_NO_PROGRAMS = """
    ! { } [[ case do done elif else esac fi for function if in select then until while
    . : alias bg break cd continue declare eval exec exit export fg hash jobs let local popd pushd read readonly
    return set shift shopt source times trap typeset ulimit umask unalias unset wait
"""
"""Reserved words and builtins of a shell."""
_SHELL_WORDS = frozenset(_NO_PROGRAMS.split())
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
# `-c`, also behind other letters: `-lc`, `-exc`.
_SCRIPT_FOLLOWS = re.compile(r"-[A-Za-z]*c")
# `bash -o pipefail -c …`: the word behind is the option's value.
_OPTION_WITH_VALUE = re.compile(r"[-+][A-Za-z]*[oO]|--rcfile|--init-file")


def lex(command: str) -> list[Word] | NotSimple:
    """Return the words of one simple command, at least one; or why it is not one."""
    # Step 1
    command = _join_continued_lines(command)
    try:
        # Step 2
        words = _Lexer(command).words() if _MARKS.search(command) else _bare_words(command)
    except _NotSimpleError as error:
        return error.args[0]  # type: ignore[no-any-return] # the one argument is a NotSimple
    if not words:
        return NotSimple("has no word", wrappable=False)
    # Step 3
    return _first_word_trouble(words[0]) or words


def _first_word_trouble(first: Word) -> NotSimple | None:
    """Return why the first word starts no executable; None when it does."""
    if match := _ASSIGNMENT.match(first.source):
        return NotSimple(f"begins with {match[0]}…, which sets a variable; set it under env, begin with an executable")
    # The source is compared, not the value: a quoted `"if"` is an ordinary program name in a shell, too.
    if first.source in _SHELL_WORDS:
        return NotSimple(f'begins with "{first.source}", a word of the shell itself and no executable')
    if first.parts in {(), (Literal(""),)}:
        return NotSimple("begins with an empty word; begin with an executable", wrappable=False)
    return None


def _join_continued_lines(text: str) -> str:
    """Remove backslash-newline pairs outside single quotes, which a shell does before anything else."""

    def kept(match: re.Match[str]) -> str:
        if match[0].startswith('"'):
            return _ESCAPED.sub(lambda pair: "" if pair[0] == "\\\n" else pair[0], match[0])
        return "" if match[0] == "\\\n" else match[0]

    # The quick test first: few commands have several lines.
    return _QUOTED.sub(kept, text) if "\\\n" in text else text


def _bare_words(command: str) -> list[Word]:
    """Split a command without special characters, the usual case: thousands are checked at once."""
    return [Word(word, (Literal(word),), quoted=False) for word in _BARE.findall(command)]


def script_follows(words: Sequence[Word]) -> bool:
    """Return whether the next word is a shell's script: it follows `-c`, which may be one of several options."""
    if not words or not _SCRIPT_FOLLOWS.fullmatch(words[-1].source):
        return False
    sources = [word.source for word in words[:-1]]
    # The last one: `env bash -c` and `srun bash -c` have other words before the shell.
    shells = [at for at, source in enumerate(sources) if source.rpartition("/")[2] in _SHELLS]
    return bool(shells) and _are_options(sources[shells[-1] + 1 :])


def _are_options(sources: list[str]) -> bool:
    follows = False
    for source in sources:
        if not follows and not source.startswith(("-", "+")):
            return False
        follows = not follows and _OPTION_WITH_VALUE.fullmatch(source) is not None
    return not follows


def _end_of_construct(text: str, at: int) -> int | None:
    """Return the end of the `${…}`, `$(…)`, `(…)` or backquoted command that begins at `at`; None: it is not closed."""
    if text[at] == "`":
        closed = re.compile(r"`(?:[^\\`]|\\.)*`", re.DOTALL).match(text, at)
        return closed.end() if closed else None
    closing = "}" if text.startswith("${", at) else ")"
    at += 1 if text[at] == "(" else 2
    while at < len(text):
        if text[at] == closing:
            return at + 1
        after = _end_of_piece(text, at, closing)
        if after is None:
            return None
        at = after
    return None


def _end_of_piece(text: str, at: int, closing: str) -> int | None:
    """Return the end of one piece of a construct: an escaped character, a quoted text, another construct, or one
    character."""
    if text[at] == "\\":
        return at + 2
    if text[at] == '"':
        return _end_of_quotes(text, at)
    # Inside `${…}` in double quotes a single quote is an ordinary character; inside `$(…)` it begins a quoted text.
    if text[at] == "'" and closing == ")":
        return text.find("'", at + 1) + 1 or None
    if text.startswith(("${", "$(", "`"), at) or (text[at] == "(" and closing == ")"):
        return _end_of_construct(text, at)
    return at + 1


def _end_of_quotes(text: str, at: int) -> int | None:
    """Return the end of the text in double quotes that starts at `at`; None: it is not closed."""
    at += 1
    while at < len(text):
        if text[at] == '"':
            return at + 1
        if text[at] == "\\":
            at += 2
        elif text.startswith(("${", "$(", "`"), at):
            end = _end_of_construct(text, at)
            if end is None:
                return None
            at = end
        else:
            at += 1
    return None


class _NotSimpleError(Exception):
    """Carries the NotSimple out of the nested calls of the lexer."""


def _refuse(why: str, *, wrappable: bool = True) -> _NotSimpleError:
    return _NotSimpleError(NotSimple(why, wrappable))


class _Lexer:
    """One pass over the text: a position, and the parts of the current word."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._parts: list[Part] = []
        self._quoted = False
        self._in_script = False
        """The word is the script of a shell."""

    def words(self) -> list[Word]:
        self._at = len(self._text) - len(self._text.lstrip(" \t\n"))
        words: list[Word] = []
        while self._skip_blanks():
            # Known before the word is read: quotes within a script are read otherwise.
            self._in_script = script_follows(words)
            words.append(self._word())
        return words

    def _skip_blanks(self) -> bool:
        """Skip blanks, and return whether a word follows."""
        match = _BLANKS.match(self._text, self._at)
        self._at = match.end() if match else self._at
        # Line ends at the end of a command are harmless: YAML block texts end with one.
        if self._peek() == "\n" and self._text[self._at :].strip(" \t\n"):
            raise _refuse("has several lines; a shell would run each as a command")
        return self._peek() not in {"", "\n"}

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _word(self) -> Word:
        begin, self._parts, self._quoted = self._at, [], False
        # Only at the start of a word; `a#b` is an ordinary word, in a shell too.
        if self._peek() == "#":
            raise _refuse('has a word that begins with "#", which begins a comment in a shell; quote it to mean it')
        while (char := self._peek()) not in {"", " ", "\t", "\n"}:
            self._piece(char)
        return Word(self._text[begin : self._at], _join_literals(self._parts), self._quoted)

    def _piece(self, char: str) -> None:
        """Read the next part of a word, which is quoted in one way."""
        if char == "'":
            self._single_quoted()
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escape()
        elif char == "$":
            self._dollar(in_quotes=False)
        # All ordinary characters that follow are taken at once.
        elif match := _PLAIN.match(self._text, self._at):
            self._take(match[0])
        else:
            raise self._operator()

    def _take(self, text: str, width: int | None = None) -> None:
        """Add literal text. `width`: how much of the source it was."""
        self._parts.append(Literal(text))
        self._at += len(text) if width is None else width

    def _operator(self) -> _NotSimpleError:
        if self._peek() == "`":
            return _refuse('has a "`", which would run a command inside the command')
        rest = self._peek(2)
        operator, meaning = next(pair for pair in _OPERATORS if rest.startswith(pair[0]))
        return _refuse(f'has an unquoted "{operator}", which {meaning}')

    def _single_quoted(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise _refuse("has a ' that is never closed", wrappable=False)
        self._quoted = True
        self._take(self._text[self._at + 1 : end], end + 1 - self._at)

    def _double_quoted(self) -> None:
        """Read a text in double quotes."""
        self._quoted = True
        self._at += 1
        while (char := self._peek()) != '"':
            if char == "":
                raise _refuse('has a " that is never closed', wrappable=False)
            if char == "\\":
                self._escape_in_quotes()
            # A script in double quotes: what its own shell expands is literal text for the outer command.
            elif self._in_script and (end := self._end_of_script_shell_part()):
                self._take(self._text[self._at : end])
            elif char == "$":
                self._dollar(in_quotes=True)
            elif match := _PLAIN_IN_QUOTES.match(self._text, self._at):
                self._take(match[0])
            else:
                raise self._operator()
        self._at += 1

    def _escape(self) -> None:
        pair = self._peek(2)
        if pair == "\\":
            raise _refuse("ends in a backslash that quotes nothing", wrappable=False)
        self._quoted = True
        self._take(pair[1], 2)

    def _escape_in_quotes(self) -> None:
        """Read a backslash inside double quotes, which quotes only what is special there."""
        pair = self._peek(2)
        if len(pair) == 2 and pair[1] in '$`"\\':
            self._take(pair[1], 2)
        else:
            self._take("\\")

    def _end_of_script_shell_part(self) -> int | None:
        """Return the end of what only the script's own shell expands; None: there is no such part here."""
        text, at = self._text, self._at
        if _VARIABLE.match(text, at):
            return None
        # A sum that is not one of cockpit's (`$((i++))`) is for the shell of the script, like `$(…)`.
        if text.startswith("$((", at) and (end := _find_closing(text, at + 3)) and _is_sum(text[at + 3 : end]):
            return None
        if text.startswith(("${", "$(", "`"), at):
            return _end_of_construct(text, at)
        match = _SPECIAL.match(text, at)
        return match.end() if match else None

    def _dollar(self, *, in_quotes: bool) -> None:
        """Read what a `$` starts: a variable, a sum, or just the character. Other expansions are refused."""
        text, at = self._text, self._at
        if text.startswith("$((", at):
            # `$((` is tested before `$(`, which is its beginning.
            self._sum()
        elif match := _VARIABLE.match(text, at):
            self._parts.append(Variable(match[1] or match[2], braced=match[1] is None))
            self._at = match.end()
        elif text.startswith("$(", at):
            raise _refuse('has a "$(", which would run a command inside the command')
        # _VARIABLE has read the plain `${NAME}` already; only forms such as `${A:-b}` come here.
        elif text.startswith("${", at):
            raise _refuse('has a "${" that is no plain ${NAME}, and only ${NAME}, $NAME and $((…)) are expanded')
        elif match := _SPECIAL.match(text, at):
            raise _refuse(f'has "{match[0]}", which only a shell knows')
        elif not in_quotes and text.startswith(("$'", '$"'), at):
            raise _refuse(f"has a quote that begins with {text[at : at + 2]}, which only bash knows")
        else:
            self._take("$")

    def _sum(self) -> None:
        """Read `$((…))`. Its expression is checked now and computed when the job starts."""
        end = _find_closing(self._text, self._at + 3)
        if end is None:
            raise _refuse('has a "$((" without its "))"', wrappable=False)
        inside = self._text[self._at + 3 : end]
        try:
            check(inside)
        except ExpressionError as error:
            raise _refuse(f"has a $((…)) that {error}") from None
        self._parts.append(Sum(inside))
        self._at = end + 2


def _is_sum(text: str) -> bool:
    try:
        check(text)
    except ExpressionError:
        return False
    return True


def _find_closing(text: str, begin: int) -> int | None:
    """Return the position of the `))` that closes a `$((` whose content begins at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")" and depth:
            depth -= 1
        elif text[at] == ")":
            return at if text.startswith("))", at) else None
    return None


def _join_literals(parts: list[Part]) -> tuple[Part, ...]:
    """Return the parts with neighbouring literals made one."""
    if len(parts) == 1:
        return tuple(parts)
    joined: list[Part] = []
    for part in parts:
        if joined and isinstance(part, Literal) and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        else:
            joined.append(part)
    return tuple(joined)
