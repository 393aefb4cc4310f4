"""`cockpit snapshot`: the cluster as it is now, in a file that the core opens anywhere."""

from __future__ import annotations

import os
from argparse import ArgumentParser

from cockpit.errors import SpecErrors
from cockpit.headless.arguments import Verb
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call
from cockpit.present.safe import safe


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="where to write it; - for stdout")


async def run(call: Call) -> int:
    """Write the snapshot, readable by its owner alone since it names all users' jobs."""
    from cockpit.formats.snapshotfile import write_snapshot

    text = write_snapshot(await call.backend.snapshot())
    if call.args.file == "-":
        call.streams.write(text.encode())
        return ExitCode.OK
    try:
        _write(call.args.file, text.encode())
    except OSError as error:
        raise SpecErrors([f"{safe(call.args.file)}: cannot be written: {error.strerror}"]) from None
    call.streams.line(f"wrote {safe(call.args.file)}; open it with `cockpit -c snapshot:{safe(call.args.file)}`")
    return ExitCode.OK


def _write(file: str, text: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(text)


SNAPSHOT = Verb(arguments, run, ("cockpit snapshot cluster.json", "cockpit snapshot - | xz > cluster.json.xz"))
