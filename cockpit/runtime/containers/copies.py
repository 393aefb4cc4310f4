"""Has everything copied to this machine that a replica's container needs, before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import AGENT_FOLDER
from cockpit.launch.pools import replica_spec
from cockpit.launch.workspace import shown
from cockpit.model.image import ImageKind, image_of
from cockpit.model.staging import Progress
from cockpit.runtime.containers.staging.fetching import FetchKind, Measured, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cockpit.engine.effects import StartReplica
    from cockpit.model.ids import ReplicaId
    from cockpit.model.spec import JobSpec
    from cockpit.runtime.containers.plan import ContainerPlan, Mount
    from cockpit.runtime.containers.staging.staging_cache import StagingCache

_NOT_KNOWN = Progress(0, 0, 0)
_FETCHED = {ImageKind.TAR: FetchKind.TAR, ImageKind.NAMED: FetchKind.NAMED}


class Copies:
    """What replicas have copied, by field of their specs. `moved` is told of progress."""

    def __init__(self, depot: StagingCache, moved: Callable[[ReplicaId], None]) -> None:
        self._depot = depot
        self._moved = moved
        self._had: dict[ReplicaId, dict[str, str]] = {}
        self._images: dict[ReplicaId, Measured] = {}
        """What there is to know of its image, where podman or docker has it."""
        self._podmans: dict[ReplicaId, str] = {}
        """The image of which podman makes its container."""
        self._progress: dict[ReplicaId, Progress] = {}

    def lacks(self, start: StartReplica) -> bool:
        """Whether something has to be copied, or looked for, first."""
        return start.replica not in self._had and next(_wanted(start), None) is not None

    async def have(self, start: StartReplica) -> None:
        """Return once everything is there. Raises FetchFailed. Cancelled, it leaves nothing half."""
        replica, who = start.replica, start.submitter
        self._tell(replica, _NOT_KNOWN)
        try:
            measured = [(each, *(await self._depot.measured(each, who))) for each in _wanted(start)]
            total, done = sum(found.size for _, found, missing in measured if missing), 0
            paths: dict[str, str] = {}
            for each, found, missing in measured:
                if found.podman:
                    self._podmans[replica] = found.key
                    continue

                def tell(part: Progress, before: int = done) -> None:
                    self._tell(replica, Progress(before + part.done, total, part.rate))

                paths[each.what] = await self._depot.have(each, found, who, replica.folder, tell)
                done += found.size if missing else 0
            self._had[replica] = paths
            for _, found, _ in (every for every in measured if every[0].kind is FetchKind.NAMED):
                self._images[replica] = found
        finally:
            del self._progress[replica]
            self._moved(replica)

    def laid_out(self, plan: ContainerPlan, start: StartReplica) -> ContainerPlan:
        """The plan with the copies in place of what they were made of, and with what an image brings. Of variables the
        job's own come first, cockpit's next, but for the PATH. Raises `SpecErrors` where its command is wanted and it
        has none."""
        had = self._had.get(start.replica)
        if had is None:
            return plan
        if (brought := self._images.get(start.replica)) is not None:
            plan = of_image(plan, brought, replica_spec(start.spec, start.replica.rank))

        def copied(mount: Mount) -> Mount:
            return replace(mount, source=had[mount.what], copied=True) if mount.what in had else mount

        podmans = self._podmans.get(start.replica, "")
        image = copied(plan.image) if plan.image is not None and not podmans else None
        return replace(plan, mounts=tuple(map(copied, plan.mounts)), image=image, podman=podmans)

    def progress(self, replica: ReplicaId) -> Progress | None:
        return self._progress.get(replica)

    async def leave(self, replica: ReplicaId) -> None:
        """Its container is gone, or will never be."""
        self._had.pop(replica, None)
        self._images.pop(replica, None)
        self._podmans.pop(replica, None)
        await self._depot.leave(replica.folder)

    def _tell(self, replica: ReplicaId, progress: Progress) -> None:
        self._progress[replica] = progress
        self._moved(replica)


def of_image(plan: ContainerPlan, image: Measured, spec: JobSpec) -> ContainerPlan:
    """The plan with the image's variables, and with its own command where the job leaves that to it. Raises
    `SpecErrors` where it has none."""
    added = {name: each for name, each in image.env.items() if name == "PATH" or name not in plan.env}
    env = plan.env | {name: each for name, each in added.items() if name not in spec.env}
    if "PATH" in env and (agent := plan.env.get("PATH", "")).startswith(AGENT_FOLDER) and env["PATH"] != agent:
        env["PATH"] = f"{AGENT_FOLDER}:{env['PATH']}"
    if "PYTHONPATH" in image.env and "PYTHONPATH" not in spec.env:
        env["PYTHONPATH"] = ":".join(filter(None, (image.env["PYTHONPATH"], plan.env.get("PYTHONPATH"))))
    program, *arguments = plan.argv
    if program != ENTRYPOINT:
        return replace(plan, env=env)
    own = (*image.entrypoint, *(arguments or image.cmd))
    if not own or (arguments and not image.entrypoint):
        raise SpecErrors([f"command: the image {spec.image} has no ENTRYPOINT; write the program that runs"])
    return replace(plan, env=env, argv=own, workdir=image.workdir or plan.workdir)


def _wanted(start: StartReplica) -> Iterator[Wanted]:
    spec = replica_spec(start.spec, start.replica.rank)
    image = image_of(spec.root_image)
    if image.kind in _FETCHED:
        yield Wanted("image", _FETCHED[image.kind], image.where)
    if spec.staging:
        datasets = {f"datasets[{index}]" for index in range(len(spec.datasets))}
        yield from (Wanted(each.what, FetchKind.TREE, each.source) for each in shown(spec) if each.what in datasets)
