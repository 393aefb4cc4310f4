"""Leaves the machine's namespaces: what a container begins with, and what a machine may refuse its engine."""

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
"""By a security module or a filter, by a sysctl's limit (ENOSPC, EUSERS), by a kernel that was built without. Source:
unshare(2), user_namespaces(7)."""


class Refused(Exception):
    """This machine lets its engine make no container, so that trying again is of no use; the text says which call."""


def leave_machine(plan: PlanDict, network: Membership) -> None:
    """The caller is out at once, but for the pid namespace, which its children leave. Raises Refused or OSError."""
    try:
        if plan["rootless"] and not network.join_user_namespace():
            uid, gid = os.geteuid(), os.getegid()
            linux.unshare(linux.CLONE_NEWUSER)
            program.map_ids(0, 0, outside_uid=uid, outside_gid=gid)
        network.join()
        linux.unshare(_NAMESPACES)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    except OSError as error:
        raise judged(error) from None


def mount_own_proc() -> None:
    """By the first process of the new pid namespace. Raises OSError: inside of others' containers, where parts of /proc
    are hidden, the kernel refuses it."""
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV)


def judged(error: OSError) -> Refused | OSError:
    """What an error of these calls means."""
    return Refused(error.strerror) if error.errno in _REFUSALS else error
