"""Wraps a backend that needs an event loop for one-shot commands, whose awaits never suspend (see `backends.drive`)."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Generic, TypeVar

from cockpit.backends.base import Backend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
    from typing import Any

    from cockpit.backends.base import Announced, CommandPreview, JobsDelta, ShellSession
    from cockpit.model.asking import ShellRequest
    from cockpit.model.capabilities import Capabilities
    from cockpit.model.directives import Directive
    from cockpit.model.ids import JobId
    from cockpit.model.operations import Operation
    from cockpit.model.requests import RequestIds
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import ClusterRow

T = TypeVar("T")
Wrapped = TypeVar("Wrapped", bound=Backend)


class Blocking(Backend, Generic[Wrapped]):
    """Runs each operation of the wrapped backend to its end on an event loop of its own."""

    def __init__(self, runner: asyncio.Runner, backend: Wrapped) -> None:
        gc.enable()  # commands switch it off because they end soon; this one may follow a log for hours
        self._runner, self.backend = runner, backend
        self.user, self.login = backend.user, backend.login

    async def perform(self, operation: Operation, given: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of the operation
        return self._run(getattr(self.backend, operation.name)(**given))

    @property
    def capabilities(self) -> Capabilities:
        return self.backend.capabilities

    def capabilities_for(self, jobs: Iterable[JobId]) -> Capabilities:
        return self.backend.capabilities_for(jobs)

    def announce(self, look: Announced, *, required: bool = False) -> None:
        self.backend.announce(look, required=required)

    @property
    def silence(self) -> str:
        return self.backend.silence

    @property
    def silent_members(self) -> tuple[tuple[str, str], ...]:
        return self.backend.silent_members

    def identify(self, ids: RequestIds) -> None:
        self.backend.identify(ids)

    async def written(self, spec: JobSpec) -> CommandPreview | None:
        return self._run(self.backend.written(spec))

    async def manifests(self, specs: Sequence[JobSpec]) -> list[dict[str, Any]]:
        return self._run(self.backend.manifests(specs))

    async def direct(self, wanted: Directive) -> JobId | None:
        return self._run(self.backend.direct(wanted))

    def why_not_directed(self, wanted: Directive) -> str:
        return self.backend.why_not_directed(wanted)

    async def clusters(self) -> list[ClusterRow]:
        return self._run(self.backend.clusters())

    def begin(self) -> None:
        """Watch nothing: a command that blocks asks the member clusters when it needs them."""

    async def watch_jobs(self, *, anything: bool = False) -> AsyncIterator[JobsDelta]:
        deltas = self.backend.watch_jobs(anything=anything)
        while True:
            yield self._run(_next(deltas))

    async def open_shell(self, request: ShellRequest) -> ShellSession:
        return self._run(self.backend.open_shell(request))

    async def close(self) -> None:
        self._run(self.backend.close())
        self._runner.close()

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(question)


async def _next(deltas: AsyncIterator[JobsDelta]) -> JobsDelta:
    return await anext(deltas)
