"""Opens the choices of a form's field, filters them by what is typed, and writes the chosen one into the field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.present.form.choices import FREE, is_list, matching, wanted, with_choice, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.geometry import Size

    from cockpit.present.form.choices import FieldChoice
    from cockpit.tui.widgets.choice_list import ChoiceList
    from cockpit.tui.widgets.entry import FieldRow


class FieldChooser:
    """The choices of the field with the focus, in a list that lies over the form."""

    def __init__(
        self, view: ChoiceList, choices_of: Callable[[str], Sequence[FieldChoice]], closed: Callable[[], None]
    ) -> None:
        """Make the chooser; `choices_of` returns the choices of the field at a path, `closed` hears of each closing."""
        self.view = view
        self._choices_of = choices_of
        self._closed = closed
        self._row: FieldRow | None = None
        self._choices: Sequence[FieldChoice] = ()

    @property
    def is_open(self) -> bool:
        return self.view.is_open

    @property
    def path(self) -> str:
        """The path of the field whose choices are open; empty: none are."""
        return self._row.path if self._row is not None and self.is_open else ""

    def close(self) -> None:
        if self.is_open:
            self.view.close()
            self._closed()

    def open(self, row: FieldRow, screen: Size) -> bool:
        """Open all choices of the field; return whether it has any."""
        self._row, self._choices = row, self._choices_of(row.path)
        chosen = written(row.path, row.typed.value)
        values = [each.value for each in self._choices]
        # In a list the cursor is on none at first, so that Enter goes on and neither adds nor removes a value.
        here = values.index(chosen[0]) if chosen and chosen[0] in values else 0
        return self._show(self._choices, None if is_list(row.path) else here, screen)

    def filter(self, row: FieldRow, screen: Size) -> None:
        """Open those choices of the field that match what the user has typed; close the list where none does."""
        if row is not self._row or not self.is_open:
            self._row, self._choices = row, self._choices_of(row.path)
        typed = wanted(row.path, row.typed.value, self._choices)
        found = matching(self._choices, typed) if typed else ()
        # Other values are as good in a free field: Enter keeps what is typed unless the user moves onto a choice.
        if not found or not self._show(found, None if row.path in FREE else 0, screen):
            self.close()

    def place(self, screen: Size) -> None:
        """Put the open list to its field, which errors above it may have moved."""
        if self.is_open and self._row is not None and self._row.is_attached:
            self.view.place(self._row.typed.region, screen)

    def take(self, choice: FieldChoice) -> tuple[FieldRow, str] | None:
        """Close the list; return the field and its text with the choice; None: the list was closed already."""
        if self._row is None or not self.is_open:
            return None
        self.close()
        return self._row, with_choice(self._row.path, self._row.typed.value, choice, self._choices)

    def _show(self, choices: Sequence[FieldChoice], cursor: int | None, screen: Size) -> bool:
        if self._row is None or not choices:
            return False
        chosen = written(self._row.path, self._row.typed.value)
        self.view.open(choices, chosen, cursor)
        self.place(screen)
        return True
