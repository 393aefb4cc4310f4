"""Leave the machine's namespaces: the first step of making a container, which a machine may refuse."""

from __future__ import annotations

import errno
import os

from cockpit.runtime.containers.shim import linux, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import PlanDict
    from cockpit.runtime.containers.shim.network import Membership

_NAMESPACES = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
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
        raise judged(error) from None


def mount_own_proc() -> None:
    """Mount a /proc of the new pid namespace; its first process must call this.

    Raises OSError. The kernel refuses it inside of other containers (Docker), in which parts of /proc are hidden.
    """
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)


def judged(error: OSError) -> Refused | OSError:
    """Return `Refused` for an error that means a refusal, else the error itself."""
    return Refused(error.strerror) if error.errno in _REFUSALS else error
