"""What the composition root hands to the commands, and what one call of a command has at hand."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cockpit.present.saved import Saved, none_saved

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.base import Backend, Shown
    from cockpit.headless.play_script import Script
    from cockpit.headless.streams import Streams
    from cockpit.headless.surroundings import EngineControl, Finding, Site
    from cockpit.model.ids import JobId, JobRef
    from cockpit.model.spec import JobSpec
    from cockpit.present.columns import Context


class Services(msgspec.Struct, frozen=True):
    """How commands reach the world. Each is called at most once or not at all, so that its imports can wait."""

    connect: Callable[[str | None], Backend]
    """The cluster of that name; None: the configured one."""
    engine: Callable[[], EngineControl]
    findings: Callable[[], Sequence[Finding]]
    """What `doctor` finds."""
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    """Source name, text, and the absolute folder where its relative paths begin. Raises `SpecErrors`."""
    site: Callable[[bool], Site]
    """The files of this user's embedded cluster, or (True) of the machine's."""
    use_cluster: Callable[[str], Path]
    """Let commands open the cluster of that name from now on; gives the file that says so."""
    play: Callable[[Script, Path], None]
    """Run the cockpit by this script; its screenshots go into the folder. Raises `Unmet` where the screen is not so."""
    reach: Callable[[str | None], Backend | None] = lambda _: None
    """The same as `connect`, within a moment or not at all: None where that would start an engine."""
    clusters: Callable[[], Mapping[str, str]] = dict
    """The names that `-c` knows, with a word about each."""
    journal: Callable[[str | None], Sequence[Finding]] = lambda _: ()
    """What `doctor --journal` finds, of that cluster's engine. Raises `StoreError` where there is no journal."""
    advice: Callable[[str | None], str] = lambda _: ""
    """What to do where the cluster that this name means does not answer; empty: there is nothing to add."""
    saved: Callable[[str | None], Saved] = lambda _: none_saved
    """The filters that were saved for the cluster of that name; it is asked for only when one is wanted."""


class Call:
    """One command being run: its arguments and streams, and the cluster once it is asked for."""

    def __init__(self, args: Namespace, services: Services, streams: Streams) -> None:
        self.args, self.services, self.streams = args, services, streams
        self._backend: Backend | None = None

    @property
    def backend(self) -> Backend:
        """The cluster; connecting may start the engine, so only commands that need one ask."""
        if self._backend is None:
            self._backend = self.services.connect(self.args.cluster)
            self._backend.announce(self._tell)
            self._identify(self._backend)
        return self._backend

    def _identify(self, backend: Backend) -> None:
        """Give the command's acts the ids that its user wants. Raises `RequestRefused` where none are remembered."""
        request = getattr(self.args, "request_id", None)
        if request is None:
            return
        from cockpit.model.requests import NO_REQUEST_IDS, RequestIds

        if not backend.identify(RequestIds(request)):
            from cockpit.errors import RequestRefused
            from cockpit.model.refusal import Refusal, RefusalKind

            raise RequestRefused(Refusal(RefusalKind.INVALID, NO_REQUEST_IDS))

    async def _tell(self, commands: Sequence[Shown]) -> bool:
        """As a shell does that is asked to show what it runs; what they read only where nothing is run."""
        from cockpit.present.command_text import command_lines

        for each in commands:
            for number, text in enumerate(command_lines(each.argv, each.stdin if self.args.show_commands else "")):
                self.streams.say(text if number else f"+ {text}")
        return not self.args.show_commands

    async def job_id(self, ref: JobRef) -> JobId:
        """Of the job that a person names, or of the task."""
        return ref.job if ref.task is None else (await self.backend.job(ref.job, task=ref.task)).job.id

    def context(self, **more: object) -> Context:
        """What words depend on, as of now."""
        from cockpit.present.columns import Context

        return Context(now=self.streams.now(), zone=self.streams.zone, **more)  # type: ignore[arg-type]  # of Context

    async def close(self) -> None:
        if self._backend is not None:
            await self._backend.close()
