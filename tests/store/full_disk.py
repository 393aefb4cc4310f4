"""Fills a real disk of one megabyte under a journal: `full_disk.py FOLDER`, in a mount namespace of its own.

Prints what happened as JSON, for the test that started it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.errors import StoreError
from cockpit.model.requests import KeptAnswer
from tests.store.samples import open_journal, opened, shells

if TYPE_CHECKING:
    from cockpit.store.journal import SqliteJournal


def fill(disk: Path) -> Path:
    """A file that takes every free byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return filler


async def refusals(journal: SqliteJournal, disk: Path) -> list[str]:
    """What each way of writing says."""
    told = []
    for action in (
        lambda: journal.append(shells(4, 1003), durable=True, answer=KeptAnswer("r", b"a")),
        journal.probe,
        lambda: open_journal(disk / "second"),
    ):
        try:
            await action()
        except StoreError as error:
            told.append(str(error))
    return told


async def story(disk: Path) -> dict[str, object]:
    async with opened(disk) as journal:
        await journal.append(shells(1, 3), durable=True)
        filler = fill(disk)
        told = await refusals(journal, disk)
        when_full = [record.seq for record in await journal.events(job=None, after=0, limit=5000)]
        filler.unlink()
        await journal.probe()
        await journal.append(shells(4, 503), durable=True, answer=KeptAnswer("r", b"b"))
        known = await journal.answer("r")
        answer = known.answer if known is not None else b""
        return {"told": told, "when_full": when_full, "answer": answer.decode(), "last": (await journal.load())[1]}


def main() -> None:
    disk = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=True)
    (disk / "second").mkdir()
    json.dump(asyncio.run(story(disk)), sys.stdout)


if __name__ == "__main__":
    main()
