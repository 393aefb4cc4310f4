"""YAML as plain values, built from the parser's events: no tags, no repeated fields, bounded aliases.

Unquoted words become what YAML 1.2 makes of them (null, true, whole and decimal numbers), plus 1.1's yes, no, on and
off; what one of the two alone takes for a number or a date is kept as `AmbiguousText` text. Field names are always
text. Loads PyYAML: import this late.

PyYAML's own loader is not used: it accepts repeated fields, gives dates for unquoted words, and does not bound
aliases of aliases. So the values are built from the parser's events:

1. Each document of the stream is one job, or a list of jobs.
2. A value is a word, a list or a table; an alias repeats the value of its anchor.
3. Every value is counted, repeated ones again, and the count is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from yaml import events

from cockpit.formats.documents import AmbiguousText, Document, Documents, UnreadableError
from cockpit.model.text import visible

MOST_VALUES = 2_000_000
"""The largest number of values in one text, including those that aliases repeat."""
_MOST_NESTING = 32

_Node = events.ScalarEvent | events.CollectionStartEvent
_NODE = (events.ScalarEvent, events.CollectionStartEvent)

_WORDS: dict[str, bool | None] = {"": None, "~": None}
for _word, _value in (("null", None), ("true", True), ("yes", True), ("on", True)):
    _WORDS |= dict.fromkeys((_word, _word.title(), _word.upper()), _value)
for _word in ("false", "no", "off"):
    _WORDS |= dict.fromkeys((_word, _word.title(), _word.upper()), False)

# No leading zero: `010` is 8 to YAML 1.1 and 10 to 1.2.
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
# Only with a sign in the exponent, which YAML 1.1 wants.
_DECIMAL = re.compile(r"[-+]?(?:\d{1,18}\.\d{0,40}|\.\d{1,18})(?:[eE][-+]\d{1,3})?", re.ASCII)
# `0o17` and `1e3` are numbers for YAML 1.2 and text for 1.1.
_ONLY_IN_1_2 = re.compile(r"0o[0-7]+|[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?", re.ASCII)
_NUMBERLIKE = re.compile(r"[-+.]?\d|[-+]?\.(?:inf|nan)", re.IGNORECASE | re.ASCII)


def yaml_documents(text: str) -> Documents:
    """Return one or several documents, each a job or a list of jobs."""
    # libyaml's parser where PyYAML was built with it: it is faster.
    builder = _Builder(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    try:
        return Documents(builder.documents(), builder.errors)
    # The jobs before the error are dropped, too: one error refuses the whole file.
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        return Documents([], [*builder.errors, f"{line}: is not YAML: {visible(str(error.problem), 200)}"])
    except yaml.YAMLError as error:
        return Documents([], [*builder.errors, f": is not YAML: {visible(str(error).splitlines()[0], 200)}"])
    except UnreadableError as error:
        return Documents([], [*builder.errors, f"{builder.place}: {error}"])


class _Builder:
    """Recursive descent over events, at most `_MOST_NESTING` deep."""

    def __init__(self, stream: Iterator[events.Event]) -> None:
        self._stream = stream
        # The value of each anchor, and how many values it contains.
        self._anchors: dict[str, tuple[object, int]] = {}
        self._values = 0
        self._line = 0
        self.errors: list[str] = []

    @property
    def place(self) -> str:
        return f":{self._line}"

    def documents(self) -> list[Document]:
        """Return the documents without empty ones. A text with one job needs no line numbers in its errors."""
        documents: list[Document] = []
        while not isinstance(event := self._next(), events.StreamEndEvent):
            if isinstance(event, events.DocumentStartEvent):
                # An anchor is valid in its own document only (YAML 1.2, 3.2.2.2).
                self._anchors.clear()
                documents += self._document(self._next())
        return [Document("", documents[0].value)] if len(documents) == 1 else documents

    def _document(self, event: events.Event) -> list[Document]:
        """Return each job with the line that it begins on."""
        # An empty document, as behind the last `---`, is no job.
        if not isinstance(event, events.SequenceStartEvent):
            place, value = self.place, self._value(event, 0)
            return [] if value is None else [Document(place, value)]
        self._refuse_tag(event)
        # `place` is evaluated first, while the parser is at the first line of the item.
        return [Document(self.place, self._value(item, 1)) for item in self._until(events.SequenceEndEvent)]

    def _next(self) -> events.Event:
        event = next(self._stream)
        self._line = event.start_mark.line + 1 if event.start_mark else 0
        return event

    def _until(self, end: type[events.Event]) -> Iterator[events.Event]:
        while not isinstance(event := self._next(), end):
            yield event

    def _value(self, event: events.Event, depth: int) -> object:
        """Return the value that starts with an event."""
        if isinstance(event, events.AliasEvent):
            return self._repeat_alias(str(event.anchor))
        assert isinstance(event, _NODE)
        before = self._values
        self._count(1)
        self._refuse_tag(event)
        value = self._fresh(event, depth)
        if event.anchor is not None:
            # Set after the value is complete, so that a value cannot contain itself.
            self._anchors[event.anchor] = (value, self._values - before)
        return value

    def _fresh(self, event: _Node, depth: int) -> object:
        """Return a value that is no alias. Raises `UnreadableError`."""
        if isinstance(event, events.ScalarEvent):
            # A quoted or block scalar has a style and is always text.
            return event.value if event.style else _meaning(event.value)
        if depth >= _MOST_NESTING:
            raise UnreadableError("nests deeper than a job does")
        if isinstance(event, events.SequenceStartEvent):
            return [self._value(item, depth + 1) for item in self._until(events.SequenceEndEvent)]
        return self._mapping(depth)

    def _mapping(self, depth: int) -> dict[str, object]:
        """Return a mapping with its merged fields."""
        table: dict[str, object] = {}
        merged: list[dict[str, object]] = []
        for key in self._until(events.MappingEndEvent):
            name, place = self._name(key), self.place
            value = self._value(self._next(), depth + 1)
            # A quoted "<<" is an ordinary name.
            if name == "<<" and isinstance(key, events.ScalarEvent) and not key.style:
                merged += [self._mergeable(base) for base in (value if isinstance(value, list) else [value])]
            elif name in table:
                self.errors.append(f'{place}: "{visible(name)}" is there twice in one table; keep one')
            else:
                table[name] = value
        for base in merged:
            # The table's own fields win over merged ones, and an earlier base over a later one, as YAML's merge key
            # says.
            table = {**base, **table}
        return table

    def _name(self, key: events.Event) -> str:
        if isinstance(key, events.ScalarEvent):
            self._refuse_tag(key)
            return str(key.value)
        raise UnreadableError("a field's name must be a word")

    def _mergeable(self, base: object) -> dict[str, object]:
        if isinstance(base, dict):
            self._count(len(base))
            return base
        raise UnreadableError('"<<" takes a table, or a list of tables')

    def _repeat_alias(self, anchor: str) -> object:
        """Return the anchored value; its content counts again, so that aliases of aliases cannot grow without bound."""
        if anchor not in self._anchors:
            raise UnreadableError(
                f"*{visible(anchor)} repeats nothing that came before it; write &{visible(anchor)} there"
            )
        value, size = self._anchors[anchor]
        self._count(size)
        return value

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > MOST_VALUES:
            raise UnreadableError(f"holds more than {MOST_VALUES} values, aliases counted; submit it in parts")

    def _refuse_tag(self, event: _Node) -> None:
        if event.tag is not None:
            raise UnreadableError(f'has the tag "{visible(event.tag)}", and a job needs none; to mean text, quote it')


def _meaning(word: str) -> object:
    """Return the meaning of an unquoted word."""
    if word in _WORDS:
        return _WORDS[word]
    if not _NUMBERLIKE.match(word):
        return word
    if _WHOLE.fullmatch(word):
        return int(word)
    if _DECIMAL.fullmatch(word):
        return float(word)
    return AmbiguousText(word) if _is_doubtful(word) else word


def plain_is_text(word: str) -> bool:
    """Return whether every YAML reader takes the unquoted word for text."""
    return type(_meaning(word)) is str


def _is_doubtful(word: str) -> bool:
    """Return whether YAML 1.1 or 1.2 takes the word for something else than text."""
    # PyYAML's own table of YAML 1.1, by the first character of the word.
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(word[0], [])
    return any(pattern.match(word) for _tag, pattern in resolvers) or _ONLY_IN_1_2.fullmatch(word) is not None
