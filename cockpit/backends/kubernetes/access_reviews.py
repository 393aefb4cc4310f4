"""What is asked again and again while a cluster is shown: the namespaces that one may see, and one's rights there."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.rights import OLD_SECONDS, Rights
from cockpit.errors import CockpitError
from cockpit.runtime.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.backends.kubernetes.inventory import Inventory
    from cockpit.backends.kubernetes.job_list import JobList
    from cockpit.backends.kubernetes.resources import Resource


class AccessReviews:
    """Keeps the rights of one user up to date."""

    def __init__(self, rights: Rights, inventory: Inventory, jobs: JobList) -> None:
        self._rights, self._inventory, self._jobs = rights, inventory, jobs
        self._tasks = Tasks()

    async def learn(self) -> None:
        """Ask about the namespaces of the jobs that are not known yet, and about all of them again from now on."""
        if await self._rights.learn(self._jobs.namespaces):
            self._jobs.look_again()
            await self._jobs.settle()
        if not len(self._tasks):
            self._tasks.start(self._rights.review(lambda: self._jobs.namespaces, self._changed), "the review of rights")
            self._tasks.start(self._look_for_namespaces(), "the review of namespaces")

    def doubt(self, path: str) -> None:
        """Ask soon what the user may do in the namespace of a request that the server has refused, by its path."""
        _, inside, rest = path.partition("/namespaces/")
        if inside:
            self._rights.doubt(rest.partition("/")[0])

    async def close(self) -> None:
        await self._tasks.cancel_all()

    def _changed(self, namespace: str, reads_otherwise: Callable[[Resource], bool]) -> None:
        self._inventory.rights_changed(namespace, reads_otherwise)
        self._jobs.look_again()

    async def _look_for_namespaces(self) -> None:
        """Ask again and again which namespaces the user may see."""
        while True:
            await asyncio.sleep(OLD_SECONDS)
            # A server that does not answer is asked again.
            with suppress(CockpitError):
                await self._inventory.look_for_namespaces()
