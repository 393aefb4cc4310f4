"""The system call filter of everything that runs in a container.

A job has no capabilities, but it would have all of them in a user namespace that it makes. They would not be valid for
the machine, but they would open the parts of the kernel in which most privilege escalations were found. So a job cannot
make or join namespaces, mount, or make other calls that training does not need. The list follows the default profiles
of Docker, Podman and Flatpak. Unlike Docker's it lists the refused calls, so that calls of newer kernels work.

The filter is a classic BPF program (seccomp(2), linux/filter.h), generated here for the machine's processor. For each
architecture that the processor runs, it does this:

1. Refuse x32 calls, and each call of `_REFUSED`.
2. Report `clone3` as missing (ENOSYS). A filter cannot see its flags, and C libraries then use `clone`.
3. Refuse `clone` and `unshare` with namespace flags, `ioctl` calls that type into a terminal, and vsock sockets.
4. Allow everything else.

It is installed last, when the process has given up all privileges, and applies to everything that the program starts.
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
"""Text for a job's page, after the sentence on how its limits are enforced."""

_X86_64, _I386, _AARCH64, _RISCV64 = 0xC000_003E, 0x4000_0003, 0xC000_00B7, 0xC000_00F3
"""AUDIT_ARCH_… of linux/audit.h."""
_X32 = 0x4000_0000
"""The bit in the call numbers of a third ABI of x86-64, which no distribution uses."""

_REFUSED: Mapping[str, tuple[int | None, int | None, int | None]] = {
    # Namespaces and mounts.
    "setns": (308, 346, 268),
    "mount": (165, 21, 40),
    "umount": (None, 22, None),
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
    "kexec_file_load": (320, None, 294),
    "create_module": (174, 127, None),
    "init_module": (175, 128, 105),
    "finit_module": (313, 350, 273),
    "delete_module": (176, 129, 106),
    "reboot": (169, 88, 142),
    "swapon": (167, 87, 224),
    "swapoff": (168, 115, 225),
    "acct": (163, 51, 89),
    "settimeofday": (164, 79, 170),
    "stime": (None, 25, None),
    "clock_settime": (227, 264, 112),
    "clock_settime64": (None, 404, None),
    "iopl": (172, 110, None),
    "ioperm": (173, 101, None),
    "vm86": (None, 166, None),
    "vm86old": (None, 113, None),
    "uselib": (134, 86, None),
    "nfsservctl": (180, 169, 42),
}
"""The number of each call on x86-64, i386 and the architectures with the generic table; None: it does not exist."""
_CLONE, _CLONE3, _UNSHARE = (56, 120, 220), (435, 435, 435), (272, 310, 97)
_IOCTL, _SOCKET = (16, 54, 29), (41, 359, 198)

_NEW_NAMESPACES = 0x7E02_0000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_NEW_TIME_NAMESPACE = 0x80
"""The flag of a new time namespace, for `unshare` alone: for `clone` these bits are the signal."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which insert input into a terminal, as if its user had typed it."""
_AF_VSOCK = 40
"""Socket family that reaches the host of a virtual machine, outside of every network namespace."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN, _JUMP = 0x20, 0x15, 0x35, 0x45, 0x06, 0x05
"""Operation codes of classic BPF (linux/filter.h): load a word, compare it, return, jump."""
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
"""Offsets in struct seccomp_data."""
_ALLOW, _FAIL = 0x7FFF_0000, 0x0005_0000
"""Results of a filter (linux/seccomp.h): SECCOMP_RET_ALLOW, and SECCOMP_RET_ERRNO with the error in its low bits."""

_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277}
_SET_MODE_FILTER = 1
"""SECCOMP_SET_MODE_FILTER, the operation of seccomp(2)."""
_SPEC_ALLOW = 1 << 2
"""SECCOMP_FILTER_FLAG_SPEC_ALLOW. Without it, kernels before 5.16 slow down every filtered program, as a mitigation of
Spectre variant 4."""

_Instruction = tuple[int, int, int, int]
"""Operation, number of instructions to skip if it is true, number to skip if it is false, operand."""


def is_known() -> bool:
    """Return whether there is a filter for this processor."""
    return platform.machine() in _SECCOMP


def install() -> None:
    """Filter the calls of this process and of everything it starts, permanently. Needs no_new_privs.

    Does nothing on a processor without a filter. Raises OSError if the kernel refuses the filter.
    """
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
    """Return the filter for a machine type (`uname -m`), as an array of struct sock_filter."""
    kinds = {"x86_64": ((_X86_64, 0), (_I386, 1)), "aarch64": ((_AARCH64, 2),), "riscv64": ((_RISCV64, 2),)}[machine]
    instructions: list[_Instruction] = [_statement(_LOAD, _ARCHITECTURE_AT)]
    for architecture, column in kinds:
        part = _part(column, has_x32=architecture == _X86_64)
        # A conditional jump reaches 255 instructions at most (8 bits), an unconditional one skips any part.
        instructions += [(_EQUAL, 1, 0, architecture), _statement(_JUMP, len(part)), *part]
    # A call by an ABI that is not in the list above.
    instructions += _fail(errno.ENOSYS)
    return b"".join(struct.pack("=HBBI", *each) for each in instructions)


def _part(column: int, *, has_x32: bool) -> list[_Instruction]:
    """Return the instructions for one architecture. Every path through them ends in a return instruction."""
    instructions: list[_Instruction] = [_statement(_LOAD, _NUMBER_AT)]
    if has_x32:
        # Their numbers begin at this bit, and would pass by the tests of the plain numbers below.
        instructions += [(_AT_LEAST, 0, 1, _X32), *_fail(errno.ENOSYS)]
    for numbers in _REFUSED.values():
        if (number := numbers[column]) is not None:
            instructions += [(_EQUAL, 0, 1, number), *_fail(errno.EPERM)]
    # A filter cannot see the flags of clone3. Where it is missing, C libraries take clone.
    instructions += [(_EQUAL, 0, 1, _CLONE3[column]), *_fail(errno.ENOSYS)]
    instructions += _argument(_CLONE[column], 0, _ANY_BIT, [_NEW_NAMESPACES], errno.EPERM)
    instructions += _argument(_UNSHARE[column], 0, _ANY_BIT, [_NEW_NAMESPACES | _NEW_TIME_NAMESPACE], errno.EPERM)
    instructions += _argument(_IOCTL[column], 1, _EQUAL, _TERMINAL_INPUT, errno.EPERM)
    instructions += _argument(_SOCKET[column], 0, _EQUAL, [_AF_VSOCK], errno.EAFNOSUPPORT)
    return [*instructions, _statement(_RETURN, _ALLOW)]


def _argument(number: int, index: int, test: int, operands: Iterable[int], failure: int) -> list[_Instruction]:
    """Refuse a call if the low 32 bits of one argument pass the test with any of the operands; else allow it."""
    tests = [each for operand in operands for each in ((test, 0, 1, operand), *_fail(failure))]
    instructions = [_statement(_LOAD, _ARGUMENTS_AT + 8 * index), *tests, _statement(_RETURN, _ALLOW)]
    # For another call, the argument is not looked at. The skipped part ends in a return, so the number need not be
    # loaded again.
    return [(_EQUAL, 0, len(instructions), number), *instructions]


def _statement(operation: int, operand: int) -> _Instruction:
    """Return an instruction that compares nothing (BPF_STMT of linux/filter.h)."""
    return (operation, 0, 0, operand)


def _fail(number: int) -> list[_Instruction]:
    return [_statement(_RETURN, _FAIL | number)]
