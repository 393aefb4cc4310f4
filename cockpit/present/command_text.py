"""A command as a user would type it into a shell, with its input, for reading, copying and running; secrets are
masked."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from cockpit.model.masking import masked
from cockpit.present.safe import harmless, harmless_lines


def shell_text(argv: Sequence[str]) -> str:
    """Return a harmless line that Bash splits into exactly these words."""
    return masked(" ".join(_word(masked(each)) for each in argv))


def command_lines(argv: Sequence[str], stdin: str = "") -> Iterator[str]:
    """Yield the command in harmless lines. Its input is a here document, unless the input has invisible characters or
    does not end with a line break."""
    stdin = masked(stdin)
    if not stdin:
        yield shell_text(argv)
        return
    # A here document cannot escape anything in its text, and always ends with a line break.
    if not stdin.endswith("\n") or harmless_lines(stdin) != stdin:
        yield f"printf %s {_word(stdin)} | {shell_text(argv)}"
        return
    # The script may itself have a here document that ends with this word.
    end = "END_OF_SCRIPT"
    while end in stdin:
        end += "_"
    # The quoted word keeps Bash from expanding variables in the script.
    yield f"{shell_text(argv)} <<'{end}'"
    yield from stdin.removesuffix("\n").split("\n")
    yield end


def _word(text: str) -> str:
    """Return the word as Bash reads it: quoted where needed, and as `$'…'` with escapes where it has invisible
    characters."""
    # What is shown is copied and run: an escape that is only for the eye would change the command.
    if harmless(text) == text:
        return shlex.quote(text)
    return f"$'{''.join(map(_escaped, text))}'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char in _NAMED:
        return _NAMED[char]
    if harmless(char) == char:
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
