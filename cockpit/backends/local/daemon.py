"""The process of the embedded engine: `python -m cockpit.clusters.engine_process [--system]`.

It starts in these steps, and then serves until it is stopped. An error is one sentence on stderr.

1. Read the settings and lock the state folder, which only one engine may use.
2. Load the state from the journal.
3. Build the engine with its executor of containers.
4. Read cluster.toml and catalogue.toml.
5. Listen on the socket, last, so that every client that can connect is answered.
6. Serve; beside that examine what containers this machine allows, watch jobs with `resume` and spot notices,
   and delete old logs.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import shlex
import sys
from contextlib import suppress
from io import TextIOBase
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec.structs import replace

from cockpit.backends.local.start import STORE_FAILED
from cockpit.config.loading import load_settings
from cockpit.config.places import paths, system_paths
from cockpit.config.settings import alert_kinds
from cockpit.engine.apply.events import apply
from cockpit.engine.fleet.reports import fleet_rules
from cockpit.engine.machine import Machine
from cockpit.errors import CockpitError, SpecErrors, StoreError, why_unreadable
from cockpit.formats.catalogue.file import read_catalogue
from cockpit.formats.cluster.file import ClusterSetup, read_cluster
from cockpit.launch.batchscript import job_facts
from cockpit.launch.nodescripts import script_facts
from cockpit.launch.plan import launch_plan
from cockpit.launch.world import world_files
from cockpit.model.catalogue import ProjectEntry
from cockpit.model.fleet import Member
from cockpit.model.masking import masked
from cockpit.runtime.alert_senders import Smtp, Webhook
from cockpit.runtime.alerts import AlertLimit, Alerts, Channels
from cockpit.runtime.clock import Deadline, SystemClock
from cockpit.runtime.containers.driver import ContainerExecutor
from cockpit.runtime.containers.nodescripts import NodeScripts
from cockpit.runtime.containers.plan import Bounds, EngineFolders, container_plan
from cockpit.runtime.containers.prechecking import Prechecks
from cockpit.runtime.containers.probe import probe_runtime
from cockpit.runtime.containers.staging.fetching import Fetcher
from cockpit.runtime.containers.staging.staging_cache import StagingCache
from cockpit.runtime.engine import Engine
from cockpit.runtime.faultpatrol import FaultChecks, check_periodically
from cockpit.runtime.fleet.members import Members
from cockpit.runtime.host import Host, Settings
from cockpit.runtime.iterations import Watch
from cockpit.runtime.logs import tidy_logs
from cockpit.runtime.machine import probe_machine
from cockpit.runtime.prices import PriceSettings, PriceWatch, forget_prices
from cockpit.runtime.server import is_listened_on, listen
from cockpit.runtime.serving import serve
from cockpit.runtime.spot_notices import SpotSettings, SpotWatch
from cockpit.sched.policy import Policy
from cockpit.store.journal import SqliteJournal
from cockpit.store.statefolder import FolderInUse, StateFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cockpit.config.places import EnginePaths
    from cockpit.config.settings import Settings as UserSettings
    from cockpit.engine.effects import StartReplica
    from cockpit.engine.ports import Observer
    from cockpit.launch.nodescripts import ScriptFacts
    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.containers.plan import ContainerPlan
    from cockpit.runtime.fleet.remote import MemberLink
    from cockpit.runtime.host import ContainerRuntime

LOCK_SECONDS = 5.0
"""Longest time to wait for the state folder of an engine that is stopping."""
_PROBE_AGAIN_SECONDS = 5.0
"""Interval between two tries to make a container on a machine that allowed none before."""


def main(arguments: Sequence[str], link_to: Callable[[str], MemberLink] | None = None) -> int:
    """Run the engine until it is stopped and return its exit code.

    0, or after an error 1; `STORE_FAILED` when the state folder cannot be used. `link_to`: makes the link to a cluster
    of config.toml, for the members of a fleet.
    """
    system = "--system" in arguments
    sys.stderr = _MaskedLog(sys.stderr)
    # The folder that it was started in may be unmounted or removed later.
    os.chdir("/")
    try:
        places = system_paths() if system else paths(os.geteuid(), os.environ)
        settings = load_settings(env=os.environ, files=places.config_files)
        links = _links(settings, link_to) if link_to is not None else {}
        asyncio.run(_run(places.with_state_folder(settings.state_folder), settings, links, system=system))
    except CockpitError as error:
        print(f"cockpit engine: {error}", file=sys.stderr)  # noqa: T201 - stderr is the engine's log
        return STORE_FAILED if isinstance(error, StoreError) and not isinstance(error, FolderInUse) else 1
    return 0


class _MaskedLog(TextIOBase):
    """The engine's log, its stderr, without secrets: what Python, asyncio and the engine itself write of defects."""

    def __init__(self, log: TextIO) -> None:
        self._log = log

    def write(self, text: str) -> int:
        self._log.write(masked(text))
        return len(text)

    def flush(self) -> None:
        self._log.flush()

    def fileno(self) -> int:
        return self._log.fileno()


def _links(settings: UserSettings, link_to: Callable[[str], MemberLink]) -> dict[str, MemberLink]:
    """Return the link to each member of the fleet by its name. Raises `CockpitError` for a name that is none."""
    for name in settings.fleet:
        if name not in settings.clusters:
            known = ", ".join(settings.clusters) or "none"
            raise CockpitError(
                f"config.toml: fleet: {name} is no cluster of [clusters], which has {known}. Add it there."
            )
    return {name: link_to(name) for name in settings.fleet}


async def _run(places: EnginePaths, settings: UserSettings, links: Mapping[str, MemberLink], *, system: bool) -> None:
    """Start the engine and serve; the steps are those of the module's docstring. `links`: to the members of a fleet."""
    folder = await _acquire(places)  # step 1
    journal = await SqliteJournal.open(folder.journal, folder.archive, clock=SystemClock(), apply=apply)
    try:
        state, _ = await journal.load()  # step 2
        # Containers of jobs that the journal does not know: it was replaced by an older one.
        folder.refuse_unknown_jobs(state.last_job_id)
        machine = Machine(state)
        gc.freeze()  # exempt the loaded state from garbage collection: traversing 100,000 jobs would stall the engine
        engine = _engine(machine, journal, folder.path, places, settings, links, system=system)  # step 3
        # In a thread: the machine's probe runs programs such as nvidia-smi.
        setup = await asyncio.to_thread(_setup, places.cluster_file)  # step 4
        setup = setup if engine.members is None else _of_fleet(setup, tuple(links), machine)
        listener = listen(places.socket, system=system)  # step 5
        async with asyncio.TaskGroup() as group:  # step 6
            ended, may_be_plain = asyncio.Event(), _may_be_plain(settings, system=system)
            group.create_task(_probe_containers(engine, ended, may_be_plain=may_be_plain))
            watching = group.create_task(_watch_jobs(engine, settings))
            tidying = group.create_task(_tidy(engine, settings))
            pricing = group.create_task(_watch_prices(engine, settings))
            noticing = group.create_task(_watch_notices(engine, settings))
            await serve(engine, listener, setup)
            # `serve` has ended; the group waits for its other tasks.
            ended.set()
            watching.cancel()
            tidying.cancel()
            noticing.cancel()
            pricing.cancel()
    finally:
        await journal.close()
        folder.release()


async def _probe_containers(engine: Engine, ended: asyncio.Event, *, may_be_plain: bool) -> None:
    """Find out which containers this machine allows. It runs beside the engine, because it may take long.

    While no container can be made it tries again until `ended`: what prevents it may pass, as a full disk does.
    """
    trouble = ""
    while True:
        # Never cancelled: its thread would go on in the state folder, which the next engine may have by then.
        runtime = await asyncio.to_thread(probe_runtime, engine.state_folder, may_be_plain=may_be_plain)
        engine.containers, engine.plain = str(runtime), runtime.is_plain
        others = tuple(each for each in engine.troubles if each != trouble)
        trouble = runtime.trouble
        engine.troubles = (*others, trouble) if trouble else others
        if runtime.usable or ended.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_AGAIN_SECONDS):
                await ended.wait()


async def _watch_jobs(engine: Engine, settings: UserSettings) -> None:
    """Check the nodes of jobs with `resume`, read their logs for slow iterations, and send alerts, for as long as the
    engine serves."""
    alerts = _alerts(engine, settings)
    engine.host.send_alert = alerts.offer
    async with asyncio.TaskGroup() as group:
        group.create_task(alerts.send_forever())
        group.create_task(check_periodically(engine.host, FaultChecks(), settings.patrol_seconds))
        group.create_task(Watch(engine.host, engine.logs).read_periodically())


def _alerts(engine: Engine, settings: UserSettings) -> Alerts:
    """Return the ways to send alerts that are set up."""
    webhook = Webhook(url=settings.alert_webhook, secret_file=settings.alert_webhook_secret)
    smtp = Smtp(
        host=settings.alert_smtp_host,
        port=settings.alert_smtp_port,
        tls=settings.alert_smtp_tls,
        login_file=settings.alert_smtp_login,
    )
    channels = Channels(
        mail=settings.alert_mail,
        smtp=smtp if smtp.host else None,
        sender=settings.alert_from or f"cockpit@{engine.cluster}",
        mail_kinds=alert_kinds(settings.alert_mail_kinds),
        webhook=webhook if webhook.url else None,
        webhook_kinds=alert_kinds(settings.alert_webhook_kinds),
        command=settings.alert_command,
        command_kinds=alert_kinds(settings.alert_command_kinds),
        url=settings.alert_url,
    )
    return Alerts(engine.cluster, channels, engine.host, AlertLimit(settings.alert_per_hour), engine.outages)


async def _watch_notices(engine: Engine, settings: UserSettings) -> None:
    """Reclaim the spot nodes when their provider takes them back, for as long as the engine serves."""
    spot = SpotSettings(
        provider=settings.spot_provider,
        address=settings.spot_address,
        resource=settings.spot_resource,
        file=settings.spot_file,
        seconds=settings.spot_seconds,
        patience_seconds=settings.spot_patience_seconds,
    )
    await engine.begun.wait()
    if spot.on:
        await SpotWatch(engine.host, spot, engine.outages).watch_periodically()


async def _watch_prices(engine: Engine, settings: UserSettings) -> None:
    """Keep the prices of the nodes up to date for as long as the engine serves."""
    await engine.begun.wait()
    if not settings.price_source:
        await forget_prices(engine.host)
        return
    prices = PriceSettings(
        source=settings.price_source,
        seconds=settings.price_seconds,
        patience_seconds=settings.price_patience_seconds,
    )
    await PriceWatch(engine.host, prices, engine.outages).watch_periodically()


async def _tidy(engine: Engine, settings: UserSettings) -> None:
    """Delete logs that are older than the setting `keep_logs`, once a day."""
    jobs = engine.host.machine.state.jobs
    await tidy_logs(engine.logs, lambda: jobs, engine.host.clock, settings.keep_logs_seconds)


def _may_be_plain(settings: UserSettings, *, system: bool) -> bool:
    """Return whether jobs may run as plain processes; never in the system engine, since they do not isolate users."""
    return settings.plain_processes and not system


def _of_fleet(setup: ClusterSetup, names: tuple[str, ...], machine: Machine) -> ClusterSetup:
    """Return the set-up of a fleet over these members, whose nodes are as they were last known."""
    nodes = tuple(machine.state.nodes.values())
    rules = fleet_rules([Member(name=name, over_link=True) for name in names], nodes, setup.cluster)
    return replace(setup, nodes=nodes, cluster=rules)


def _fleet_id(folder: Path) -> str:
    """Return the fleet's own id, which its orders carry: made once, and kept in the state folder."""
    file = folder / "fleet-id"
    if not file.exists():
        file.write_text(f"f{secrets.token_hex(3)}\n", encoding="ascii")
    return file.read_text(encoding="ascii").strip()


def _engine(
    machine: Machine,
    journal: SqliteJournal,
    folder: Path,
    places: EnginePaths,
    settings: UserSettings,
    links: Mapping[str, MemberLink],
    *,
    system: bool,
) -> Engine:
    """Build the engine: its host, and an executor whose plans follow the machine's state; of a fleet its members."""
    # not before the last event: the journal's moments never decrease, also when the machine's clock was set back
    clock = SystemClock(machine.state.at)
    hidden = EngineFolders(folder, places.socket.parent)
    plan_for = _plans(machine, hidden, settings, may_be_plain=_may_be_plain(settings, system=system))
    executor_for: Callable[[Observer], ContainerRuntime] = _executors(machine, folder, settings, clock, plan_for)
    members = Members() if links else None
    if members is not None:
        for name, link in links.items():
            members.join_over_link(name, link, _fleet_id(folder), clock)
        executor_for = members.of
    engine = Engine(
        host=Host(machine, journal, executor_for, clock, _host_settings(settings)),
        state_folder=folder,
        socket=places.socket,
        system=system,
        cluster=os.uname().nodename,
        cluster_file=places.cluster_file,
        admin_group=settings.admin_group,
    )
    engine.members = members
    return engine


def _plans(
    machine: Machine, hidden: EngineFolders, settings: UserSettings, *, may_be_plain: bool
) -> Callable[[StartReplica], ContainerPlan]:
    """Return a function that plans the container of a replica, by the machine's state at that time."""

    def plan_for(effect: StartReplica) -> ContainerPlan:
        job = machine.state.jobs[effect.replica.job]
        assert job.attempt is not None
        launch = launch_plan(
            effect.spec,
            effect.submitter,
            machine.state.nodes[effect.allocation.node],
            effect.allocation,
            job.attempt.whole_placement,
            effect.replica,
            job.array,
            job_facts(job, os.uname().nodename),
        )
        bounds = Bounds(
            pids=settings.pids_limit,
            scratch_mib=settings.scratch_mib,
            shared_home=machine.state.cluster.home,
            log_limit_mib=settings.log_limit_mib,
            unfiltered_images=tuple(shlex.split(settings.unfiltered_images)),
        )
        return container_plan(effect, launch, hidden, bounds, rootless=os.geteuid() != 0, may_be_plain=may_be_plain)

    return plan_for


def _executors(
    machine: Machine,
    folder: Path,
    settings: UserSettings,
    clock: SystemClock,
    plan_for: Callable[[StartReplica], ContainerPlan],
) -> Callable[[Observer], ContainerExecutor]:
    """Return a function that opens the executor for an observer. `folder`: the state folder."""

    def workers_of(replica: ReplicaId) -> dict[str, bytes]:
        return world_files(machine.state.jobs[replica.job])

    def facts(effect: StartReplica) -> ScriptFacts:
        return script_facts(machine.state.jobs[effect.replica.job], effect.allocation, os.uname().nodename)

    def executor_for(observer: Observer) -> ContainerExecutor:
        most_bytes = settings.log_limit_mib << 20
        fetcher = Fetcher(rootless=os.geteuid() != 0, podman=settings.podman_containers)
        executor = ContainerExecutor(
            folder,
            plan_for,
            observer,
            workers_of=workers_of,
            # Rules and nodes may change while the engine runs, hence functions of the present state.
            staging_cache=StagingCache(folder, lambda: machine.state.cluster.staging, clock, fetcher),
            scripts=NodeScripts(folder, lambda: machine.state.cluster, facts, most_bytes=most_bytes),
        )
        executor.memory_of = lambda name: machine.state.nodes[name].memory_mib
        executor.prechecks = Prechecks(lambda name: machine.state.nodes[name], folder)
        executor.open()
        return executor

    return executor_for


async def _acquire(places: EnginePaths) -> StateFolder:
    """Lock the state folder, waiting for an engine that is just stopping.

    When two engines are started at once, one serves; the other fails at once instead of waiting until that is stopped.
    """
    deadline = Deadline(LOCK_SECONDS)
    while True:
        try:
            return StateFolder.acquire(places.state_folder)
        except FolderInUse:
            if deadline.over or is_listened_on(places.address):
                raise
        await asyncio.sleep(0.05)


def _setup(cluster_file: Path) -> ClusterSetup:
    """Read cluster.toml, and catalogue.toml beside it, for this machine. Raises `SpecErrors`."""
    machine = probe_machine()
    content = _text(cluster_file)
    setup = read_cluster(machine, content) if content is None else read_cluster(machine, content, str(cluster_file))
    named = cluster_file.with_name("catalogue.toml")
    if (content := _text(named)) is None:
        return setup
    entries = read_catalogue(content, str(named), str(named.parent))
    known = {each.name for each in setup.cluster.projects}
    twice = [each.name for each in entries if isinstance(each, ProjectEntry) and each.name in known]
    if twice:
        raise SpecErrors(
            [f"{named}: projects: {each} is defined in cluster.toml too; keep one of them" for each in twice]
        )
    return replace(setup, catalogue=tuple(entries))


def _text(file: Path) -> str | None:
    """Return the content of a file; None if it does not exist. Raises `SpecErrors`."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecErrors([f"{file}: {why_unreadable(error)}"]) from None


def _host_settings(settings: UserSettings) -> Settings:
    return Settings(
        hold_seconds=settings.hold_window_seconds,
        keep_history_ms=settings.keep_history_seconds * 1000,
        check_invariants=settings.invariants,
        policy=Policy(fraction_fit=settings.fraction_fit),
        alert_pause_ms=settings.alert_per_job_seconds * 1000,
    )
