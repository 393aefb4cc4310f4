"""Takes out of a program's output what pyte would misread.

pyte prints the text of device control strings, collects operating system commands without a limit, and reads sequences
of private kinds as others: the sequence with which vim turns on its keyboard protocol would underline everything.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from typing import Final

_ESCAPE: Final = "\x1b"
_CONTROL_SEQUENCE: Final = re.compile("\x1b\\[([0-?]*)([ -/]*)([@-~])")
_KNOWN_PARAMETERS: Final = re.compile(r"\??[0-9;]*")
_UNFINISHED: Final = re.compile("\x1b(?:\\[[0-?]*[ -/]*|[#%()*+./ -])?")
_STRING_STARTS: Final = frozenset("]PX^_")
_STRING_ENDS: Final = re.compile("[\x07\x18\x1a\x9c]|\x1b(?!\\Z)\\\\?")
_C1: Final = dict.fromkeys(range(0x80, 0xA0))
"""Control characters that pyte obeys and that programs do not write in UTF-8."""
_MARK: Final = "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u200d\ufe00-\ufe0f]"
_TOO_MANY_MARKS: Final = re.compile(f"({_MARK}{{8}}){_MARK}+")
LONGEST_SEQUENCE: Final = 128


class SequenceFilter:
    """Decodes UTF-8 and filters sequences, which may be cut anywhere between two calls."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._in_string = False

    def passed(self, data: bytes) -> str:
        """Return the text that pyte may read."""
        text = self._pending + self._decoder.decode(data).translate(_C1)
        self._pending = ""
        passed: list[str] = []
        at = 0
        while at < len(text):
            if self._in_string:
                at = self._end_of_string(text, at)
                continue
            start = text.find(_ESCAPE, at)
            if start < 0:
                passed.append(text[at:])
                break
            passed.append(text[at:start])
            at = self._pass_sequence(text, start, passed)
        return _TOO_MANY_MARKS.sub(r"\1", "".join(passed))

    def _end_of_string(self, text: str, at: int) -> int:
        """Return where the text goes on behind the present string; all of it is dropped."""
        match = _STRING_ENDS.search(text, at)
        if match is not None:
            self._in_string = False
            return match.end()
        # An escape at the very end may be the first half of the terminator.
        if text.endswith(_ESCAPE):
            self._pending = _ESCAPE
        return len(text)

    def _pass_sequence(self, text: str, start: int, passed: list[str]) -> int:
        """Pass or drop the sequence that starts here, and return where the text goes on."""
        if text[start + 1 : start + 2] in _STRING_STARTS and start + 1 < len(text):
            self._in_string = True
            return start + 2
        if match := _CONTROL_SEQUENCE.match(text, start):
            parameters, intermediates, _ = match.groups()
            if not intermediates and len(parameters) < LONGEST_SEQUENCE and _KNOWN_PARAMETERS.fullmatch(parameters):
                passed.append(match[0])
            return match.end()
        if _UNFINISHED.fullmatch(text, start) and len(text) - start < LONGEST_SEQUENCE:
            self._pending = text[start:]
            return len(text)
        if text.startswith("[", start + 1):  # no sequence after all, or one that never ends
            return start + 2
        end = start + (3 if text[start + 1] in "#%()" else 2)
        # Intermediate characters that pyte does not know begin a sequence of three characters.
        if text[start + 1] in "*+./ -":
            return start + 3
        passed.append(text[start:end])
        return end
