"""Rules for entries of the catalogue. Each error is a sentence that begins with its field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cockpit.model.catalogue import (
    CLUSTERWIDE,
    AlgorithmEntry,
    DatasetEntry,
    ImageEntry,
    ModelEntry,
    PoolEntry,
    ProjectEntry,
    SpecEntry,
    UserEntry,
    VolumeEntry,
)
from cockpit.model.mounts import VERSIONED
from cockpit.model.names import name_error
from cockpit.model.rules.spec import image_error, label_error, node_spec_checks
from cockpit.model.rules.text import count_error, path_error, rule_name_error, text_error, user_name_error
from cockpit.model.text import is_visible, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cockpit.model.catalogue import AnyEntry

MOST_VERSIONS = 1000
MOST_WORDS = 4096
"""Members of a project, nodes of a pool."""
ABOUT_BYTES = 1000
EMAIL_LENGTH = 254
_EMAIL = re.compile(r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+")


def entry_errors(entry: AnyEntry) -> list[str]:
    """Return everything that is wrong with an entry by itself."""
    return [f"{field}: {error}" for field, error in (*_common(entry), *_own(entry)) if error]


def _common(entry: AnyEntry) -> Iterator[tuple[str, str | None]]:
    yield "name", user_name_error(entry.name) if isinstance(entry, UserEntry) else name_error(entry.name)
    if entry.project:
        in_none = f"is of no {entry.kind}; leave it out" if entry.kind in CLUSTERWIDE else None
        yield "project", in_none or name_error(entry.project)
    if entry.owner:
        yield "owner", user_name_error(entry.owner)
    yield "about", text_error(entry.about, ABOUT_BYTES, least=0)


def _own(entry: AnyEntry) -> Iterator[tuple[str, str | None]]:
    """Yield the checks of the fields that only this kind of entry has."""
    match entry:
        case DatasetEntry() | ModelEntry():
            yield from _versions(entry)
        case AlgorithmEntry() | VolumeEntry():
            yield "path", path_error(entry.path)
        case ImageEntry():
            yield "image", image_error(entry.image)
            yield "scopes", count_error(len(entry.scopes), MOST_WORDS, least=1)
            yield from _words("card_types", entry.card_types)
        case SpecEntry():
            yield "name", "cannot refer to another spec; write its fields" if entry.spec.name else None
            yield from ((path.removeprefix("."), error) for path, error in node_spec_checks("", entry.spec))
            if entry.spec.card_models and not entry.spec.card_milli:
                yield "card_models", "needs cards; add cards: 1 (or more), or remove it"
        case PoolEntry():
            # A pool's name is also one of cluster.toml, whose rule for names is narrower.
            yield "name", rule_name_error(entry.name)
            yield from _words("nodes", entry.nodes)
        case ProjectEntry():
            yield "users", count_error(len(entry.users), MOST_WORDS)
            yield from (("users", user_name_error(each)) for each in entry.users[:MOST_WORDS])
            yield from _words("groups", entry.groups)
        case UserEntry():
            yield "email", _email_error(entry.email)


def _versions(entry: DatasetEntry | ModelEntry) -> Iterator[tuple[str, str | None]]:
    """Yield each field with its error: an entry has a path, or versions that each have one."""
    if entry.source not in VERSIONED:
        yield "path", path_error(entry.path)
        yield (
            "versions",
            f"are none of a {entry.source} one's; write path, or another source" if entry.versions else None,
        )
        return
    yield "path", f"is none of a {entry.source} one's; write versions, or another source" if entry.path else None
    yield "versions", count_error(len(entry.versions), MOST_VERSIONS, least=1)
    for version, path in list(entry.versions.items())[:MOST_VERSIONS]:
        yield f"versions.{visible(version)}", name_error(version) or path_error(path)


def _words(field: str, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    yield field, count_error(len(words), MOST_WORDS)
    yield from ((field, label_error(each)) for each in words[:MOST_WORDS])


def _email_error(text: str) -> str | None:
    # RFC 5321 limits an address to 254 characters.
    if not text or (len(text) <= EMAIL_LENGTH and _EMAIL.fullmatch(text) and is_visible(text)):
        return None
    return f'"{visible(text)}" is no e-mail address; write name@host'
