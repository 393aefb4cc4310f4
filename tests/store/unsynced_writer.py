"""Writes to a journal whose disk refuses to sync, and is killed: `unsynced_writer.py FOLDER REFUSED WRITTEN`.

It appends one event, so that the write-ahead log has begun, REFUSED events durably,
which fails, and then WRITTEN events that wait for no disk. It prints `refused` and the error, then `written`, and kills
itself. The kernel refuses the calls (EIO) by a system call filter.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from pathlib import Path

from cockpit.errors import StoreError
from tests.store.samples import open_journal, submitted

SYNCS = {"x86_64": (74, 75), "aarch64": (82, 83)}
"""The numbers of fsync and fdatasync."""
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_NO_NEW_PRIVILEGES, _SET_MODE_FILTER, _ALL_THREADS = 38, 1, 1
_LOAD_NUMBER, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF_0000, 0x0005_0000


def refuse_syncs() -> None:
    """Let every sync of this process fail from now on."""
    sync, datasync = SYNCS[platform.machine()]
    code = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (_LOAD_NUMBER, 0, 0, 0),
            (_IF_EQUAL, 2, 0, sync),
            (_IF_EQUAL, 1, 0, datasync),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _FAIL | errno.EIO),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(
        _SECCOMP[platform.machine()], _SET_MODE_FILTER, _ALL_THREADS, program
    ):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter")


async def main(folder: Path, refused: int, written: int) -> None:
    journal = await open_journal(folder)
    _, seq = await journal.load()
    await journal.append([submitted(seq + 1)], durable=True)
    refuse_syncs()
    following = [submitted(number) for number in range(seq + 2, seq + 2 + max(refused, written))]
    try:
        await journal.append(following[:refused], durable=True)
    except StoreError as error:
        os.write(1, f"refused {error}\n".encode())
    try:
        if written:
            await journal.append(following[:written], durable=False)
            os.write(1, b"written\n")
    finally:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
