"""What is done with one replica of a job: its log is read, or a shell is opened in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cockpit.backends.kubernetes.debug_containers import debug_container
from cockpit.backends.kubernetes.logs import PodLogs
from cockpit.backends.kubernetes.mapping.runs import Run, runs_of
from cockpit.backends.kubernetes.wire.exec import run_in_pod
from cockpit.backends.remote_shell import ShellStreams, remote_shell
from cockpit.errors import RequestRefused
from cockpit.model import asking
from cockpit.model.ids import JobId, job_words
from cockpit.model.refusal import Refusal, RefusalKind

if TYPE_CHECKING:
    from cockpit.backends.base import ShellSession
    from cockpit.backends.kubernetes.holds import Holds
    from cockpit.backends.kubernetes.mapping.kube_jobs import KubeJob
    from cockpit.backends.kubernetes.objects.pod import Pod
    from cockpit.backends.kubernetes.wire.api import Api

SHELL_COMMAND = ("sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")
"""Bash where the image has it; every image with a shell has sh."""


DEBUG_NOTICE = "The job's processes are visible here, and its files are below /proc/1/root."


class Replicas:
    """The replicas of the jobs that are listed."""

    def __init__(self, api: Api, connect: Callable[[], Api], holds: Holds, find: Callable[[JobId], KubeJob]) -> None:
        """`connect`: makes a connection for a shell, which has an event loop of its own. `find`: returns a listed job;
        refuses an unknown one."""
        self._api, self._connect, self._holds, self._find = api, connect, holds, find
        self._logs = PodLogs(api)

    async def read_log(self, request: asking.LogRequest) -> asking.LogChunk:
        run = self._run(JobId(request.job), request.rank, request.attempt)
        # Kubernetes stores both streams as one.
        if run is None or request.stream is asking.LogStream.STDERR:
            return asking.LogChunk(b"", 0, ended=run is None or bool(run.later) or run.pod.has_ended)
        return await self._logs.read(
            run.pod, request.offset, request.limit, wait=request.wait, previous=bool(run.later)
        )

    async def search_log(self, request: asking.LogSearch) -> asking.LogMatches:
        run = self._run(JobId(request.job), request.rank, request.attempt)
        if run is None or request.stream is asking.LogStream.STDERR:
            return asking.LogMatches((), 0, 0, 0, 0)
        return await self._logs.search(run.pod, request, previous=bool(run.later))

    async def open_shell(self, request: asking.ShellRequest) -> ShellSession:
        """Open a shell in a running pod. Refused for a pod that does not run: Kubernetes has no way into it."""
        pod, job = self._pod(JobId(request.job), request.rank), self._find(JobId(request.job))
        held = self._holds.of(job)
        if pod is None or pod.now.phase != "Running":
            state = "has no pod on a node" if pod is None else f"has ended ({pod.now.phase})"
            message = f"Replica {request.rank} of job {job_words(request.job)} {state}; only a running pod has a shell."
            if held is not None:
                message += f" Replica {job.pods.index(held[0])} is held."
            raise RequestRefused(Refusal(RefusalKind.CONFLICT, message))
        container = pod.spec.containers[0].name if pod.spec.containers else ""
        if request.image:
            container = await debug_container(self._api, pod, request.image)
        where = (pod.metadata.namespace, pod.metadata.name, container)
        argv = request.command or SHELL_COMMAND

        async def session(streams: ShellStreams) -> int:
            return await run_in_pod(self._connect, where, argv, request, streams)

        shell = remote_shell(session, request, kept=held is not None and held[0] is pod)
        if request.image:
            shell.notice = f"{DEBUG_NOTICE} {shell.notice}".rstrip()
        return shell

    async def close(self) -> None:
        await self._logs.close()

    def _run(self, job: JobId, rank: int, attempt: int | None) -> Run | None:
        """Return the start of a replica whose log is meant; None: it has no pod yet. Refused for one without a log."""
        pod = self._pod(job, rank)
        if pod is None or attempt is None:
            return Run(pod) if pod is not None else None
        runs = runs_of(self._find(job), rank)
        if not 1 <= attempt <= len(runs):
            message = f"Replica {rank} of job {job_words(job)} has attempts 1 to {len(runs)}, as far as its pods exist."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        run = runs[attempt - 1]
        if run.later > 1:
            message = (
                f"The log of attempt {attempt} is gone: of a container that was started again, Kubernetes keeps the "
                f"last log and the one before. Attempts {attempt + run.later - 1} and {attempt + run.later} have one."
            )
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        return run

    def _pod(self, job: JobId, rank: int) -> Pod | None:
        """Return a job's pod by its rank; None: it has none yet. Refused for a rank too high."""
        found = self._find(job)
        if rank >= max(1, found.wanted, len(found.pods)):
            message = f"Job {job_words(job)} has {found.wanted} replicas; the last one is {found.wanted - 1}."
            raise RequestRefused(Refusal(RefusalKind.NOT_FOUND, message))
        return found.pods[rank] if rank < len(found.pods) else None
