"""`cockpit jobs`: the job list, once or as it changes."""

from __future__ import annotations

import re
from argparse import ArgumentParser

from cockpit.headless.arguments import UsageError, Verb, known_request
from cockpit.headless.exitcodes import OF_REFUSAL, ExitCode
from cockpit.headless.lists import add_list_options
from cockpit.headless.output import write_rows
from cockpit.headless.services import Call
from cockpit.model.capabilities import Ability
from cockpit.present.folding import fold, own_ids, standing
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED
from cockpit.present.tables.jobs import JOBS as TABLE


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also jobs that have ended")
    parser.add_argument("--fold", action="store_true", help="one row for the tasks of an array, such as 123_[0-9%%2]")
    parser.add_argument(
        "--request",
        type=known_request,
        metavar="ID",
        help="only jobs that this request submitted, also ended ones; says what became of any other request",
    )
    add_list_options(parser)


async def run(call: Call) -> int:
    user = await current_user(call)
    if call.args.watch and call.args.fold:
        raise UsageError("--watch tells of each job; --fold is for the list")
    if call.args.request is not None:
        return await _list_submitted(call, user)
    every = call.backend.capabilities.has(Ability.CLUSTERS)
    if call.args.watch:
        from cockpit.headless.watch import watch_jobs

        await watch_jobs(call, call.context(user=user), several=every)
    else:
        rows = await call.backend.jobs(ended=call.args.all)
        # With a filter, a row for folded tasks would count only those that pass it.
        whole = not call.args.filter
        folding = (lambda chosen: fold(chosen, all_that_live=whole)) if call.args.fold else standing
        # A merged view has ids of its own, by which no other cockpit knows the jobs.
        shown = (lambda chosen: own_ids(folding(chosen))) if every else folding
        write_rows(TABLE, rows, call.args, call.context(user=user), call.streams, shown)
        call.tell_of_silent_clusters()
        # Ended jobs may be missing, and this says why; a merged view says it for each cluster.
        if call.args.all and not every:
            for trouble in (await call.backend.status()).trouble:
                call.streams.say(safe(trouble))
    return ExitCode.OK


async def _list_submitted(call: Call, user: str) -> int:
    """List the jobs of one request, and print on stderr what became of the request."""
    from cockpit.present.requests import outcome_text

    if call.args.watch:
        raise UsageError("--watch tells of every job; --request is for the list")
    request = call.args.request
    outcome = await call.backend.request(request)
    rows = await call.backend.jobs(ended=True) if outcome.jobs else []
    submitted = frozenset(outcome.jobs)
    chosen = [row for row in rows if row.id in submitted]
    shown = fold if call.args.fold else standing
    # A program gets its document also without rows; for people the sentence below says all.
    if chosen or call.args.output != "table":
        write_rows(TABLE, chosen, call.args, call.context(user=user), call.streams, shown)
    text = outcome_text(request, outcome, len(chosen), call.streams.now(), call.streams.zone)
    if text:
        call.streams.say(text)
    if not outcome.known:
        # An answer of its own, for a script that has to know whether to submit again.
        return ExitCode.NOT_FOUND
    return ExitCode.OK if outcome.refusal is None else OF_REFUSAL[outcome.refusal.kind]


async def current_user(call: Call) -> str:
    """Return the user that `user:me` means, from the engine or else this system. Only a filter that needs it asks,
    because a directory service may be slow."""
    text = call.args.filter or ""
    # A saved filter is named in the text, and may contain the word.
    if SAVED in text:
        text = " ".join((text, *call.args.saved_filters(TABLE.name).values()))
    if not re.search(r"\bme\b", text, re.IGNORECASE):
        return ""
    if known := (await call.backend.status()).user:
        return known
    from cockpit.config.places import user_name

    return user_name()


JOBS = Verb(
    arguments,
    run,
    (
        "cockpit jobs",
        "cockpit jobs --filter 'state:failed user:me' --sort -ended_at",
        "cockpit jobs -o json | jq '.rows[] | select(.cards >= 4) | .id'",
        "cockpit jobs --watch --filter state:running",
        "cockpit jobs --fold --sort -priority",
        "cockpit jobs -c all --filter 'user:me'",
        "cockpit jobs --request nightly-2026-11-24",
    ),
)
