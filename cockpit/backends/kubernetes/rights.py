"""Which jobs the user may change, by the namespace and the kind of their objects."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.wire.access import rules_of
from cockpit.model.spec import Access

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.access import Rule
    from cockpit.backends.kubernetes.wire.api import Api

_CHANGES = ("patch", "delete")
"""Verbs of which one at least makes a job the user's to change; the server refuses the others in its own words."""
_AT_ONCE = 10


class Rights:
    """Asks the API server once for each namespace."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._rules: dict[str, tuple[Rule, ...] | None] = {}
        """By namespace; None: the server does not tell them all."""

    def access(self, namespace: str, resource: Resource | None) -> Access:
        """Return what the user may do with a job. `resource`: the kind of its object; None: one that is not read.

        As long as the rights in the namespace are not known, the server itself may refuse a change.
        """
        if resource is None:
            return Access.RO
        rules = self._rules.get(namespace)
        if rules is None:
            return Access.RW
        return Access.RW if any(rule.allows(verb, resource) for rule in rules for verb in _CHANGES) else Access.RO

    async def learn(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Ask about those that are not known yet; return them."""
        unknown = frozenset(namespaces) - self._rules.keys()
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(namespace: str) -> None:
            async with at_once:
                self._rules[namespace] = await rules_of(self._api, namespace)

        await asyncio.gather(*map(one, unknown))
        return unknown
