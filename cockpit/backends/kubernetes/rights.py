"""Which jobs the user may change, by the namespace and the kind of their objects.

Rights are given and taken away while cockpit runs. One namespace after the other is asked about anew: at once where the
server has just refused something, soon where the user looks at a job, else the one whose answer is oldest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.wire.access import rules_of
from cockpit.errors import CockpitError
from cockpit.model.spec import Access

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.resources import Resource
    from cockpit.backends.kubernetes.wire.access import Rule
    from cockpit.backends.kubernetes.wire.api import Api

_CHANGES = ("patch", "delete")
"""Verbs of which one at least makes a job the user's to change; the server refuses the others in its own words."""
_READS = ("list", "watch")
_AT_ONCE = 10
REVIEW_SECONDS = 6.0
"""Pause between two namespaces that are asked about anew."""
OLD_SECONDS = 120.0
"""Age from which an answer is asked for anew."""

Changed = Callable[[str, Callable[["Resource"], bool]], None]
"""Receives a namespace whose rules have changed, and which kinds the user may read there from now on or no longer."""


class Rights:
    """What the API server says of the user's rights in each namespace."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._rules: dict[str, tuple[Rule, ...] | None] = {}
        """By namespace; None: the server does not tell them all. The one with the oldest answer comes first."""
        self._asked_at: dict[str, float] = {}
        self._doubted: set[str] = set()
        self._doubt = asyncio.Event()

    def access(self, namespace: str, resource: Resource | None) -> Access:
        """Return what the user may do with a job. `resource`: the kind of its object; None: one that is not read.

        As long as the rights in the namespace are not known, the server itself may refuse a change.
        """
        if resource is None:
            return Access.RO
        rules = self._rules.get(namespace)
        if rules is None:
            return Access.RW
        return Access.RW if _allows(rules, _CHANGES, resource) else Access.RO

    async def learn(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Ask about those that are not known yet; return them."""
        unknown = frozenset(namespaces) - self._rules.keys()
        at_once = asyncio.Semaphore(_AT_ONCE)

        async def one(namespace: str) -> None:
            async with at_once:
                self._keep(namespace, await rules_of(self._api, namespace))

        await asyncio.gather(*map(one, unknown))
        return unknown

    def doubt(self, namespace: str) -> None:
        """Ask about a namespace soon: the server has refused something there."""
        if namespace in self._rules and namespace not in self._doubted:
            self._doubted.add(namespace)
            self._doubt.set()

    def prefer(self, namespace: str) -> None:
        """Ask about a namespace next if its answer is old: the user looks at it."""
        if self._age(namespace) >= OLD_SECONDS:
            self._doubted.add(namespace)

    async def review(self, namespaces: Callable[[], Collection[str]], changed: Changed) -> None:
        """Ask about these namespaces again and again. Never ends."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(REVIEW_SECONDS):
                    await self._doubt.wait()
            self._doubt.clear()
            if (namespace := self._next(namespaces())) is None:
                continue
            # A server that does not answer is asked again.
            with suppress(CockpitError):
                before, rules = self._rules.get(namespace), await rules_of(self._api, namespace)
                self._keep(namespace, rules)
                if rules != before:
                    changed(namespace, partial(_reads_otherwise, before or (), rules or ()))

    def _next(self, namespaces: Collection[str]) -> str | None:
        """Return the namespace to be asked about now; None: all answers are new."""
        for each in [*self._rules.keys() - namespaces]:
            del self._rules[each], self._asked_at[each]
        self._doubted &= self._rules.keys()
        doubted = next(iter(self._doubted), None)
        if doubted is not None:
            if len(self._doubted) > 1:
                self._doubt.set()
            return doubted
        oldest = next(iter(self._rules), None)
        return oldest if oldest is not None and self._age(oldest) >= OLD_SECONDS else None

    def _keep(self, namespace: str, rules: tuple[Rule, ...] | None) -> None:
        self._doubted.discard(namespace)
        self._rules.pop(namespace, None)
        self._rules[namespace] = rules
        self._asked_at[namespace] = asyncio.get_running_loop().time()

    def _age(self, namespace: str) -> float:
        asked_at = self._asked_at.get(namespace)
        return 0.0 if asked_at is None else asyncio.get_running_loop().time() - asked_at


def _reads_otherwise(before: Collection[Rule], after: Collection[Rule], resource: Resource) -> bool:
    return any(_allows(before, (verb,), resource) != _allows(after, (verb,), resource) for verb in _READS)


def _allows(rules: Collection[Rule], verbs: Collection[str], resource: Resource) -> bool:
    """Return whether the rules allow one of the verbs at least."""
    return any(rule.allows(verb, resource) for rule in rules for verb in verbs)
