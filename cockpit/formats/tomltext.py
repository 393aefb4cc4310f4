"""TOML text as plain values, and values as TOML text."""

from __future__ import annotations

import re

from cockpit.errors import SpecErrors
from cockpit.model.text import is_visible

_DEEPEST_HEADING = 2
_BOUND = 1 << 63
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def parse_toml(text: str, source: str) -> dict[str, object]:
    """Return the table of a TOML text. Raises `SpecErrors`, led by `source`, when it is no TOML."""
    import tomllib

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecErrors([f"{source}: is no TOML: {error}"]) from None
    # tomllib reads nested arrays and tables by recursion, so a forged file can exhaust Python's stack.
    except RecursionError:
        raise SpecErrors([f"{source}: is no TOML: it nests too deep"]) from None
    # Python refuses to convert integers of more than 4300 digits, and dates such as 30 February.
    except ValueError:
        raise SpecErrors([f"{source}: holds a number with thousands of digits, or a date that is none"]) from None
    _refuse_huge(table, "", source)
    return table


def _refuse_huge(value: object, at: str, source: str) -> None:
    """Refuse integers beyond TOML's 64 bits; Python's reader takes any, even such as it cannot print."""
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_huge(item, f"{at}.{toml_key(name)}" if at else toml_key(name), source)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_huge(item, f"{at}[{index}]", source)
    elif isinstance(value, int) and not -_BOUND <= value < _BOUND:
        raise SpecErrors([f"{source}: {at}: is a number of more than 64 bits, which TOML does not have"])


def toml_text(value: object) -> str:
    """Return a value as TOML on one line; a text of several lines keeps them."""
    # First: bool is a subclass of int, and its repr is no TOML.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{toml_key(name)} = {toml_text(item)}' for name, item in value.items())} }}"
    # Numbers, whose repr is TOML, also `inf` and `nan`.
    return repr(value)


def toml_key(name: str) -> str:
    """Return a key, quoted where it must be."""
    return name if _BARE.fullmatch(name) else _text(name)


def toml_table(table: dict[str, object], at: str = "") -> list[str]:
    """Return the lines of a table: its values, then `[tables]` and `[[lists of tables]]`.

    Tables deeper than two headings are written on one line.
    """
    # `at` is the heading above and a dot behind each of its parts.
    inline = at.count(".") == _DEEPEST_HEADING
    below = {} if inline else {name: item for name, item in table.items() if _is_table(item) or _is_tables(item)}
    # Values first: behind a [heading] they would belong to that table.
    lines = [f"{toml_key(name)} = {toml_text(item)}" for name, item in table.items() if name not in below]
    for name, item in below.items():
        place = f"{at}{toml_key(name)}"
        heading = f"[[{place}]]" if isinstance(item, list) else f"[{place}]"
        for each in item if isinstance(item, list) else [item]:
            assert isinstance(each, dict)
            lines += ["", heading, *toml_table(each, f"{place}.")]
    return lines


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _text(text: str) -> str:
    """Return a text with invisible characters as escapes."""
    lines = text.split("\n")
    # A literal text of several lines has no escapes at all, so it must not contain, or end with, its own quotes.
    if (
        len(lines) > 1
        and "'''" not in text
        and all(is_visible(line.replace("\t", "")) for line in lines)
        and not text.endswith("'")
    ):
        # TOML drops the first line break behind the opening quotes.
        return f"'''\n{text}'''"
    return '"' + "".join(each if is_visible(each) and each not in '"\\' else _escape(each) for each in text) + '"'


def _escape(char: str) -> str:
    named = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return named.get(char, f"\\U{ord(char):08x}")
