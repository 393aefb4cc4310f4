"""Applies and removes a cluster's quota tree."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from cockpit.backends.kubernetes.kube_queue import TREE_NAMESPACE
from cockpit.backends.kubernetes.mapping.quota_manifest import manifest_of_tree, root_of
from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.backends.kubernetes.resources import QUOTA_TREES
from cockpit.backends.kubernetes.rights import OLD_SECONDS
from cockpit.backends.kubernetes.wire.access import may
from cockpit.backends.kubernetes.wire.answers import ApiError
from cockpit.backends.kubernetes.writing import ObjectWriter, RawObject, merge_patch, refuse
from cockpit.model.quota import QuotaTree, tree_errors
from cockpit.model.refusal import RefusalKind
from cockpit.model.text import visible
from cockpit.protocol import messages

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.wire.api import Api

MOST_ERRORS = 1000


class _Trees(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]] = []


class QuotaActs:
    """Carries out the changes of the quota tree of one user."""

    def __init__(self, api: Api, writer: ObjectWriter) -> None:
        self._api, self._writer = api, writer
        self._may_change: tuple[float, bool] | None = None
        """When the server was asked, as the event loop counts time, and its answer."""

    async def may_change(self) -> bool:
        """Return whether the user may change quota trees, by an answer of the server of at most `OLD_SECONDS`."""
        now = asyncio.get_running_loop().time()
        if self._may_change is None or now >= self._may_change[0] + OLD_SECONDS:
            self._may_change = now, await may(self._api, "patch", QUOTA_TREES, TREE_NAMESPACE)
        return self._may_change[1]

    async def act(self, args: messages.ApplyQuotaArgs | messages.NoArgs) -> None:
        """Apply a tree, or without one remove that of the cluster. Raises `RequestRefused`."""
        await (self.apply(args.tree) if isinstance(args, messages.ApplyQuotaArgs) else self.remove())

    async def apply(self, tree: QuotaTree) -> None:
        """Apply a tree in place of an earlier one of its name.

        1. Read the tree that is there; another one's name may be a mistake that would replace all quotas.
        2. Create the tree where there is none.
        3. Else replace its root.
        """
        if errors := list(tree_errors(tree)):
            refuse("\n".join(errors[:MOST_ERRORS]), RefusalKind.INVALID)
        present = await self._present()  # step 1
        if present is None:
            await self._writer.create(QUOTA_TREES, manifest_of_tree(tree))  # step 2
            return
        if _name(present) != tree.name:
            message = (
                f"Quota tree {visible(_name(present))} is there, and a cluster has one; `cockpit quota remove` "
                "removes it."
            )
            refuse(message, RefusalKind.CONFLICT)
        await self._writer.change(QUOTA_TREES, TREE_NAMESPACE, tree.name, lambda now: _new_root(tree, now))  # step 3

    async def remove(self) -> None:
        """Remove the tree."""
        present = await self._present()
        if present is None:
            message = "There is no quota tree; `cockpit quota apply FILE` applies one."
            refuse(message, RefusalKind.NOT_FOUND)
        meta = msgspec.convert(present["metadata"], ObjectMeta)
        await self._writer.delete(QUOTA_TREES, meta)
        await self._writer.until_other(meta)

    async def _present(self) -> dict[str, Any] | None:
        """Return the oldest tree, which is the one in force; None: there is none."""
        try:
            body = await self._api.get(QUOTA_TREES.path(TREE_NAMESPACE))
        except ApiError as error:
            refuse(f"Quota trees cannot be read: {error.message}", RefusalKind.DENIED)
        trees = msgspec.json.decode(body, type=_Trees).items
        return min(trees, key=lambda each: (each["metadata"]["creationTimestamp"], _name(each)), default=None)


def _new_root(tree: QuotaTree, present: RawObject) -> dict[str, Any] | None:
    """Return the patch that gives the present object the tree's root; None: it has it."""
    present_root = (present.get("spec") or {}).get("root") or {}
    change = merge_patch(present_root, root_of(tree, present_root))
    return {"spec": {"root": change}} if change else None


def _name(tree: dict[str, Any]) -> str:
    return str(tree["metadata"]["name"])
