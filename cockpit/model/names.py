"""The rule for names that become folders, and the host name made of one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator

from cockpit.model.text import escaped, first_unseen, visible

NAME_LENGTH = 63
"""Characters, not bytes; 63 of the widest still make a legal file name (252 bytes)."""

NAME_PATTERN = r"^[^\s/.\-][^/\n]*$"
"""The part of the rule that a JSON Schema can express; `name_error` is the whole rule."""


def name_error(name: str) -> str | None:
    """Return what is wrong with the name of a job, project or volume, as a clause after its path; None: it is fine."""
    return next(_name_troubles(name), None)


def _name_troubles(name: str) -> Iterator[str]:
    """Yield what is wrong with a name."""
    shown = f'"{visible(name)}"'
    if not name:
        yield "is empty; give a name"
        return
    if len(name) > NAME_LENGTH:
        yield f"{shown} has {len(name)} characters; use at most {NAME_LENGTH}"
    if (unseen := first_unseen(name)) is not None:
        yield f"{shown} contains {escaped(unseen)}, which cannot be seen; use printable characters only"
    if "/" in name:
        yield f'{shown} contains "/", but a name becomes a folder; use "-" or "_" instead'
    if name[0] in ".-":
        yield f'{shown} begins with "{name[0]}", which hides a folder or looks like an option; begin with a letter'
    if name != name.strip():
        yield f"{shown} begins or ends with a space; remove it"
    if unicodedata.combining(name[0]):
        yield f"{shown} begins with an accent that would join the text before it; begin with a letter"


def next_name(name: str, taken: Collection[str]) -> str:
    """Return the next unused name in a series: `bert-2`, `bert-3` … for `bert` and for `bert-2`."""
    head, _, number = name.rpartition("-")
    # A name that is a number alone, or begins with the hyphen, has no series.
    stem = head if head and number.isdigit() else name
    # One more ending than names are taken: at least one of them is free.
    endings = (f"-{number}" for number in range(2, len(taken) + 3))
    # The stem is cut and not the number, which makes the names differ.
    names = (f"{stem[: NAME_LENGTH - len(ending)]}{ending}" for ending in endings)
    return next(each for each in names if each not in taken)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return the name itself if it is unused, else the next one."""
    return next_name(name, taken) if name in taken else name


def dns_name(name: str) -> str:
    """Return a host name for a job: a-z, 0-9 and hyphens, 1–63 characters, beginning with a letter (a label of RFC
    1035, so that no resolver takes it for an address). Where letters had to go, a short digest keeps it stable and
    distinct."""
    # NFKD splits é into e and an accent, so that Latin names keep their letters.
    plain = unicodedata.normalize("NFKD", name.lower())
    label = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if any(char.isalnum() and not char.isascii() for char in plain):
        from hashlib import sha256  # it loads OpenSSL, which takes a listing's one-shot command longer than most else

        digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        # 13: the digest has 8 characters, its hyphen one, and `job-` below may add four.
        label = f"{label[: NAME_LENGTH - 13].strip('-')}-{digest}".lstrip("-")
    if not label[:1].isalpha():
        label = f"job-{label}" if label else "job"
    return label[:NAME_LENGTH].rstrip("-")


def host_name(name: str, which: int | str) -> str:
    """Return the host name of one replica, by its rank or what it is: `held-one-0`, `held-one-worker-0`."""
    suffix = f"-{which}"
    # The name is shortened and never the suffix, which makes host names of one job distinct.
    return dns_name(name)[: NAME_LENGTH - len(suffix)].rstrip("-") + suffix
