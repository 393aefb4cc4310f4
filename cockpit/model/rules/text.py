"""Rules for texts that the kernel receives (paths, arguments), for names of cluster rules, and for counts."""

from __future__ import annotations

import re

from cockpit.model.text import is_visible, visible

# Linux's PATH_MAX is 4096 with the final NUL.
PATH_BYTES = 4095
COMMAND_BYTES = 64 * 1024


def path_error(path: str) -> str | None:
    """Return the error of a path on the machine that runs the job; None: it is valid. It is absolute, without `.` and
    `..`, and may contain any character but NUL."""
    if error := text_error(path, PATH_BYTES):
        return error
    if not path.startswith("/"):
        return f'"{visible(path)}" is not absolute; write it from /'
    if path != "/" and not all(part not in {"", ".", ".."} for part in path[1:].split("/")):
        return f'"{visible(path)}" contains an empty part, "." or ".."; write it without'
    return None


def text_error(text: str, most_bytes: int, least: int = 1) -> str | None:
    """Return what keeps the kernel from taking a text as an argument: NUL, size, or half of a surrogate pair."""
    if len(text) < least:
        return "is empty; give one"
    if "\0" in text:
        return f'"{visible(text)}" contains a NUL character; remove it'
    if (size := utf8_size(text)) > most_bytes:
        return f"has {size} bytes; use at most {most_bytes}"
    # isascii first: it is stored with the string, while the loop reads each character.
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return f'"{visible(text)}" contains half of a surrogate pair; write whole characters'
    return None


def count_error(count: int, most: int, least: int = 0) -> str | None:
    return None if least <= count <= most else f"has {count} entries; give {least} to {most}"


def utf8_size(text: str) -> int:
    # surrogatepass: a lone surrogate has an error of its own, and must not raise here.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


NAME_PATTERN = r"^\w[\w.@+-]{0,62}$"
"""Names without blanks, commas, slashes, colons, equals signs and brackets, each of which has a meaning in lists of
names."""
_NAME = re.compile(NAME_PATTERN)
TRES_PATTERN = r"^(cpu|mem|node|billing|gres/gpu(:[^,=:\s][^,=:\t\n]{0,62})?)$"
LARGEST_AMOUNT = 1e15
_TRES = re.compile(TRES_PATTERN)
_USER = re.compile(r"[^\s,/:=|*+-][^\s,/:=|*]{0,252}")


def rule_name_error(name: str) -> str | None:
    """Return what is wrong with the name of a partition, pool, account or QOS; None when it is fine."""
    if _NAME.fullmatch(name) and is_visible(name):
        return None
    return f'"{visible(name)}" is no name here; use letters, digits and ._@+- , at most 63, not beginning with a sign'


def user_name_error(name: str) -> str | None:
    """Return what is wrong with a user's name by any machine's rule; None when it is fine."""
    if _USER.fullmatch(name) and is_visible(name):
        return None
    return f'"{visible(name)}" is no user name'


def tres_name_error(name: str) -> str | None:
    """Return what is wrong with a resource's name; None when it is one that cockpit counts."""
    if len(name) <= 80 and _TRES.fullmatch(name) and is_visible(name):
        return None
    known = "cpu, mem, node, billing, gres/gpu and gres/gpu:MODEL"
    return f'"{visible(name)}" is no resource that is counted here; there are {known}'
