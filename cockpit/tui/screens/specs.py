"""The dialog with node specs, filtered by card model, next to what queued jobs request of each model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from cockpit.present.form.spec_offers import Model, SpecChoice, models_line, offer_cells, with_models
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line
from cockpit.tui.screens.dialog import Dialog
from cockpit.tui.widgets.lines import Lines
from cockpit.tui.widgets.table import Table, TableColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from cockpit.tui.theme import RoleTheme

KEYS = line(
    Span("Node specs", STRONG),
    *(
        Span(text, role)
        for key, what in (("Enter", "takes"), ("Space", "marks alternatives"), ("1–9", "models"))
        for text, role in ((f"   {key}", ACCENT), (f" {what}", MUTED))
    ),
)


class SpecsScreen(Dialog["list[SpecChoice]"]):
    """The dialog; its result is the chosen specs in the order of the list, empty where the user left it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("enter", "choose", show=False),
        *(Binding(str(key), f"model({key})", show=False) for key in range(1, 10)),
    ]

    def __init__(self, offers: Sequence[SpecChoice], models: Sequence[Model], theme: Callable[[], RoleTheme]) -> None:
        super().__init__()
        self._offers, self._models, self._theme = offers, models, theme
        self._chosen: set[str] = set()
        self._rows = _Offers(offers)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._theme, ground="background", id="title")
            yield Lines(self._theme, ground="background", id="models")
            yield Table(self._rows, self._theme)

    def on_mount(self) -> None:
        self.query_one("#title", Lines).show([KEYS])
        self._draw()
        self.query_one(Table).focus()

    def action_model(self, key: int) -> None:
        if key <= len(self._models):
            self._chosen ^= {self._models[key - 1].name}
            self._rows.take(with_models(self._offers, self._chosen))
            self._draw()

    def action_choose(self) -> None:
        # In the order of the offers and not of the marks: it is the order in which the scheduler tries alternatives.
        chosen = self.query_one(Table).chosen()
        self.dismiss([each for each in self._offers if each.id in chosen])

    def action_leave(self) -> None:
        self.dismiss([])

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        event.stop()
        self.action_choose()

    def _draw(self) -> None:
        self.query_one("#models", Lines).show([models_line(self._models, self._chosen)])
        self.query_one(Table).order_changed()


class _Offers:
    """The offered specs as `TableRows` of the dialog's table."""

    def __init__(self, offers: Sequence[SpecChoice]) -> None:
        self.take(offers)

    def take(self, offers: Sequence[SpecChoice]) -> None:
        self._offers = {each.id: each for each in offers}
        self.order: Sequence[str] = list(self._offers)

    def place(self, row_id: str) -> int | None:
        return self.order.index(row_id) if row_id in self._offers else None

    def columns(self, width: int) -> Sequence[TableColumn]:
        fixed = (("CARDS", 20), ("CPUS", 5), ("MEMORY", 7), ("NODES NOW", 19))
        rest = max(0, width - sum(size for _, size in fixed) - 4)
        figures = {"CPUS", "MEMORY"}
        return [
            *(TableColumn(name, size, right=name in figures) for name, size in fixed),
            TableColumn("CATALOGUE", rest),
        ]

    def cells(self, row_id: str, width: int) -> Sequence[Line]:  # noqa: ARG002 - the table's
        return offer_cells(self._offers[row_id])
