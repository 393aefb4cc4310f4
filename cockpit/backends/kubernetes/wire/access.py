"""What the user may do on the cluster, as the API server itself answers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import msgspec

from cockpit.backends.kubernetes.resources import NAMESPACES, Resource
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.wire.api import Api
from cockpit.backends.kubernetes.wire.lists import Page, decode_answer, read_list

REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
)
MOST_NAMESPACES = 200
"""Most namespaces that are asked about one by one, where the user may not list the whole cluster."""


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """What the user may do with objects of some kinds."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    """The only objects that it is about; empty: all."""

    def allows(self, verb: str, resource: Resource) -> bool:
        """Return whether it allows this for every object of the kind."""
        asked = ((verb, self.verbs), (resource.group, self.api_groups), (resource.plural, self.resources))
        return not self.resource_names and all("*" in given or one in given for one, given in asked)


class _RulesStatus(msgspec.Struct, frozen=True, rename="camel"):
    resource_rules: tuple[Rule, ...] | None = None
    incomplete: bool = False


class _Rules(msgspec.Struct, frozen=True):
    status: _RulesStatus = _RulesStatus()


class _Verdict(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Verdict = _Verdict()


WHO = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class _UserInfo(msgspec.Struct, frozen=True):
    username: str = ""


class _WhoStatus(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _UserInfo = _UserInfo()


class _Who(msgspec.Struct, frozen=True):
    status: _WhoStatus = _WhoStatus()


class _NameMeta(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _NameMeta = _NameMeta()


_WHO = msgspec.json.Decoder(_Who)
_REVIEW = msgspec.json.Decoder(_Review)
_RULES = msgspec.json.Decoder(_Rules)
_NAMES = msgspec.json.Decoder(Page[_Named])


async def user_name(api: Api) -> str:
    """Return the user's name on the cluster; empty where the server, older than 1.28, does not tell."""
    review = {"apiVersion": WHO.api_version, "kind": WHO.kind}
    try:
        body = await api.send("POST", WHO.path(), msgspec.json.encode(review))
    except ApiError:
        return ""
    return decode_answer(body, _WHO, WHO).status.user_info.username


async def may(api: Api, verb: str, resource: Resource, namespace: str = "", subresource: str = "") -> bool:
    """Return whether the user may do this in a namespace, or, without one, in the whole cluster."""
    attributes = {
        "verb": verb,
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "subresource": subresource,
        "namespace": namespace,
    }
    review = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    body = await api.send("POST", REVIEWS.path(), msgspec.json.encode(review))
    return decode_answer(body, _REVIEW, REVIEWS).status.allowed


async def rules_of(api: Api, namespace: str) -> tuple[Rule, ...] | None:
    """Return what the user may do in a namespace; None where the server does not tell all of it."""
    review = {
        "apiVersion": RULES_REVIEWS.api_version,
        "kind": RULES_REVIEWS.kind,
        "spec": {"namespace": namespace},
    }
    try:
        body = await api.send("POST", RULES_REVIEWS.path(), msgspec.json.encode(review))
    except ApiError:
        return None
    status = decode_answer(body, _RULES, RULES_REVIEWS).status
    return None if status.incomplete else status.resource_rules


class VisibleNamespaces:
    """The namespaces in which the user may list a kind of object, as the last looks found them."""

    def __init__(self, api: Api, own: str, resource: Resource) -> None:
        """`own`: the namespace of the kubeconfig's context, which counts even where namespaces cannot be listed. It is
        the only one where the user may list none, so that the server's refusal can be shown."""
        self._api, self._own, self._resource = api, own, resource
        self.names: tuple[str, ...] = ()
        """Their names; one empty name means the whole cluster."""
        self.unseen: tuple[str, ...] = ()
        """A sentence about namespaces that the user may be able to see all the same; empty: there are none."""
        self._may: dict[str, bool] = {}
        """Whether the user may list there, by namespace; the one that was asked about longest ago comes first."""

    async def look(self, most: int = MOST_NAMESPACES) -> bool:
        """Ask the server, and return whether other namespaces are visible than before.

        `most`: so many of the namespaces are asked about anew that were asked about before.
        """
        before = self.names
        if await may(self._api, "list", self._resource):
            self.names, self.unseen = ("",), ()
            self._may.clear()
            return before != self.names
        try:
            names = [each.metadata.name for each in (await read_list(self._api, NAMESPACES, _NAMES)).items]
        except ApiError as error:
            names, why = [], f"you may not list namespaces ({error.message})"
        else:
            why = f"of the cluster's {len(names)} namespaces only {MOST_NAMESPACES} are tried"
        everything = tuple(dict.fromkeys((self._own, *names)))
        tried = everything[:MOST_NAMESPACES]
        await self._ask(tried, most)
        self.names = tuple(each for each in tried if self._may[each]) or (self._own,)
        self.unseen = () if names and len(tried) == len(everything) else (self._about_others(why),)
        return before != self.names

    async def _ask(self, namespaces: Collection[str], most: int) -> None:
        """Ask about those that are new, and about those of which it is longest ago."""
        known = [each for each in self._may if each in namespaces]
        new = [each for each in namespaces if each not in self._may]
        answers = await _allowed(self._api, (*new, *known[:most]), self._resource)
        self._may = {each: self._may[each] for each in known[most:]} | answers

    def _about_others(self, why: str) -> str:
        only_own = self.names == (self._own,)
        shown = f"the namespace {self._own} is" if only_own else f"{len(self.names)} namespaces are"
        return (
            f"Only {shown} shown: {why}. Name others: -c 'kube:{self._api.context}?namespaces=A,B', or `namespaces` of "
            "the cluster in config.toml."
        )


async def _allowed(api: Api, namespaces: Collection[str], resource: Resource) -> dict[str, bool]:
    at_once = asyncio.Semaphore(20)

    async def one(namespace: str) -> bool:
        async with at_once:
            return await may(api, "list", resource, namespace)

    return dict(zip(namespaces, await asyncio.gather(*map(one, namespaces)), strict=True))
