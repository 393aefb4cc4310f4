"""The documents of a Kubernetes manifest: which of them is the job, and what stands beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from cockpit.formats.foreign.draft import Draft
from cockpit.formats.foreign.propagation import is_policy, take_policy

_KIND: Final = re.compile(r"""["']?\bkind["']?\s*:\s*["']?(?P<kind>[A-Za-z]+)""")
_VERSION: Final = re.compile(r"""["']?\bapiVersion["']?\s*:\s*["']?(?P<group>[A-Za-z0-9./-]+)""")


def items_of(documents: list[object]) -> list[object]:
    """The documents with those that a `List` holds in its place."""
    found: list[object] = []
    for each in documents:
        items = each.get("items") if isinstance(each, dict) and str(each.get("kind", "")).endswith("List") else None
        found += items_of(items) if isinstance(items, list) else [each] if each is not None else []
    return found


def kinds_in(text: str) -> list[tuple[str, str]]:
    """Of a text that is not parsed: each kind that is written in it, and the API group that may belong to it."""
    groups = [match["group"] for match in _VERSION.finditer(text)]
    kinds = [match["kind"] for match in _KIND.finditer(text)]
    return [(kind, group) for kind in kinds for group in groups or [""]]


def unknown_kind(documents: list[object]) -> str:
    """The kind of the first object of Kubernetes among documents, with its API; empty: there is none."""
    for each in documents:
        if isinstance(each, Mapping) and "apiVersion" in each and "kind" in each:
            return f"{each['kind']} ({each['apiVersion']})"
    return ""


def beside(documents: list[object], job: object, draft: Draft) -> None:
    """What the other documents say of the job; each that says nothing is noted."""
    others = [each for each in documents if each is not job]
    policies = [each for each in others if is_policy(each)]
    if len(policies) == 1:
        take_policy(policies[0], draft)
        others.remove(policies[0])
    names = [_named(each) for each in others]
    if names:
        draft.lacks("the other documents of the file", f"{', '.join(names)} left out")


def _named(document: object) -> str:
    if not isinstance(document, Mapping):
        return "one without a kind"
    metadata: Any = document.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
    return " ".join(filter(None, (str(document.get("kind", "one without a kind")), str(name or ""))))
