"""`cockpit catalogue`: the names that job files may use; `staged`: the copies of data and images on this machine."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.headless.arguments import Verb
from cockpit.headless.catalogue_words import ADD as ADD_WORD
from cockpit.headless.catalogue_words import KINDS, Place, done_sentence, entry_named, wanted_change
from cockpit.headless.catalogue_words import REMOVE as REMOVE_WORD
from cockpit.headless.catalogue_words import SET as SET_WORD
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.lists import add_list_options, list_rows
from cockpit.headless.output import add_output_options, is_page, write_rows
from cockpit.headless.services import Call, try_each
from cockpit.model.catalogue import EntryChange
from cockpit.present.safe import safe
from cockpit.present.tables.catalogue import CATALOGUE
from cockpit.present.tables.staged import STAGED as STAGED_TABLE
from cockpit.present.units import counted

if TYPE_CHECKING:
    from cockpit.model.catalogue import AnyEntry, EntryKey, EntryRow


_KIND = f"one of {', '.join(KINDS)}"


async def _rows(call: Call) -> Sequence[EntryRow]:
    rows = (await call.backend.catalogue()).rows
    wanted = getattr(call.args, "kind", None)
    return [row for row in rows if wanted in {None, row.entry.kind}]


def list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=_KIND)
    add_list_options(parser)


def _entry_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=_KIND)
    parser.add_argument("name", metavar="NAME", help="its name; where several projects have one, PROJECT/NAME")


def show_arguments(parser: ArgumentParser) -> None:
    _entry_arguments(parser)
    add_output_options(parser, select=False)


async def run_show(call: Call) -> int:
    row = entry_named(await _rows(call), call.args.kind, call.args.name)
    if is_page(call.args):
        from cockpit.present.tables.catalogue import entry_page

        call.streams.lines(entry_page(row))
    else:
        write_rows(CATALOGUE, [row], call.args, call.context(), call.streams)
    return ExitCode.OK


def _settings_arguments(parser: ArgumentParser) -> None:
    # Before the examples: what may be set differs by kind.
    parser.epilog = f"{_settings_help()}\n\n{parser.epilog}"
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=_KIND)
    parser.add_argument("name", metavar="NAME", help="its name in job files; PROJECT/NAME for that project")
    parser.add_argument("settings", nargs="*", default=[], metavar="SETTING=VALUE", help="see below; empty takes away")


def _settings_help() -> str:
    """Return the settings of each kind of entry."""
    from cockpit.formats.catalogue.file import TABLES

    shared = {"name", "project", "owner", "access", "about"}
    lines = ["settings of every kind: project, owner, access (rw, ro, none: what other members may), about"]
    for kind, table in TABLES.items():
        own = [field.name for field in table.fields if field.name not in shared and not field.alias]
        lines.append(f"  {kind:<10}{', '.join(own)}")
    return "\n".join([*lines, "versions are written versions.v1=PATH; of lists +a adds and -a takes away"])


def _changing(verb: str) -> Callable[[Call], Awaitable[int]]:
    async def run(call: Call) -> int:
        place = Place(str(Path.cwd()), str(Path.home()))
        wanted = wanted_change(verb, call.args, await call.backend.catalogue(), place)
        await call.backend.change_catalogue([wanted])
        call.streams.line(done_sentence(wanted))
        return ExitCode.OK

    return run


def apply_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="as `cockpit catalogue export` writes one, TOML; - is stdin")


async def run_apply(call: Call) -> int:
    """Apply a file; entries that it does not name stay."""
    from cockpit.formats.catalogue.file import read_catalogue
    from cockpit.headless.verbs.submit import read_text

    source, text, folder = read_text(call.args.file, call)
    wanted = read_catalogue(text, source, folder, str(Path.home()))
    # By key: an entry of the file replaces the one of that kind, project and name.
    there = {row.entry.key: row.entry for row in (await call.backend.catalogue()).rows}
    changes = list(_changes(wanted, there))
    if changes:
        await call.backend.change_catalogue(changes)
    call.streams.line(f"applied {counted(len(wanted), 'entry', 'entries')}: {len(changes)} new or changed")
    return ExitCode.OK


def _changes(wanted: Sequence[AnyEntry], there: dict[EntryKey, AnyEntry]) -> Iterator[EntryChange]:
    from msgspec.structs import replace

    for each in wanted:
        before = there.get(each.key)
        # When an entry was filed is no setting, and must not make an equal one differ.
        after = each if before is None else replace(each, filed=before.filed)
        if after != before:
            yield EntryChange(before, after)


def export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=_KIND)


async def run_export(call: Call) -> int:
    from cockpit.formats.catalogue.file import catalogue_text

    # What cluster.toml defines is not the catalogue's, and could not be applied again.
    entries = [row.entry for row in await _rows(call) if not row.of_rules]
    call.streams.write_file(catalogue_text(entries).encode())
    return ExitCode.OK


LIST = Verb(
    list_arguments,
    lambda call: list_rows(call, CATALOGUE, lambda: _rows(call)),
    ("cockpit catalogue", "cockpit catalogue list dataset", "cockpit catalogue list --filter owner:me -o json"),
    mixed=True,
)
SHOW = Verb(show_arguments, run_show, ("cockpit catalogue show dataset corpus",))
ADD = Verb(
    _settings_arguments,
    _changing(ADD_WORD),
    (
        "cockpit catalogue add dataset nlp/corpus path=/data/corpus access=ro",
        "cockpit catalogue add model /bert source=favorite versions.v1=/models/bert/1 access=ro",
        "cockpit catalogue add spec /big cpus=16 memory=128G cards=4 card_models=A100 access=ro",
        "cockpit catalogue add image /torch image=dir:/images/torch card_types=nvidia access=ro",
        "cockpit catalogue add project speech users=ann,bob access=ro",
    ),
    mixed=True,
)
SET = Verb(
    _settings_arguments,
    _changing(SET_WORD),
    (
        "cockpit catalogue set dataset corpus access=rw",
        "cockpit catalogue set model bert versions.v2=/models/bert/2",
        "cockpit catalogue set project speech users=+carol",
    ),
    mixed=True,
)
REMOVE = Verb(_entry_arguments, _changing(REMOVE_WORD), ("cockpit catalogue remove dataset nlp/corpus",))
APPLY = Verb(apply_arguments, run_apply, ("cockpit catalogue apply catalogue.toml",))
EXPORT = Verb(export_arguments, run_export, ("cockpit catalogue export > catalogue.toml",))


def unstage_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("keys", nargs="+", metavar="KEY", help="as the list shows them; no job may use them")


STAGED = Verb(
    add_list_options,
    lambda call: list_rows(call, STAGED_TABLE, call.backend.staged),
    ("cockpit staged", "cockpit staged --filter state:kept -o json"),
)
UNSTAGE = Verb(
    unstage_arguments,
    lambda call: try_each(call, call.args.keys, call.backend.unstage, "removed", safe),
    ("cockpit staged remove 4f2a90c1d3e8",),
)
