"""The row model of the fleet's table: a tree of jobs, their parts on the clusters, and the parts' pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cockpit.present.fleet_tree import FleetLine, Key, fleet_lines, key_of, unfolded_jobs
from cockpit.present.saved import none_saved
from cockpit.present.tables.fleet import FLEET
from cockpit.tui.rows.lists import ListRows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cockpit.model.fleetrow import FleetJobRow, FleetPodRow
    from cockpit.present.columns import Context
    from cockpit.present.saved import Saved


class FleetAnswer(NamedTuple):
    """What was fetched of the fleet."""

    jobs: Sequence[FleetJobRow] = ()
    pods: Sequence[FleetPodRow] = ()
    """Those of the unfolded parts."""
    refusal: str = ""
    """Why the cluster has no such table; empty: it has."""


class FleetRows(ListRows[Key, FleetLine]):
    """Draws the tree of the last answer; what is unfolded stays so while the figures change."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        super().__init__(FLEET, context, saved)
        self._unfolded: set[Key] = set()
        self.answer: FleetAnswer | None = None
        """The last answer; None: none has come."""

    @property
    def with_pods(self) -> set[int]:
        """The jobs whose pods are shown. 0 stands for all that only their cluster knows."""
        return set(unfolded_jobs(self._unfolded))

    def take(self, answer: FleetAnswer) -> tuple[list[Key], bool]:  # type: ignore[override] # lines are made of it here
        """Store an answer; return the keys of changed lines, and whether lines were added, removed or moved."""
        before, order = dict(self._rows), self._order
        self.answer = answer
        self._arrange()
        return [key for key, row in self._rows.items() if before.get(key) != row], self._order != order

    def toggle(self, key: Key) -> bool:
        """Unfold or fold a line; return whether it has anything below."""
        line = self.row(key)
        if line is None or line.is_unfolded is None or self.answer is None:
            return False
        self._unfolded ^= {key}
        self._arrange()
        return True

    def _arrange(self) -> None:
        # The jobs are filtered, not the lines: a pod is shown with its job, and a job over several clusters with that
        # part of it which passes.
        answer = self.answer or FleetAnswer()
        passing = list(self._filter.passing(answer.jobs, self._context()))
        self._rows = {key_of(line): line for line in fleet_lines(passing, answer.pods, self._unfolded)}
        self._order = list(self._rows)
        self._places = {key: place for place, key in enumerate(self._order)}
