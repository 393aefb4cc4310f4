"""Accounts and their users: the columns of the tree for every output, how it folds, and the panel about a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isinf
from typing import Final

from cockpit.formats.slurm.sacctmgr import limit_words, shares_text
from cockpit.model.accounting import Spending
from cockpit.model.accounts import AssocKey
from cockpit.model.view import AccountRow
from cockpit.present.accounting import card_hours
from cockpit.present.bars import bar
from cockpit.present.columns import NOTHING, Cell, Column, Context, TableView, ValueKind
from cockpit.present.filters import compile_filter
from cockpit.present.safe import safe
from cockpit.present.saved import Saved, none_saved
from cockpit.present.spans import INDENT, MUTED, STRONG, Line, Span, line
from cockpit.present.units import grouped

BAR_COLUMNS = 8
OPEN, FOLDED = "▾ ", "▸ "


def level_fs(row: AccountRow, _: Context) -> float | None:
    """Return the level fair share; None where it is infinite, as nothing was used: JSON has no infinity."""
    return None if row.level_fs is None or isinf(row.level_fs) else round(row.level_fs, 6)


def _name_cell(row: AccountRow, tree: AccountTree) -> Line:
    each = row.association
    blanks = INDENT * row.depth
    if each.user:
        where = (Span(f" in {safe(each.partition)}", MUTED),) if each.partition else ()
        return (Span(f"{blanks}{INDENT}"), Span(safe(each.user)), *where)
    # Accounts without anything below have blanks in place of a sign that does nothing.
    sign = "" if not tree.is_parent(each.key) else FOLDED if tree.is_folded(each.key) else OPEN
    return line(blanks, Span(sign or INDENT, MUTED), Span(safe(each.account), STRONG))


def _shares_cell(row: AccountRow, _: AccountTree) -> Line:
    # Root has no siblings with whom it could share.
    return line(Span(NOTHING, MUTED) if not row.depth else shares_text(row.association))


def _usage_cell(row: AccountRow, _: AccountTree) -> Line:
    """Return the cell with the association's part of all usage, as percentage and bar."""
    role = "tight" if is_over(row) else "running"
    return (Span(f"{percent(row.norm_usage):>5} "), *bar(row.norm_usage, BAR_COLUMNS, role))


def percent(part: float) -> str:
    """Return a part as a percentage: `41%`; `<1%` for a small part above 0."""
    return "<1%" if 0 < part < 0.005 else f"{part:.0%}"


def is_over(row: AccountRow) -> bool:
    """Return whether the association used more than its share; false for root."""
    # The root uses everything and has no share beside it.
    return row.effective_usage > row.norm_shares and row.depth > 0


def _card_hours_cell(row: AccountRow, tree: AccountTree) -> Line:
    held = tree.held(row.association.key)
    return line(grouped(card_hours(held)) if held else Span(NOTHING, MUTED))


def _level_cell(row: AccountRow, _: AccountTree) -> Line:
    if row.level_fs is None:
        return line(Span(NOTHING, MUTED))
    return line(Span(f"{row.level_fs:.3g}", "tight" if row.level_fs < 1 else "text"))


def _fair_share_cell(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(NOTHING, MUTED) if row.fair_share is None else f"{row.fair_share:.3f}")


def _qos_cell(row: AccountRow, _: AccountTree) -> Line:
    return line(Span(safe(", ".join(row.association.qos)) or "as above", MUTED))


# Names and figures are those of sacctmgr and sshare, for users who know these.
ACCOUNTS: Final = TableView(
    name="accounts",
    identity=("account", "user", "partition"),
    key=lambda row: row.association.key,
    help="Accounts and their users as a tree, with shares, limits and what they use",
    empty="No accounts. One is added by: cockpit accounts add vision --shares 60",
    columns=(
        Column(
            "account",
            "ACCOUNT",
            "The account",
            field="association.account",
            words=lambda row, _: f"{INDENT * row.depth}{safe(row.association.account)}",
            cell=Cell(20, _name_cell, title="ACCOUNT · USER", grows=1, most=30),
        ),
        Column("user", "USER", "The user; empty: the account itself", field="association.user"),
        Column("partition", "PARTITION", "Only there; empty: everywhere", field="association.partition", spare=True),
        # A number or the word `parent`: text, as sacctmgr shows it.
        Column(
            "shares",
            "SHARES",
            "Fairshare beside its siblings'; parent: the account's",
            derive=lambda row, _: shares_text(row.association),
            cell=Cell(6, _shares_cell, right=True),
        ),
        Column(
            "used",
            "USED",
            "Decayed billing-seconds, sshare's RawUsage",
            ValueKind.INTEGER,
            # RawUsage is whole in sshare as well.
            derive=lambda row, _: round(row.used),
        ),
        Column(
            "fair_share",
            "FAIR SHARE",
            "The factor of its users' jobs; none where priorities are not counted",
            ValueKind.NUMBER,
            derive=lambda row, _: None if row.fair_share is None else round(row.fair_share, 6),
            nullable=True,
            cell=Cell(5, _fair_share_cell, title="FAIR"),
        ),
        Column(
            "running",
            "RUNNING",
            "Jobs that run",
            ValueKind.INTEGER,
            cell=Cell(
                4,
                lambda row, _: line(Span(str(row.running), "running" if row.running else MUTED)),
                title="RUN",
                need=90,
            ),
        ),
        Column(
            "queued",
            "QUEUED",
            "Jobs that wait",
            ValueKind.INTEGER,
            cell=Cell(
                4, lambda row, _: line(Span(str(row.queued), "queued" if row.queued else MUTED)), title="WAIT", need=90
            ),
        ),
        Column(
            "qos",
            "QOS",
            "QOS that may be used; none: those of the account above",
            ValueKind.WORDS,
            field="association.qos",
            cell=Cell(14, _qos_cell, grows=1, most=30, need=120),
        ),
        Column(
            "limits",
            "LIMITS",
            "Bounds by sacctmgr's names",
            ValueKind.WORDS,
            derive=lambda row, _: limit_words(row.association.limits),
            cell=Cell(12, lambda row, _: line(safe(" ".join(limit_words(row.association.limits)))), grows=5),
        ),
        Column(
            "default_qos",
            "DEFAULT QOS",
            "Of a job that names none",
            field="association.default_qos",
            wide=True,
            cell=Cell(
                8,
                lambda row, _: line(Span(safe(row.association.default_qos) or NOTHING, MUTED)),
                title="DEFAULT",
                need=150,
                after="qos",
            ),
        ),
        Column(
            "default",
            "DEFAULT",
            "Whether it is the user's default account",
            field="association.default",
            words=lambda row, _: "yes" if row.association.default else "–",
            schema={"type": "boolean"},
            wide=True,
        ),
        Column(
            "norm_shares",
            "NORM SHARES",
            "Its part of its siblings' shares; without Fair Tree: of all",
            ValueKind.NUMBER,
            derive=lambda row, _: round(row.norm_shares, 6),
            wide=True,
            cell=Cell(
                5, lambda row, _: line(Span(percent(row.norm_shares), MUTED)), title="NORM", need=100, after="shares"
            ),
        ),
        Column(
            "norm_usage",
            "NORM USAGE",
            "Its part of all usage",
            ValueKind.NUMBER,
            derive=lambda row, _: round(row.norm_usage, 6),
            wide=True,
            cell=Cell(6 + BAR_COLUMNS, _usage_cell, title="USAGE", right=False, after="norm_shares"),
        ),
        Column(
            "effective_usage",
            "EFFECTIVE",
            "What fair share goes by; with Fair Tree its part of the account's usage",
            ValueKind.NUMBER,
            derive=lambda row, _: round(row.effective_usage, 6),
            wide=True,
        ),
        Column(
            "level_fs",
            "LEVEL FS",
            "Norm shares by effective usage: below 1 it used more than its share; none: nothing used, or no Fair Tree",
            ValueKind.NUMBER,
            derive=level_fs,
            words=lambda row, _: NOTHING if row.level_fs is None else f"{row.level_fs:.4g}",
            nullable=True,
            wide=True,
            cell=Cell(7, _level_cell, title="LEVELFS", after="norm_usage"),
        ),
        Column("parent", "PARENT", "The account above", field="association.parent", wide=True),
        Column(
            "priority",
            "PRIORITY",
            "Its own, for the factor assoc; none: that of the account above",
            ValueKind.INTEGER,
            field="association.priority",
            nullable=True,
            wide=True,
        ),
        Column(
            "coordinators",
            "COORDINATORS",
            "Coordinators: users who administer the accounts below it",
            ValueKind.WORDS,
            field="association.coordinators",
            wide=True,
        ),
    ),
    # From another question than the tree, `spending`: commands have `cockpit accounting hours` for it.
    screen_only=(
        Column(
            "card_hours",
            "CARD-HOURS",
            "Card-hours of its jobs in the last days",
            ValueKind.NUMBER,
            cell=Cell(10, _card_hours_cell, need=130, after="norm_usage"),
        ),
    ),
)


class AccountTree:
    """Account rows by association key, parents before their children. While a filter is set, the accounts above a
    matching row are shown too, and nothing is folded."""

    def __init__(self, context: Callable[[], Context], saved: Saved = none_saved) -> None:
        self._context = context
        self._saved = saved
        self._rows: dict[AssocKey, AccountRow] = {}
        self._above: dict[AssocKey, tuple[AssocKey, ...]] = {}
        """Keys of the accounts above each row, root first."""
        self._parents: frozenset[AssocKey] = frozenset()
        self._folded: set[AssocKey] = set()
        self._filter_text = ""
        self._filter = compile_filter("", ACCOUNTS)
        self._held_use: dict[AssocKey, int] = {}
        self.days = 0
        """Number of days over which `held` sums; 0: no usage is known yet."""
        self._order: list[AssocKey] = []
        self._places: dict[AssocKey, int] = {}

    def take(self, rows: Sequence[AccountRow]) -> tuple[list[AssocKey], bool]:
        """Replace the rows; return the keys of those that differ from the last ones, and whether the order has
        changed."""
        fresh = {row.association.key: row for row in rows}
        changed = [key for key, row in fresh.items() if self._rows.get(key) != row]
        self._rows, self._above = fresh, dict(_chains(rows))
        self._parents = frozenset(chain[-1] for chain in self._above.values() if chain)
        # An account that lost all below it would stay folded for what comes later.
        self._folded &= self._parents
        before = self._order
        self._arrange()
        return changed, self._order != before

    def spend(self, spending: Spending) -> None:
        """Take over the usage of recent days, for `held`."""
        self.days = len(spending.stretches)
        self._held_use = {}
        # Reversed, so that of several associations of a user, one for each partition, the first one counts.
        own = {(row.association.account, row.association.user): key for key, row in reversed(self._rows.items())}
        # What a user held counts for the user, for the account, and for all accounts above it.
        for each in (each for stretch in spending.stretches for each in stretch):
            account, user = own.get((each.account, "")), own.get((each.account, each.user)) if each.user else None
            above = self._above.get(account, ()) if account is not None else ()
            for key in (*above, account, user):
                if key is not None:
                    self._held_use[key] = self._held_use.get(key, 0) + each.card_milli_ms

    def held(self, key: AssocKey) -> int:
        """Return what the association and those below it held, in thousandths of a card × milliseconds."""
        return self._held_use.get(key, 0)

    def filter_by(self, text: str) -> None:
        """Set the filter. Raises `FilterError`; then nothing has changed."""
        self._filter = compile_filter(text, ACCOUNTS, saved=self._saved)
        self._filter_text = text
        self._arrange()

    def fold(self, key: AssocKey) -> bool:
        """Fold or unfold an account; False: there is nothing below it."""
        if key not in self._parents:
            return False
        self._folded ^= {key}
        self._arrange()
        return True

    def fold_all(self) -> None:
        """Fold everything below the accounts right under root, or unfold everything where anything is folded."""
        below_root = {key for key in self._parents if self._above[key]}
        self._folded = set() if self._folded else below_root
        self._arrange()

    @property
    def order(self) -> Sequence[AssocKey]:
        return self._order

    def place(self, key: AssocKey) -> int | None:
        """Return the row's place in `order`; None when it no longer exists, or is folded or filtered out."""
        return self._places.get(key)

    def row(self, key: AssocKey) -> AccountRow | None:
        return self._rows.get(key)

    def rows(self) -> Sequence[AccountRow]:
        """All rows, hidden ones included."""
        return list(self._rows.values())

    def above(self, key: AssocKey) -> Sequence[AssocKey]:
        """Return the keys of the accounts above a row, root first."""
        return self._above.get(key, ())

    def is_parent(self, key: AssocKey) -> bool:
        return key in self._parents

    def is_folded(self, key: AssocKey) -> bool:
        return key in self._folded and not self._filter_text

    @property
    def only_root(self) -> bool:
        """Return whether the tree has only root and its users, as no account was added yet."""
        return all(row.association.account == "root" for row in self._rows.values())

    def _arrange(self) -> None:
        self._order = list(self._visible_keys())
        self._places = {key: place for place, key in enumerate(self._order)}

    def _visible_keys(self) -> Iterator[AssocKey]:
        if self._filter_text:
            passing = [row.association.key for row in self._filter.passing(self._rows.values(), self._context())]
            # A row without the accounts above it would not be a tree.
            wanted = {*passing, *(above for key in passing for above in self._above[key])}
            return (key for key in self._rows if key in wanted)
        return (key for key in self._rows if self._folded.isdisjoint(self._above[key]))


def _chains(rows: Sequence[AccountRow]) -> Iterator[tuple[AssocKey, tuple[AssocKey, ...]]]:
    """Yield each row's key with the keys of the accounts above it. `rows` are in the order of the tree."""
    chain: list[AssocKey] = []
    for row in rows:
        # A row of depth n is below the last n rows that were opened: what is deeper in the chain has ended.
        del chain[row.depth :]
        yield row.association.key, tuple(chain)
        chain.append(row.association.key)
