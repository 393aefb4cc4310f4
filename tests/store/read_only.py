"""Opens journals as a user who may not write them: `read_only.py FOLDER…`. Prints each refusal on a line."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from cockpit.errors import StoreError
from cockpit.store.statefolder import StateFolder
from tests.store.samples import opened

NOBODY = 65534


def become_ordinary() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


async def open_and_write(folder: Path) -> None:
    async with opened(folder) as journal:
        await journal.probe()


def open_store(folder: Path) -> None:
    asyncio.run(open_and_write(folder))


def make_state_folder(folder: Path) -> None:
    StateFolder.acquire(folder / "state")


def main() -> None:
    become_ordinary()
    for attempt, folder in itertools.product((open_store, make_state_folder), map(Path, sys.argv[1:])):
        try:
            attempt(folder)
        except StoreError as error:
            sys.stdout.write(f"{error}\n")


if __name__ == "__main__":
    main()
