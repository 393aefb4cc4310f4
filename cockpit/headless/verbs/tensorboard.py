"""`cockpit tensorboard`: curves over the output folders of a batch's tasks, in a browser of this machine."""

from __future__ import annotations

import os
from argparse import ArgumentParser

from cockpit.headless.arguments import Verb, reference
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.services import Call


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("job", type=reference, metavar="ID", help="the batch; of another job its own output folder")
    parser.add_argument("--stop", action="store_true", help="end the one that was started")


async def run(call: Call) -> int:
    """Print the address of a TensorBoard, and run it until it is stopped."""
    from cockpit.config.boards import board_of
    from cockpit.present.boards import board_name, runs_of

    detail = await call.backend.job(call.args.job.job, task=call.args.job.task)
    board = board_of(board_name(detail), os.environ)
    if call.args.stop:
        call.streams.say("TensorBoard is stopped" if board.stop() else "no TensorBoard of it runs")
        return ExitCode.OK
    call.streams.line(board.start(runs_of(detail)))
    call.streams.hint(f"`cockpit tensorboard {detail.row.id} --stop` ends it; only this machine reaches it.")
    return ExitCode.OK


TENSORBOARD = Verb(arguments, run, ("cockpit tensorboard 4711", "cockpit tensorboard 4711 --stop"))
