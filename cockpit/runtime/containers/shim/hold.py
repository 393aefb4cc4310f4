"""Make one attempt's container, run its command, and stay as the container's holder: the shim.

`boot.py hold` reads its order from standard input, so that the engine can start it before it is needed. The order is
the attempt's folder, followed by lines with options. `again`: the holder of a held container has died (reboot, killed),
so mount the container's files again and run nothing. `plain`: run plain processes without a container. On an empty
order the shim ends.

The process that the engine spawned (`_shim`, `_launch`):

1. Take the attempt's lock. If another shim holds it, or the command was started before, end.
2. For a job with several replicas, wait for sibling shims that are joining the job's network.
3. Leave the machine's namespaces: user (rootless engines), network, mount, pid, IPC and host name.
4. Fork. The child is the first process of the new pid namespace, and becomes the holder. Whatever ends it ends every
   process of the container.
5. Write `shim.json`, durably: from here on the command is never started a second time. Then let the holder continue,
   and end.

The holder (`_hold`, `_make`):

6. Wait until `shim.json` is written: an engine that dies now can still find the holder.
7. Create the cgroups, and fork the command's process. It waits outside of the container's file system.
8. Build the container's file system (`view.build`).
9. Write `beginning.json`, and let the command start in it. Write `started.json`, and wake the engine.
10. Reap processes, obey the engine's signals, and record the command's end (`Holder.run`).

The holder itself stays outside of the container's file system, whose files the job can change. Signals that come from
inside of the container are ignored. If the machine refuses the namespaces and the plan allows it, the shim undoes
everything and exits with `REFUSED`; the engine then starts another one with `plain`.
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
    limits,
    linux,
    network,
    notices,
    program,
    relay,
    syscalls,
    view,
)
from cockpit.runtime.containers.shim.attempt import Attempt, is_disk_full
from cockpit.runtime.containers.shim.holder import Holder
from cockpit.runtime.containers.shim.identity import identity_of
from cockpit.runtime.containers.shim.programs import Programs
from cockpit.runtime.containers.shim.sources import SourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.maker import Maker
    from cockpit.runtime.containers.shim.network import Membership


_NAMESPACES = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
"""The namespaces of every container; those for users and the network depend on the engine and the job."""
_REFUSALS = frozenset({errno.EPERM, errno.EACCES, errno.ENOSPC, errno.EUSERS, errno.EINVAL, errno.ENOSYS})
"""Errors that mean a refusal: by a security module or a filter, by a sysctl's limit (ENOSPC, EUSERS), or by a kernel
built without namespaces. Source: unshare(2), user_namespaces(7)."""


class Refused(Exception):
    """This machine does not allow the engine to make containers. Trying again is useless. The text names the call."""


def leave_machine(plan: PlanDict, network: Membership) -> None:
    """Move the calling process into new namespaces. The pid namespace applies only to its children.

    Raises Refused or OSError.
    """
    try:
        # The user namespace comes first: without root's rights, only its creator may make the others.
        if plan["rootless"] and not network.join_user_namespace():
            uid, gid = os.geteuid(), os.getegid()
            linux.unshare(linux.CLONE_NEWUSER)
            program.map_ids(0, 0, outside_uid=uid, outside_gid=gid)
        network.join()
        linux.unshare(_NAMESPACES)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)  # mounts from here on stay in this namespace
    except OSError as error:
        raise refusal_or_error(error) from None


def mount_own_proc() -> None:
    """Mount a /proc of the new pid namespace; its first process must call this.

    Raises OSError. The kernel refuses it inside of other containers (Docker), in which parts of /proc are hidden.
    """
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)


def refusal_or_error(error: OSError) -> Refused | OSError:
    """Return `Refused` for an error that means a refusal, else the error itself."""
    return Refused(error.strerror) if error.errno in _REFUSALS else error


LAUNCHED = 0
"""Exit code: the holder continues by itself."""
NOTHING_TO_DO = 3
"""Exit code: another shim has this attempt, or its command was started before."""
REFUSED = 4
"""Exit code: this machine refuses containers, and the plan allows plain processes. Nothing has been done."""
_BLOCKED_IN_PLAIN = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
"""Signals that a holder of plain processes blocks, since its job could end it by signalling its parent. The kernel
protects the first process of a pid namespace from these."""
_READY = 0
"""The byte that the future holder sends when it is ready; any other is the errno of its error."""


def main() -> int:
    folder, *modes = sys.stdin.read().split("\n")
    return _shim(Attempt(folder), again="again" in modes, plain="plain" in modes) if folder else NOTHING_TO_DO


def _shim(attempt: Attempt, *, again: bool, plain: bool) -> int:
    lock = attempt.take_lock()  # 1: never closed, so that it is held as long as this process or the holder lives
    if lock is None or (not again and attempt.read("shim.json") is not None):
        return NOTHING_TO_DO
    # modes below are exact, whatever umask the engine was started with
    os.umask(0o022)
    _redirect_stderr(attempt)
    plan = attempt.plan()
    membership = network.Membership(attempt, plan)
    maker = _maker(attempt, plan, again=again)
    signal.pthread_sigmask(signal.SIG_BLOCK, Holder.SIGNALS)  # before the fork, so that the holder misses none
    try:
        membership.begin()  # 2
        if not plain:
            leave_machine(plan, membership)  # 3
        return _launch(attempt, plan, maker, again=again, plain=plain)
    except Refused as refused:
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
    """Return what makes a podman container; None for other containers."""
    if not plan.get("podman"):
        return None
    # Imported here: most containers do not need it, and every import delays the start of a container.
    from cockpit.runtime.containers.shim.maker import Maker

    return Maker(attempt, plan, again=again)


def _redirect_stderr(attempt: Attempt) -> None:
    log = os.open(attempt.file("shim.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _launch(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool, plain: bool) -> int:
    """Fork the holder, and record it before it starts anything. Raises Refused or OSError if the machine refuses it."""
    # Two pipes: on `go` the parent tells the child to continue, on `ready` the child reports its first system call.
    go_read, go_write = os.pipe()
    ready_read, ready_write = os.pipe()
    # Opened before the child mounts its own /proc: there, pids count from 1. Here the child has its outer pid.
    proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    pid = os.fork()  # 4
    if pid == 0:
        for fd in (go_write, ready_read, proc):
            os.close(fd)
        # 6: if the parent dies before it writes, the read returns nothing, and no command is started.
        if _prepare_child(ready_write, plain=plain) and os.read(go_read, 1):
            os.close(go_read)
            _hold(attempt, plan, maker, again=again, plain=plain)
        os._exit(0)
    os.close(ready_write)
    # With `again` the record is that of the dead holder. Without a record no program may enter, until this holder has
    # written its own. `beginning.json` stays then, since the command has run.
    attempt.forget("started.json")
    if not again:
        attempt.forget("beginning.json")
    attempt.write("shim.json", {**identity_of(pid, proc), "remounted": again, "plain": plain})  # 5
    try:
        _await_child(ready_read)
    except (Refused, OSError):
        attempt.forget("shim.json")  # nothing was started, so another shim may try without a container
        raise
    if maker is not None:
        maker.begin(pid)
    os.write(go_write, b".")
    return LAUNCHED


def _prepare_child(ready_write: int, *, plain: bool) -> bool:
    """Make the child's first system call, which a machine may refuse, and report its errno to the parent.

    The parent writes `shim.json` to the disk meanwhile. Returns whether the call succeeded.
    """
    number = _READY
    try:
        linux.become_subreaper() if plain else mount_own_proc()
    except OSError as error:
        number = error.errno or errno.EIO
    os.write(ready_write, bytes([number]))
    os.close(ready_write)
    return number == _READY


def _await_child(ready_read: int) -> None:
    number = (os.read(ready_read, 1) or bytes([errno.EIO]))[0]
    os.close(ready_read)
    if number != _READY:
        raise refusal_or_error(OSError(number, f"mount proc on /proc: {os.strerror(number)}"))


def _hold(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool, plain: bool) -> None:
    """Make the container and hold it, in the child process. An error becomes the attempt's exit record."""
    linux.name_process("cockpit-holder")
    try:
        holder = _make_plain(attempt, plan, again=again) if plain else _make(attempt, plan, maker, again=again)
    except (view.ViewError, SourceError, program.StartError) as error:
        # If its maker was killed, the command has not begun, and the engine may start the job again.
        _report_lost(attempt, str(error), again=again, unstarted=isinstance(error, view.MakerDied))
    except Exception as error:  # noqa: BLE001 - no other process could report it
        unstarted = is_disk_full(error)
        _report_lost(attempt, f"the container could not be made: {error}", again=again, unstarted=unstarted)
    else:
        attempt.notify()
        holder.run()


def _make(attempt: Attempt, plan: PlanDict, maker: Maker | None, *, again: bool) -> Holder:
    linux.set_hostname(plan["hostname"])
    bounds = limits.make(plan)  # 7
    programs = None if again else Programs(plan, bounds, view.opened_by(os.getpid()))
    # The program is forked first: on cgroup v1 joining its groups takes the kernel as long as the view takes to build.
    start = _first_program(attempt, programs) if programs is not None else None
    read_only = view.build(attempt, plan) if maker is None else maker.wait()  # 8
    # Before the command, which may call other replicas or connect to a forwarded port at once.
    if plan.get("network") and not again:
        agentserver.start(plan, _entry(plan, bounds, view.opened_by(os.getpid())))
        relay.start(plan)
    if not again:
        notices.start(attempt, plan)
    first = _let_in(attempt, start) if start else None  # 9
    # Not durable: no container survives the power cut that could lose the record.
    attempt.write("started.json", {"limits": _limits_text(plan, bounds, read_only)}, durable=False)
    return Holder(attempt, bounds, job_processes.ContainedProcesses(), programs, first)


def _let_in(attempt: Attempt, start: program.Start) -> int:
    """Let the program start, after marking that it may: without the mark, an engine knows that it has not begun."""
    attempt.write("beginning.json", {}, durable=False)
    return start.let_in()


def _make_plain(attempt: Attempt, plan: PlanDict, *, again: bool) -> Holder:
    from cockpit.runtime.containers.shim import plain

    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED_IN_PLAIN)
    plain.lay_out(attempt, plan)
    bounds = limits.make(plan)
    programs = None if again else Programs(plain.outfit(attempt, plan), bounds, program.PLAIN)
    if not again:
        notices.start(attempt, plan, plain=True)
    first = _let_in(attempt, _first_program(attempt, programs)) if programs is not None else None
    attempt.write("started.json", {"limits": f"{_limits_text(plan, bounds, [])}; {plain.LACKS}"}, durable=False)
    return Holder(attempt, bounds, job_processes.UncontainedProcesses(plan["cgroup"], os.getpid()), programs, first)


def _limits_text(plan: PlanDict, bounds: limits.ReplicaLimits, read_only: list[str]) -> str:
    """Return the text on how limits are enforced, for a job's page. Plans of older engines may lack some keys."""
    cards = plan.get("card_limits")
    network_text = network.describe(plan)
    podman = "Podman container" if plan.get("podman") else ""
    calls = "" if plan.get("filtered", True) and syscalls.is_known() else syscalls.UNFILTERED
    folders = f"{limits.READ_ONLY}{', '.join(read_only)}" if read_only else ""
    return bounds.text + "".join(f"; {text}" for text in (podman, cards, network_text, calls) if text) + folders


def _entry(plan: PlanDict, bounds: limits.ReplicaLimits, seen: str) -> program.Entry:
    return program.Entry(plan=plan, limits=bounds, view=seen, env=plan["env"])


def _first_program(attempt: Attempt, programs: Programs) -> program.Start:
    attempt.reserve_exit()
    attempt.write_bytes("running", b"", durable=False)
    return programs.start(programs.first)


def _report_lost(attempt: Attempt, sentence: str, *, again: bool, unstarted: bool = False) -> None:
    """Record that the command was not and will not be started. With `again` the earlier exit record stays.

    `unstarted`: neither the job nor the machine is to blame, so that the engine starts the job again."""
    if again:
        # Only into the log of the shim: how the job ended is recorded already.
        sys.stderr.write(f"{sentence}\n")
        return
    attempt.write_exit({"lost": sentence, "unstarted": True} if unstarted else {"lost": sentence})
    while not attempt.notify():
        time.sleep(0.1)
