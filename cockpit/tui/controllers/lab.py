"""Controllers of the policy lab: run it with the typed words, and show its page."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from cockpit.headless.arguments import TextAsked, UsageError, parse
from cockpit.headless.verbs.accounting import resolve
from cockpit.model.ids import Millis

if TYPE_CHECKING:
    from argparse import Namespace

    from cockpit.tui.cockpit import Cockpit

ONLY_LOOKS = (
    "lab: here it is about this cluster's past and changes nothing; for a log, another cluster or --apply type "
    "`cockpit lab` in a shell"
)


async def show_lab(app: Cockpit, text: str = "") -> None:
    """Run the lab with the words after `:lab`, and show its page."""
    from cockpit.headless.lab_run import from_cluster, run_lab
    from cockpit.tui.screens.lab import LabPage

    args = _parsed(text)
    now = app.state.now()
    app.notify("Replaying the past; this takes up to half a minute.")
    prepared = await from_cluster(args, app.backend, now, resolve(args.since, now) or Millis(0))
    # In a thread, since a replay computes all the time and the screen must go on.
    report = await asyncio.to_thread(run_lab, prepared)
    app.clear_notifications()
    overview = app.state.overview
    app.push_screen(LabPage(overview.cluster if overview is not None else "", report))


def _parsed(text: str) -> Namespace:
    """Return the arguments of the words. Raises `UsageError`, also for a request for help."""
    try:
        _, args = parse(["lab", *shlex.split(text)])
    except ValueError:
        raise UsageError("lab: a quote is not closed") from None
    except TextAsked as asked:
        raise UsageError(str(asked)) from None
    if args.cluster or args.file or args.apply:
        raise UsageError(ONLY_LOOKS)
    return args
