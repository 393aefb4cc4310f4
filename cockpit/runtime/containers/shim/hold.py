"""The shim: makes one attempt's container, runs its command, and stays as the holder for as long as it is kept.

`boot.py hold` reads its order from standard input, so that it can be started before it is needed; without one, it
ends. The order is the attempt's folder, and on lines of their own `again` where the holder is gone (reboot, killed) and
the kept files are only to be mounted once more, with nothing run, and `plain` where there is to be no container.

The process that the engine spawns takes the attempt's lock, leaves the machine's namespaces, forks, writes down who
the holder is, lets it go, and ends. The holder is the first process of the container's pid namespace: whatever ends
it ends every process of the container. It stays outside of the container's file system. Where the machine refuses all
this, the shim ends as if it had never been, and another may hold plain processes instead, see `plain`.

The engine speaks to the holder by signals from outside; signals from inside are not listened to.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time

from cockpit.runtime.containers.shim import (
    agentserver,
    job_processes,
    leaving,
    limits,
    linux,
    network,
    program,
    relay,
    syscalls,
    view,
)
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.holder import Holder
from cockpit.runtime.containers.shim.identity import identity_of
from cockpit.runtime.containers.shim.programs import Programs
from cockpit.runtime.containers.shim.sources import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.maker import Maker

LAUNCHED = 0
"""The holder goes on by itself."""
NOTHING_TO_DO = 3
"""Another shim has this attempt, or it had its turn."""
REFUSED = 4
"""This machine refuses containers, and the plan allows plain processes: nothing has been done."""
_NOT_ITS_CONCERN = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
"""A container's first process gets none of these. One among others would end of what its job sends to its parent."""
_READY = 0
"""What the holder-to-be tells; else the number of the error that it met."""


def main() -> int:
    folder, *modes = sys.stdin.read().split("\n")
    return _shim(Attempt(folder), again="again" in modes, plain="plain" in modes) if folder else NOTHING_TO_DO


def _shim(attempt: Attempt, *, again: bool, plain: bool) -> int:
    lock = attempt.take_lock()
    if lock is None or (not again and attempt.read("shim.json") is not None):
        return NOTHING_TO_DO
    os.umask(0o022)
    _redirect_complaints(attempt)
    plan = attempt.plan()
    membership = network.Membership(attempt, plan)
    maker = _maker(attempt, plan, again=again)
    signal.pthread_sigmask(signal.SIG_BLOCK, Holder.SIGNALS)
    try:
        membership.begin()
        if not plain:
            leaving.leave_machine(plan, membership)
        return _launch(attempt, plan, maker, again=again, plain=plain)
    except leaving.Refused as refused:
        if plan.get("may_be_plain") and not again:
            return REFUSED
        why = f"{refused}; `cockpit doctor` says what this machine forbids"
    except OSError as error:
        why = error.strerror or str(error)
    finally:
        membership.end()
    _report_lost(attempt, f"the container could not be made: {why}", again=again)
    return LAUNCHED


def _maker(attempt: Attempt, plan: PlanDict, *, again: bool) -> Maker | None:
    """Of a container of podman's."""
    if not plan.get("podman"):
        return None
    from cockpit.runtime.containers.shim.maker import Maker

    return Maker(attempt, plan, again=again)


def _redirect_complaints(attempt: Attempt) -> None:
    log = os.open(attempt.file("shim.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _launch(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool, plain: bool) -> int:
    """Fork the holder; it starts nothing before it can be found. Raises Refused or OSError where it may not be."""
    waits, lets_go = os.pipe()
    told, tell = os.pipe()
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        for fd in (lets_go, told, proc):
            os.close(fd)
        if _settles(tell, plain=plain) and os.read(waits, 1):
            os.close(waits)
            _hold(attempt, plan, maker, again=again, plain=plain)
        os._exit(0)
    os.close(tell)
    attempt.forget("started.json")
    if not again:
        attempt.forget("beginning.json")
    attempt.write("shim.json", {**identity_of(pid, proc), "remounted": again, "plain": plain})
    try:
        _await_settled(told)
    except (leaving.Refused, OSError):
        attempt.forget("shim.json")
        raise
    if maker is not None:
        maker.begin(pid)
    os.write(lets_go, b".")
    return LAUNCHED


def _settles(tell: int, *, plain: bool) -> bool:
    """In the child, while its identity is written down: what may be refused even now, and the word of it."""
    number = _READY
    try:
        linux.become_subreaper() if plain else leaving.mount_own_proc()
    except OSError as error:
        number = error.errno or errno.EIO
    os.write(tell, bytes([number]))
    os.close(tell)
    return number == _READY


def _await_settled(told: int) -> None:
    number = (os.read(told, 1) or bytes([errno.EIO]))[0]
    os.close(told)
    if number != _READY:
        raise leaving.judged(OSError(number, f"mount proc on /proc: {os.strerror(number)}"))


def _hold(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool, plain: bool) -> None:
    """The holder's life."""
    linux.name_process("cockpit-holder")
    try:
        holder = _make_plain(attempt, plan, again=again) if plain else _make(attempt, plan, maker, again=again)
    except (view.ViewError, SourceError, program.StartError) as error:
        _report_lost(attempt, str(error), again=again)
    except Exception as error:  # noqa: BLE001 - the last one who could tell
        _report_lost(attempt, f"the container could not be made: {error}", again=again)
    else:
        attempt.notify()
        holder.run()


def _make(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool) -> Holder:
    linux.set_hostname(plan["hostname"])
    bounds = limits.make(plan)
    programs = None if again else Programs(plan, bounds, view.opened_by(os.getpid()))
    start = _first_program(attempt, programs) if programs is not None else None
    read_only = view.build(attempt, plan) if maker is None else maker.wait()
    if plan.get("network") and not again:
        agentserver.start(plan, _entry(plan, bounds, view.opened_by(os.getpid())))
        relay.start(plan)
    first = _let_in(attempt, start) if start else None
    attempt.write("started.json", {"limits": _limits_text(plan, bounds, read_only)}, durable=False)
    return Holder(attempt, bounds, job_processes.ContainedProcesses(), programs, first)


def _let_in(attempt: Attempt, start: program.Start) -> int:
    """The mark comes first: without it an engine knows that the command has not begun."""
    attempt.write("beginning.json", {}, durable=False)
    return start.let_in()


def _make_plain(attempt: Attempt, plan: PlanDict, *, again: bool) -> Holder:
    from cockpit.runtime.containers.shim import plain

    signal.pthread_sigmask(signal.SIG_BLOCK, _NOT_ITS_CONCERN)
    plain.lay_out(attempt, plan)
    bounds = limits.make(plan)
    programs = None if again else Programs(plain.outfit(attempt, plan), bounds, program.PLAIN)
    first = _let_in(attempt, _first_program(attempt, programs)) if programs is not None else None
    attempt.write("started.json", {"limits": f"{_limits_text(plan, bounds, [])}; {plain.LACKS}"}, durable=False)
    return Holder(attempt, bounds, job_processes.UncontainedProcesses(plan["cgroup"], os.getpid()), programs, first)


def _limits_text(plan: PlanDict, bounds: limits.Limits, read_only: list[str]) -> str:
    """As a job's page shows it. A plan from before shares of cards were told has nothing to say of them."""
    of_cards = plan.get("card_limits")
    of_network = network.said(plan)
    of_podman = "container of podman's" if plan.get("podman") else ""
    of_calls = "" if plan.get("filtered", True) and syscalls.is_known() else syscalls.UNFILTERED
    of_folders = f"{limits.READ_ONLY}{', '.join(read_only)}" if read_only else ""
    return (
        bounds.text + "".join(f"; {each}" for each in (of_podman, of_cards, of_network, of_calls) if each) + of_folders
    )


def _entry(plan: PlanDict, bounds: limits.Limits, seen: str) -> program.Entry:
    return program.Entry(plan=plan, limits=bounds, view=seen, env=plan["env"])


def _first_program(attempt: Attempt, programs: Programs) -> program.Start:
    attempt.reserve_exit()
    attempt.write_bytes("running", b"", durable=False)
    return programs.start(programs.first)


def _report_lost(attempt: Attempt, sentence: str, *, again: bool) -> None:
    """Nothing runs, and nothing will. A container that was only to be remounted keeps its exit record."""
    if again:
        sys.stderr.write(f"{sentence}\n")
        return
    attempt.write_exit({"lost": sentence})
    while not attempt.notify():
        time.sleep(0.1)
