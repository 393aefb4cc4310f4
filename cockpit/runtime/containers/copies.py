"""Copy everything that a replica's container needs to this machine, before the container is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.launch.command import ENTRYPOINT
from cockpit.launch.modes import AGENT_FOLDER
from cockpit.launch.pools import replica_spec
from cockpit.launch.workspace import mounted_folders
from cockpit.model.image import ImageKind, image_of
from cockpit.model.staging import Progress
from cockpit.runtime.containers.staging.fetching import FetchKind, MeasuredSource, StagingSource

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
    """The copies of each replica, by the field of the spec that they belong to. `moved` is called on progress."""

    def __init__(self, cache: StagingCache, moved: Callable[[ReplicaId], None]) -> None:
        self._cache = cache
        self._moved = moved
        self._paths: dict[ReplicaId, dict[str, str]] = {}
        """Paths of the finished copies, by field of the spec."""
        self._images: dict[ReplicaId, MeasuredSource] = {}
        """Properties of the replica's image, if podman or docker has it."""
        self._podman_images: dict[ReplicaId, str] = {}
        """Ids of the images from which podman makes the replicas' containers."""
        self._progress: dict[ReplicaId, Progress] = {}

    def lacks(self, start: StartReplica) -> bool:
        """Return whether the replica needs copies that `have` has not returned yet in this process."""
        return start.replica not in self._paths and next(_needed_sources(start), None) is not None

    async def have(self, start: StartReplica) -> None:
        """Make all copies. Raises FetchFailed. If it is cancelled, unfinished copies are removed."""
        replica, who = start.replica, start.submitter
        # Shown from the start, since measuring reads whole sources and may take minutes.
        self._report_progress(replica, _NOT_KNOWN)
        try:
            # All sources are measured before the first is copied, so that the progress has its total from the start.
            sources = [(wanted, *(await self._cache.measured(wanted, who))) for wanted in _needed_sources(start)]
            total, done = sum(measured.size for _, measured, missing in sources if missing), 0
            paths: dict[str, str] = {}
            for wanted, measured, missing in sources:
                if measured.podman:
                    self._podman_images[replica] = measured.key
                    continue

                # `before` is bound at the definition; the body would see a later value of `done`.
                def tell(part: Progress, before: int = done) -> None:
                    self._report_progress(replica, Progress(before + part.done, total, part.rate))

                paths[wanted.what] = await self._cache.have(wanted, measured, who, replica.folder, tell)
                done += measured.size if missing else 0
            self._paths[replica] = paths
            for wanted, measured, _ in sources:
                if wanted.kind is FetchKind.NAMED:
                    self._images[replica] = measured
        finally:
            # After an error too: with an entry here, the job's row would show a copying that goes on for ever.
            del self._progress[replica]
            self._moved(replica)

    def laid_out(self, plan: ContainerPlan, start: StartReplica) -> ContainerPlan:
        """Return the plan with the copies instead of their sources, and with the image's variables and command.

        Raises `SpecErrors` if the job runs the image's command and the image has none.
        """
        paths = self._paths.get(start.replica)
        # Without an entry the attempt needs no copies, or an earlier engine has written its plan already.
        if paths is None:
            return plan
        if (measured := self._images.get(start.replica)) is not None:
            plan = of_image(plan, measured, replica_spec(start.spec, start.replica.rank))

        def copied(mount: Mount) -> Mount:
            return replace(mount, source=paths[mount.what], copied=True) if mount.what in paths else mount

        podman_image = self._podman_images.get(start.replica, "")
        image = copied(plan.image) if plan.image is not None and not podman_image else None
        return replace(plan, mounts=tuple(map(copied, plan.mounts)), image=image, podman=podman_image)

    def progress(self, replica: ReplicaId) -> Progress | None:
        return self._progress.get(replica)

    async def leave(self, replica: ReplicaId) -> None:
        """Release the replica's copies: its container is gone, or will never be made."""
        self._paths.pop(replica, None)
        self._images.pop(replica, None)
        self._podman_images.pop(replica, None)
        await self._cache.leave(replica.folder)

    def _report_progress(self, replica: ReplicaId, progress: Progress) -> None:
        self._progress[replica] = progress
        self._moved(replica)


def of_image(plan: ContainerPlan, image: MeasuredSource, spec: JobSpec) -> ContainerPlan:
    """Return the plan with the image's variables, and with its command if the job does not name one.

    The job's own variables take precedence over cockpit's, and those over the image's; but the image's PATH replaces
    cockpit's, and its PYTHONPATH is put in front. Raises `SpecErrors` if the command is missing.
    """
    # PATH is the exception: the image's programs are only where the image's own PATH says.
    added = {name: each for name, each in image.env.items() if name == "PATH" or name not in plan.env}
    env = plan.env | {name: each for name, each in added.items() if name not in spec.env}
    # In front of the image's PATH, or its real `ssh` would hide the job's agent from launchers.
    if "PATH" in env and (agent := plan.env.get("PATH", "")).startswith(AGENT_FOLDER) and env["PATH"] != agent:
        env["PATH"] = f"{AGENT_FOLDER}:{env['PATH']}"
    if "PYTHONPATH" in image.env and "PYTHONPATH" not in spec.env:
        env["PYTHONPATH"] = ":".join(filter(None, (image.env["PYTHONPATH"], plan.env.get("PYTHONPATH"))))
    program, *arguments = plan.argv
    if program != ENTRYPOINT:
        return replace(plan, env=env)
    own = (*image.entrypoint, *(arguments or image.cmd))
    # Arguments alone are not a command: without an ENTRYPOINT the first of them would be executed.
    if not own or (arguments and not image.entrypoint):
        raise SpecErrors([f"command: the image {spec.image} has no ENTRYPOINT; write the program that runs"])
    return replace(plan, env=env, argv=own, workdir=image.workdir or plan.workdir)


def _needed_sources(start: StartReplica) -> Iterator[StagingSource]:
    spec = replica_spec(start.spec, start.replica.rank)
    image = image_of(spec.root_image)
    # An image must be copied to become a root at all; datasets are copied only where the job asks for it.
    if image.kind in _FETCHED:
        yield StagingSource("image", _FETCHED[image.kind], image.where)
    if spec.staging:
        datasets = {f"datasets[{index}]" for index in range(len(spec.datasets))}
        yield from (
            StagingSource(each.what, FetchKind.TREE, each.source)
            for each in mounted_folders(spec)
            if each.what in datasets
        )
