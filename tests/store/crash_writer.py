"""Writes to a journal until it is killed: `crash_writer.py FOLDER`, one life for each line on standard input.

A life begins with `pid N` and tells `ack SEQ` after each durable append; `gone` follows its death. Lives are forks of
one process, so that a round costs milliseconds and not the start of an interpreter.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import traceback
from pathlib import Path

from cockpit.model.ids import Millis
from cockpit.model.requests import KeptAnswer
from tests.store.samples import DAY, T0, open_journal, submitted


def tell(word: str, number: int | str = "") -> None:
    os.write(1, f"{word} {number}\n".encode())


async def write_forever(folder: Path) -> None:
    """Batches of one to five events; each names its size in its request, which is answered in the same transaction."""
    journal = await open_journal(folder, busy_seconds=5)
    state, seq = await journal.load()
    for turn in itertools.count():
        first, size = seq + 1, 1 + (seq + turn) % 5
        seq += size
        request = f"{first}+{size}"
        batch = [submitted(number, at=T0, request=request) for number in range(first, seq + 1)]
        await journal.append(batch, durable=True, answer=KeptAnswer(request, str(seq).encode()))
        tell("ack", seq)
        if turn % 4 == 3:
            state.seq = seq
            await journal.snapshot(state, seq)
        if turn % 8 == 7:
            await journal.archive(Millis(T0 + DAY))


def live(folder: Path) -> None:
    tell("pid", os.getpid())
    try:
        asyncio.run(write_forever(folder))
    except BaseException:  # noqa: BLE001 - it is told, and the life ends
        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            live(Path(sys.argv[1]))
        os.waitpid(child, 0)
        tell("gone")


if __name__ == "__main__":
    main()
