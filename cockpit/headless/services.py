"""Services that the composition root (`cli`) provides to the verbs, the context of one call of a verb, and how a call
applies one operation to several things."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec

from cockpit.errors import CockpitError, RequestRefused
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.model.capabilities import Ability
from cockpit.present.saved import Saved, none_saved

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.backends.base import Backend, CommandPreview
    from cockpit.headless.play_script import Script
    from cockpit.headless.streams import Streams
    from cockpit.headless.surroundings import EngineControl, Site
    from cockpit.model.ids import JobId, JobRef
    from cockpit.model.requests import RequestIds, RequestOutcome
    from cockpit.model.spec import JobSpec
    from cockpit.present.columns import Context
    from cockpit.present.tables.engine import Finding


STDIN = "-"
"""The file of a command line that means standard input."""


class Services(msgspec.Struct, frozen=True):
    """Functions by which verbs reach clusters, engines and files; each imports what it needs when it is called."""

    connect: Callable[[str | None], Backend]
    """Opens the cluster of this name; None: the default one."""
    engine: Callable[[], EngineControl]
    findings: Callable[[], Sequence[Finding]]
    """Returns the findings of `doctor`."""
    read_jobs: Callable[[str, str, str], list[JobSpec]]
    """Reads jobs: source name, text, absolute folder of its relative paths. Raises `SpecErrors`."""
    site: Callable[[bool], Site]
    """Returns the files of this user's embedded cluster, or (True) of the machine-wide one."""
    use_cluster: Callable[[str], Path]
    """Makes a cluster the default; returns the file that was written."""
    play: Callable[[Script, Path], None]
    """Runs the terminal UI by a script; screenshots go into the folder. Raises `ExpectationFailed`."""
    serve: Callable[[Mapping[str, str | None], bool], int] = lambda _settings, _forced: 0
    """Runs the SSH server with these settings, None: not given, or (True) the one session of an sshd; returns at its
    end with the exit code."""
    reach: Callable[[str | None], Backend | None] = lambda _: None
    """Opens a cluster for completion, within two seconds; None when that would start an engine."""
    clusters: Callable[[], Mapping[str, str]] = dict
    """Returns the names that `-c` knows, each with a description."""
    journal: Callable[[str | None], Sequence[Finding]] = lambda _: ()
    """Returns the findings of `doctor --journal` on a cluster's engine. Raises `StoreError` without a journal."""
    advice: Callable[[str | None], str] = lambda _: ""
    """Returns what to do when this cluster does not answer; empty: there is nothing to add."""
    saved: Callable[[str | None], Saved] = lambda _: none_saved
    """Returns the filters that were saved for a cluster; called only when a filter names one."""


class Call:
    """One run of a verb: its arguments and streams, and the cluster, which is opened when it is first used."""

    def __init__(self, args: Namespace, services: Services, streams: Streams) -> None:
        self.args, self.services, self.streams = args, services, streams
        self._backend: Backend | None = None
        self._ids: RequestIds | None = None
        self._inputs: dict[str, bytes] = {}
        """Contents of the files that the command reads, by what they are, in the order in which they were read."""
        self.outcomes: dict[int, RequestOutcome] = {}
        """Outcomes of changes that this command made before under its `--request-id`, by the number of the change: of
        jobs whose names may since name other jobs, or none."""

    @property
    def backend(self) -> Backend:
        """The cluster. The first use connects to it, which may start the user's engine."""
        if self._backend is None:
            self._backend = self.services.connect(self.args.cluster)
            acts = hasattr(self.args, "request_id")  # a verb that changes something, which would be done
            # Refused before anything is sent: this cluster is not changed by commands that could be shown.
            if acts and self.args.show_commands and (none := self._backend.capabilities.why_not(Ability.COMMANDS)):
                self._refuse(none)
            self._backend.announce(self._print_commands, required=acts and self.args.show_commands)
            # Before the first request, since each change takes its id from there.
            self._identify(self._backend)
        return self._backend

    def _identify(self, backend: Backend) -> None:
        """Give all changes of the command ids that belong together, so that the whole command may be repeated safely.

        They begin with `--request-id`, or with an id made here. Raises `RequestRefused` if `--request-id` is given and
        the cluster remembers none.
        """
        if not hasattr(self.args, "request_id"):
            return
        from cockpit.model.requests import RequestIds

        request = self.args.request_id
        if request is not None and (none_remembered := backend.capabilities.why_not(Ability.REQUEST_IDS)):
            self._refuse(none_remembered)
        # An id is made also without the option: a lost answer can then be looked up.
        self._ids = RequestIds(request or os.urandom(16).hex(), required=request is not None, words=self._words)
        backend.identify(self._ids)

    def read_file(self, file: str) -> bytes:
        """Return the content of a file of the command line, which is read once; `-` is stdin. Raises `OSError`."""
        # A pipe can be read only once, but the content is needed for the request and for the hash of the command.
        if file not in self._inputs:
            from pathlib import Path

            self.note_input(file, self.streams.stdin.read() if file == STDIN else Path(file).read_bytes())
        return self._inputs[file]

    def note_input(self, what: str, content: bytes) -> None:
        """Remember what the command reads: another content makes another command."""
        self._inputs[what] = content

    def _words(self) -> bytes:
        """Return a hash of the command as the user wrote it: words, folder of relative paths, contents of files."""
        from hashlib import blake2b
        from pathlib import Path

        digest = blake2b(digest_size=16)
        # Each part with its length, so that no two commands make the same bytes.
        for part in (*map(os.fsencode, (Path.cwd(), *self.args.typed)), b"", *self._inputs.values()):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        return digest.digest()

    async def earlier_outcome(self) -> RequestOutcome | None:
        """Return the outcome of this very command under its `--request-id`, if it was accepted before.

        None as soon as this run has sent a change, and where one command makes several changes: the first of them says
        nothing about the others.
        """
        # A change of this run is not an earlier one.
        if self._backend is None or self._ids is None or self._ids.used:
            return None
        if self.changes_each_job and len(self.args.jobs) > 1:
            return None
        outcome = await self.outcome_of_change(1)
        return outcome if outcome is not None and outcome.refusal is None else None

    async def outcome_of_change(self, number: int) -> RequestOutcome | None:
        """Return the outcome of this very command's change of this number, counted from 1, if it was made before under
        the same `--request-id`."""
        if getattr(self.args, "request_id", None) is None:
            return None
        backend = self.backend
        assert self._ids is not None
        try:
            if (file := getattr(self.args, "file", None)) is not None:
                self.read_file(file)  # it is part of the command, also where the verb has not come to it yet
            outcome = await backend.request(self._ids.numbered(number))
        # In doubt the command runs, and reports the error itself.
        except (CockpitError, OSError):
            return None
        # Another command under the same id is not a repetition, and is refused when its change is sent.
        return outcome if outcome.known and outcome.words == self._words() else None

    async def was_made_before(self, number: int) -> bool:
        """Whether the change of this number, which this run has not sent, was accepted under the `--request-id`."""
        if self._ids is None or self._ids.count >= number:
            return False
        outcome = await self.outcome_of_change(number)
        return outcome is not None and outcome.refusal is None

    @property
    def changes_its_job(self) -> bool:
        """Whether the verb makes one change, of the job of its argument."""
        return getattr(self.args, "changes_its_job", False)

    @property
    def changes_each_job(self) -> bool:
        """Whether the verb makes one change for each job of its arguments."""
        return getattr(self.args, "changes_each_job", False)

    def begin_change(self, number: int) -> None:
        """Give the next change the request id of this number, although changes before it were not sent."""
        if self._ids is not None:
            self._ids.skip_to(number)

    def _refuse(self, why: str) -> NoReturn:
        from cockpit.errors import RequestRefused
        from cockpit.model.refusal import Refusal, RefusalKind

        raise RequestRefused(Refusal(RefusalKind.INVALID, why))

    async def _print_commands(self, commands: Sequence[CommandPreview]) -> bool:
        """Print the commands that will run, each after a `+`, and return whether to run them.

        With `--show-commands` nothing runs; then the standard input of the commands is printed, too.
        """
        from cockpit.present.command_text import command_lines

        for each in commands:
            for number, text in enumerate(command_lines(each.argv, each.stdin if self.args.show_commands else "")):
                self.streams.say(text if number else f"+ {text}")
        return not self.args.show_commands

    def tell_of_silent_clusters(self) -> None:
        """Print which clusters of a merged view did not answer, since a list lacks what they have."""
        from cockpit.present.safe import safe

        # Without a connection nothing was asked, so nothing can be missing.
        for name, reason in self._backend.silent_members if self._backend is not None else ():
            self.streams.say(f"{safe(name)} does not answer, so what it has is not here: {safe(reason)}")

    def declines(self, question: str) -> bool:
        """Ask the user at a terminal, unless `--yes` is given; return whether the answer is no."""
        # Without a terminal nothing is asked and the command acts: a script has decided already.
        return self.streams.answers and not self.args.yes and not self.streams.confirmed(question)

    async def job_id(self, ref: JobRef) -> JobId:
        """Return the id of the job, or of the array task, that the reference names."""
        # Only a task has to be looked up: the id of a job is in the reference.
        return ref.job if ref.task is None else (await self.backend.job(ref.job, task=ref.task)).job.id

    def context(self, **more: object) -> Context:
        """Return the context for cells and sentences: the present time and the time zone."""
        from cockpit.present.columns import Context

        return Context(now=self.streams.now(), zone=self.streams.zone, **more)  # type: ignore[arg-type]  # of Context

    async def close(self) -> None:
        """Close the connection to the cluster, if there is one; the next use connects again."""
        if self._backend is not None:
            backend, self._backend = self._backend, None
            await backend.close()


Thing = TypeVar("Thing")


async def _answer_again(outcome: RequestOutcome) -> None:
    """Raise `RequestRefused` where the change was refused."""
    if outcome.refusal is not None:
        raise RequestRefused(outcome.refusal)


async def try_each(
    call: Call,
    things: Iterable[Thing],
    act: Callable[[Thing], Awaitable[None]],
    done: str,
    text: Callable[[Thing], str],
) -> int:
    """Apply the operation to each thing. Each success is a line of output: `done` and the thing's `text`. Refusals are
    printed, and the first one decides the exit code. After a missing answer the others are not tried, but named.

    The change of a thing has the thing's number, so that a repeat gives it the same request id, also where a thing
    before it was refused without a change."""
    code: int = ExitCode.OK
    waiting = list(things)
    # By number from the full list: a thing's request id must not depend on the outcome of those before it.
    for number in range(1, len(waiting) + 1):
        thing = waiting.pop(0)
        call.begin_change(number)
        try:
            await (_answer_again(call.outcomes[number]) if number in call.outcomes else act(thing))
        except RequestRefused as refused:
            # The refusal may follow from this command's own earlier run: what it deleted is gone.
            if await call.was_made_before(number):
                call.streams.line(f"{done} {text(thing)}")
                continue
            from cockpit.present.requests import refusal_text  # loads every reason

            call.streams.say(refusal_text(refused.refusal, call.streams.now(), call.streams.zone))
            # The first refusal decides; later ones are printed only.
            code = code or exit_code_of(refused)
        except CockpitError:
            if waiting:
                call.streams.say(f"Not tried, since {text(thing)} was not answered: {', '.join(map(text, waiting))}")
            raise
        else:
            call.streams.line(f"{done} {text(thing)}")
    return code
