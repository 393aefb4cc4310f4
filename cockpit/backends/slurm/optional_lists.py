"""Lists that a cluster may do without: accounting, reservations, licences, priorities.

When such a list fails, its last answer stays, and `trouble` has a sentence that says so.
"""

from __future__ import annotations

from cockpit.backends.slurm.list_checks import complete_list
from cockpit.backends.slurm.mapping.cross_checks import CrossCheck
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.calls import Failed, Garbled, Printed
from cockpit.errors import CockpitError


class OptionalLists:
    """Asks for the lists, and notes which of them could not be read."""

    def __init__(self, answers: Answers, seconds: float) -> None:
        """`seconds`: the time limit of one command, since what the screen can do without must not delay it long."""
        self._answers, self._seconds = answers, seconds
        self._absent: dict[str, set[str]] = {}
        """Names that a list leaves out on purpose although other lists have them, by list."""
        self.trouble: dict[str, str] = {}
        """Sentences about lists that could not be read although the cluster answers, by list."""

    async def ask(self, what: str, argv: tuple[str, ...], fresh_seconds: float, means_none: str = "") -> Printed:
        """Run a command so that its failure does not stop everything else.

        When it fails, return its last answer, or an empty one with exit code 1 and what the command complained about,
        and note the error in `trouble`. `means_none`: part of an error that means that there is nothing to report.
        Raises `Garbled` for an incomplete answer when there was none before.
        """
        try:
            printed = await self._answers.ask(argv, fresh_seconds, seconds=self._seconds)
        except CockpitError as error:
            if means_none and isinstance(error, Failed) and means_none in str(error):
                return error.printed
            last = self._answers.last(argv)
            if last is None and isinstance(error, Garbled):
                raise
            older = " Its last answer is shown." if last is not None else ""
            self.trouble[what] = f"{what} is not available at the moment: {error}{older}"
            complaint = error.printed.stderr if isinstance(error, Failed) else ""
            # Exit code 1 marks the empty answer as none: the mappings must not take it for a cluster without such
            # things.
            return last or Printed("", complaint, 1)
        self.trouble.pop(what, None)
        return printed

    async def completed(self, what: str, argv: tuple[str, ...], printed: Printed, check: CrossCheck) -> Printed:
        """Check an answer against other lists, and run the command again if entries are missing.

        Raises `Garbled` when they are still missing.
        """
        # An old answer that stands in for a failed one is not compared: it may lack new names without being cut.
        if printed.code or printed.verified or what in self.trouble:
            return printed
        return await complete_list(self._answers, argv, printed, check, self._absent.setdefault(what, set()))

    async def beside(self, printed: Printed, argv: tuple[str, ...], fresh_seconds: float) -> str:
        """Return the output of a command that names what a list should have; empty if there is no such command."""
        if printed.code or printed.verified:
            return ""
        try:
            return (await self._answers.ask(argv, fresh_seconds, seconds=self._seconds)).stdout
        except CockpitError:
            return ""  # the list itself was answered
