"""The system call filter of everything that runs in a container.

A job has no capability, but in a user namespace of its own it would have all of them: not over the machine, yet over
the parts of the kernel in which most ways to become root were found. So a job cannot make or join namespaces, mount, or
make other calls that no training needs. The list follows the default profiles of Docker, Podman and Flatpak. Unlike
Docker's it lists what is refused, so that programs that use the calls of newer kernels work.

The filter is a classic BPF program (seccomp(2), linux/filter.h), put together here for the processor that runs it. It
is installed last, when the process has given up everything else, and holds for all that the program starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

from cockpit.runtime.containers.shim import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UNFILTERED = "system calls are not filtered"
"""Said behind how the limits of a job are enforced."""

_X86_64, _I386, _AARCH64, _RISCV64 = 0xC000_003E, 0x4000_0003, 0xC000_00B7, 0xC000_00F3
"""AUDIT_ARCH_… of linux/audit.h."""
_X32 = 0x4000_0000
"""The bit in the call numbers of a third ABI of x86-64, which no distribution uses."""

_REFUSED: Mapping[str, tuple[int, int, int]] = {
    # Namespaces and mounts.
    "setns": (308, 346, 268),
    "mount": (165, 21, 40),
    "umount": (-1, 22, -1),
    "umount2": (166, 52, 39),
    "pivot_root": (155, 217, 41),
    "chroot": (161, 61, 51),
    "open_tree": (428, 428, 428),
    "move_mount": (429, 429, 429),
    "fsopen": (430, 430, 430),
    "fsconfig": (431, 431, 431),
    "fsmount": (432, 432, 432),
    "fspick": (433, 433, 433),
    "mount_setattr": (442, 442, 442),
    "open_tree_attr": (467, 467, 467),
    # Keys belong to no container: the kernel keeps them by user alone.
    "add_key": (248, 286, 217),
    "request_key": (249, 287, 218),
    "keyctl": (250, 288, 219),
    # Programs in the kernel, and what looks into it.
    "bpf": (321, 357, 280),
    "perf_event_open": (298, 336, 241),
    "userfaultfd": (323, 374, 282),
    "io_uring_setup": (425, 425, 425),
    "io_uring_enter": (426, 426, 426),
    "io_uring_register": (427, 427, 427),
    "open_by_handle_at": (304, 342, 265),
    "fanotify_init": (300, 338, 262),
    "lookup_dcookie": (212, 253, 18),
    "syslog": (103, 103, 116),
    # The machine itself: each needs a capability besides.
    "kexec_load": (246, 283, 104),
    "kexec_file_load": (320, -1, 294),
    "create_module": (174, 127, -1),
    "init_module": (175, 128, 105),
    "finit_module": (313, 350, 273),
    "delete_module": (176, 129, 106),
    "reboot": (169, 88, 142),
    "swapon": (167, 87, 224),
    "swapoff": (168, 115, 225),
    "acct": (163, 51, 89),
    "settimeofday": (164, 79, 170),
    "stime": (-1, 25, -1),
    "clock_settime": (227, 264, 112),
    "clock_settime64": (-1, 404, -1),
    "iopl": (172, 110, -1),
    "ioperm": (173, 101, -1),
    "vm86": (-1, 166, -1),
    "vm86old": (-1, 113, -1),
    "uselib": (134, 86, -1),
    "nfsservctl": (180, 169, 42),
}
"""The number of each call on x86-64, i386 and the architectures with the generic table; -1: it does not exist there."""
_CLONE, _CLONE3, _UNSHARE = (56, 120, 220), (435, 435, 435), (272, 310, 97)
_IOCTL, _SOCKET = (16, 54, 29), (41, 359, 198)

_NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_NEW_TIME_NAMESPACE = 0x80
"""Of `unshare` alone: for `clone` these bits are the signal."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX type into somebody's terminal."""
_AF_VSOCK = 40
"""Reaches the machine that this one is a guest of, past every network namespace."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x05
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
"""Offsets in struct seccomp_data."""
_ALLOW, _FAIL = 0x7FFF_0000, 0x0005_0000

_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}
_SET_MODE_FILTER = 1
_SPEC_ALLOW = 1 << 2
"""Without it, kernels before 5.16 slow every program under a filter down, against Spectre variant 4."""

_Instruction = tuple[int, int, int, int]
"""Operation, how many instructions to skip where it holds and where not, operand."""


def is_known() -> bool:
    """Whether there is a filter for this processor."""
    return platform.machine() in _SECCOMP


def install() -> None:
    """Filter the calls of this process and all it starts, which can never be undone. Needs no_new_privs. Without a
    filter for this processor, nothing is done. Raises OSError where the kernel does not take it."""
    if not is_known():
        return
    machine = platform.machine()
    code = program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    described = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    try:
        linux.call(_SECCOMP[machine], "seccomp", _SET_MODE_FILTER, _SPEC_ALLOW, described)
    except OSError as error:
        raise OSError(
            error.errno,
            f"this kernel takes no system call filter ({os.strerror(error.errno or 0)}); an administrator can allow "
            "jobs without one: `unfiltered_images` in config.toml",
        ) from None


def program(machine: str) -> bytes:
    """The filter for a machine, as `uname -m` names it, as an array of struct sock_filter."""
    kinds = {"x86_64": ((_X86_64, 0), (_I386, 1)), "aarch64": ((_AARCH64, 2),), "riscv64": ((_RISCV64, 2),)}[machine]
    found: list[_Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE_AT)]
    for architecture, column in kinds:
        part = _part(column, has_x32=architecture == _X86_64)
        found += [(_EQUAL, 1, 0, architecture), (_JUMP, 0, 0, len(part)), *part]
    found += _fail(errno.ENOSYS)
    return b"".join(struct.pack("=HBBI", *each) for each in found)


def _part(column: int, *, has_x32: bool) -> list[_Instruction]:
    """All that is decided for one architecture; each way through it ends in a return."""
    found: list[_Instruction] = [(_LOAD, 0, 0, _NUMBER_AT)]
    if has_x32:
        found += [(_AT_LEAST, 0, 1, _X32), *_fail(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        if numbers[column] >= 0:
            found += [(_EQUAL, 0, 1, numbers[column]), *_fail(errno.EPERM)]
    # A filter cannot see the flags of clone3. Where it is missing, C libraries take clone.
    found += [(_EQUAL, 0, 1, _CLONE3[column]), *_fail(errno.ENOSYS)]
    found += _argument(_CLONE[column], 0, _ANY_BIT, [_NEW_NAMESPACES], errno.EPERM)
    found += _argument(_UNSHARE[column], 0, _ANY_BIT, [_NEW_NAMESPACES | _NEW_TIME_NAMESPACE], errno.EPERM)
    found += _argument(_IOCTL[column], 1, _EQUAL, _TERMINAL_INPUT, errno.EPERM)
    found += _argument(_SOCKET[column], 0, _EQUAL, [_AF_VSOCK], errno.EAFNOSUPPORT)
    return [*found, (_RETURN, 0, 0, _ALLOW)]


def _argument(number: int, index: int, test: int, operands: Iterable[int], failure: int) -> list[_Instruction]:
    """The call is refused where the low half of one argument passes the test with any of these, else allowed."""
    tests = [each for operand in operands for each in ((test, 0, 1, operand), *_fail(failure))]
    found = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index), *tests, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(found), number), *found]


def _fail(number: int) -> list[_Instruction]:
    return [(_RETURN, 0, 0, _FAIL | number)]
