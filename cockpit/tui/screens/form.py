"""The form of a job: it shows errors while the user types, when the job would start and what would run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Input, Label

from cockpit.errors import CockpitError, RequestRefused, SpecErrors
from cockpit.formats.foreign.converting import ConvertedJob, convert_job
from cockpit.model.capabilities import Ability
from cockpit.model.catalogue import EntryKey
from cockpit.present.form.aside import Preview, imported_lines, preview_lines, script_lines, start_line, why_lines
from cockpit.present.form.candidates import Candidates
from cockpit.present.form.choices import is_list
from cockpit.present.form.fields import FIELD_OF, KIND, FormResult, JobForm, about, take_entry
from cockpit.present.form.groups import GROUPS, FieldGroup, group_of, grouped, heading_line
from cockpit.present.form.nodes import room_lines
from cockpit.present.form.spec_offers import models, offers
from cockpit.present.safe import safe
from cockpit.present.spans import ACCENT, MUTED, Line, Span, hung, line
from cockpit.present.tables.catalogue import means_text
from cockpit.present.task_spreading import refusal_lines, spreading_remedies
from cockpit.present.units import counted
from cockpit.tui.field_chooser import FieldChooser
from cockpit.tui.form_answers import FormAnswers
from cockpit.tui.job_files import job_files_in, read_job_file, submission_from_here
from cockpit.tui.screens.dialog import Confirm, Dialog, is_open
from cockpit.tui.screens.pick import Choice, pick
from cockpit.tui.screens.specs import SpecsScreen
from cockpit.tui.widgets.choice_list import ChoiceList
from cockpit.tui.widgets.entry import Field, FieldRow, GroupRow, SafeInput
from cockpit.tui.widgets.lines import Lines, LineView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from textual.app import ComposeResult
    from textual.events import DescendantFocus
    from textual.timer import Timer
    from textual.widget import Widget

    from cockpit.formats.foreign.draft import Submission
    from cockpit.formats.job.file import ReadJobs
    from cockpit.model.job import Submitter
    from cockpit.model.spec import JobSpec
    from cockpit.present.form.choices import FieldChoice
    from cockpit.tui.cockpit import Cockpit

ASK_AFTER_SECONDS = 0.3
"""Seconds after the last key until the cluster is asked when the job would start."""
WIDE = 100
LOW = 32
"""Height of the screen from which on all groups are unfolded at first."""
FIRST_GROUPS = 2
"""Number of groups that are unfolded at first on a lower screen."""
MOST_SAID = 2
"""Height in lines of the text about the focused field."""
UNFOLD_HELP = " Enter shows the fields of this group; F2 hides them again."
LOST = "What was typed is lost."
KEYS = line(
    *(
        Span(text, role)
        for key, what in (
            ("^g", "specs"),
            ("^n", "catalogue"),
            ("^o", "fields"),
            ("^f", "script"),
            ("^t", "preview"),
            ("^e", "editor"),
            ("Esc", "leave"),
        )
        for text, role in ((f" {key} ", ACCENT), (f"{what} ", MUTED))
    )
)


class FormScreen(Dialog[None]):
    """The dialog; it closes when the job is accepted, or the user leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "submit", show=False, priority=True),
        Binding("ctrl+e", "edit", show=False, priority=True),
        Binding("ctrl+o", "add", show=False, priority=True),
        Binding("ctrl+g", "choose_specs", show=False, priority=True),
        Binding("ctrl+n", "take_entry", show=False, priority=True),
        Binding("ctrl+t", "preview", show=False, priority=True),
        Binding("ctrl+f", "take_file", show=False, priority=True),
        Binding("f2", "fold", show=False, priority=True),
        Binding("escape", "leave", show=False),
        Binding("enter", "choose", show=False, priority=True),
        # With priority, as the list of fields would scroll with these keys.
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_aside(1)", show=False, priority=True),
        Binding("pageup", "scroll_aside(-1)", show=False, priority=True),
    ]

    app: Cockpit

    def __init__(
        self,
        heading: str,
        form: JobForm,
        accept: Callable[[JobSpec], Awaitable[None]],
        edit: Callable[[Mapping[str, object]], ConvertedJob | None],
        submitter: Submitter,
        imported: ConvertedJob | None,
        read: ReadJobs,
    ) -> None:
        """Make the dialog. `form`: with the values that it begins with.

        `accept` gives the job to the cluster and returns what was done, in words. `edit` lets the user edit the values
        in an editor; None: nothing was changed. `imported` is the file that the values are from. `read` reads the
        values as a job file.
        """
        super().__init__()
        self._heading, self._accept, self._edit, self._submitter = heading, accept, edit, submitter
        self._imported, self._read = imported, read
        self._form = form
        self._initial_texts = dict(self._form.texts)
        self._result: FormResult = FormResult(None, {}, ())
        self._answers = FormAnswers(self)
        self._chooser = FieldChooser(
            ChoiceList(self.app.state.role_theme),
            lambda path: self._candidates().of(path, self._form, self._spec_so_far()),
            self._show_errors,
        )
        self._shows = Preview.RUNS
        self._field = grouped(form.texts)[0][1][0]
        """The path of the focused field; empty: the heading of a folded group has the focus."""
        self._folded: set[str] = set()
        """The titles of the groups whose fields are hidden."""
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        theme = self.app.state.role_theme
        yield Label(self._heading, id="heading", markup=False)
        with Horizontal(id="parts"):
            yield VerticalScroll(*self._rows(), id="fields", can_focus=False)
            yield LineView(theme, id="aside")
        yield Lines(theme, ground="background", id="about")
        yield Lines(theme, id="verdict")
        yield Lines(theme, id="form-keys")
        yield self._chooser.view

    def _rows(self) -> list[Widget]:
        rows: list[Widget] = []
        for group, paths in grouped(self._form.texts):
            rows.append(GroupRow(group, self.app.state.role_theme))
            rows += [FieldRow(path, self._form.texts[path], self._form.lead(path)) for path in paths]
        return rows

    def on_mount(self) -> None:
        # Enter and the arrows go from field to field; the text beside them is scrolled by keys of the form.
        self.query_one("#aside", LineView).can_focus = False
        self.query_one("#aside", LineView).hang()
        if self.app.size.height < LOW:
            self._folded = {group.title for group in GROUPS[FIRST_GROUPS:]}
        self.query(SafeInput).first().focus()
        self.run_worker(self._answers.ask_nodes(), group="nodes")
        self._judge()

    def on_resize(self) -> None:
        self._chooser.close()
        self.set_class(self.size.width < WIDE, "narrow")
        self.call_after_refresh(self.draw)

    @on(LineView.Resized, "#aside")
    def _aside_resized(self) -> None:
        self.draw()

    # Typing

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        row = event.input.query_ancestor(FieldRow)
        # Textual also reports the text that a new input begins with.
        if self._form.texts.get(row.path) != event.value:
            self._form.texts[row.path] = event.value
            if row.path == KIND and self._form.follow_kind():
                self.run_worker(self._remount_fields(KIND), group="add")
            # Not for a text that was chosen: its list is closed.
            elif row.typed.has_focus:
                self._chooser.filter(row, self.size)
            self._judge()

    # Choosing

    def choices_changed(self) -> None:
        """Mark the fields that have choices now."""
        if is_open(self):
            candidates = self._candidates()
            for row in self.query(FieldRow):
                row.show_choices(exist=candidates.exist_for(row.path))

    def _candidates(self) -> Candidates:
        folder = str(Path.cwd())
        return Candidates(self._answers.facts, lambda form: form.judge(self._read, folder))

    def _spec_so_far(self) -> JobSpec | None:
        return self._result.spec or self._form.readable_spec(self._read, str(Path.cwd()))

    async def action_choose(self) -> None:
        """Take the choice under the cursor; else open the choices of the field, or go to the next field."""
        row = next((each for each in self.query(FieldRow) if each.path == self._field), None)
        if isinstance(self.focused, GroupRow):
            self._fold(self.focused.group, is_folded=False)
            self._focus_group(self.focused.group)
        elif self._chooser.is_open:
            choice = self._chooser.view.current
            if choice is None:
                self._chooser.close()
                self.app.action_focus_next()
            else:
                self._take_choice(choice)
        elif row is not None and self._chooser.open(row, self.size):
            self._show_errors()  # that of this field would be below the list
        else:
            self.app.action_focus_next()

    @on(ChoiceList.Clicked)
    def _choice_clicked(self, event: ChoiceList.Clicked) -> None:
        event.stop()
        self._take_choice(event.choice)

    def _take_choice(self, choice: FieldChoice) -> None:
        taken = self._chooser.take(choice)
        if taken is not None:
            row, text = taken
            row.typed.value = text
            row.typed.action_end()
            if not is_list(row.path):
                self.app.action_focus_next()

    # Groups

    def action_fold(self) -> None:
        """Hide the fields of the group with the focus, or show them."""
        if isinstance(self.focused, GroupRow):
            self._toggle(self.focused.group)
        elif self._field:
            self._toggle(group_of(self._field))

    @on(Lines.Clicked)
    def _group_clicked(self, event: Lines.Clicked) -> None:
        event.stop()
        if isinstance(event.lines, GroupRow):
            self._toggle(event.lines.group)

    def _toggle(self, group: FieldGroup) -> None:
        self._fold(group, is_folded=group.title not in self._folded)
        self._focus_group(group)

    def _fold(self, group: FieldGroup, *, is_folded: bool) -> None:
        self._chooser.close()
        self._folded = self._folded | {group.title} if is_folded else self._folded - {group.title}
        self._show_errors()

    def _focus_group(self, group: FieldGroup) -> None:
        """Focus the group's first field, or its heading while the fields are hidden."""
        if group.title in self._folded:
            next(each for each in self.query(GroupRow) if each.group is group).focus()
        else:
            next(each for each in self.query(FieldRow) if group_of(each.path) is group).typed.focus()

    def action_move(self, step: int) -> None:
        """Move in the open list of choices, else from field to field."""
        if self._chooser.is_open:
            self._chooser.view.move(step)
        elif step > 0:
            self.app.action_focus_next()
        else:
            self.app.action_focus_previous()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        row = next((each for each in event.widget.ancestors if isinstance(each, FieldRow)), None)
        for each in self.query(FieldRow):
            each.set_class(each is row, "current")
        path = row.path if row is not None else ""
        if path != self._field:
            self._chooser.close()
        self._field = path
        self._show_field_help()
        self.call_after_refresh(self._follow_fields)

    def _show_field_help(self) -> None:
        """Show the text about the focused field, as high for each field, so that nothing moves from field to field."""
        lines_by_field = {
            path: hung(line(Span(f" {safe(about(path))}", MUTED)), self.size.width) for path in self._form.texts
        }
        lines = self.query_one("#about", Lines)
        lines.styles.height = min(MOST_SAID, max(map(len, lines_by_field.values())))
        lines.show(lines_by_field.get(self._field, [line(Span(UNFOLD_HELP, MUTED))]))

    def _judge(self) -> None:
        self._show(self._form.read_spec(self._read, str(Path.cwd())))
        # Each letter puts the question off: a prediction is expensive, and half a word asks for something else.
        if self._timer is not None:
            self._timer.stop()
        if self._result.spec is not None:
            self._timer = self.set_timer(ASK_AFTER_SECONDS, self._answers.predict_start)

    def _show(self, judged: FormResult) -> None:
        # The answers were about the last job; what is shown of them would contradict the fields.
        self._result = judged
        self._answers.start_over(judged.spec)
        self._show_errors()
        self.draw()

    def _show_errors(self) -> None:
        """Show each error below its field, except where choices are open below it: the user is not done there."""
        errors = self._result.errors
        for row in self.query(FieldRow):
            row.display = group_of(row.path).title not in self._folded
            row.blame("" if row.path == self._chooser.path else errors.get(row.path, ""))
        texts = dict(grouped(self._form.texts))
        for heading in self.query(GroupRow):
            own = {path: self._form.texts[path] for path in texts.get(heading.group, ())}
            is_folded = heading.group.title in self._folded
            heading.show_heading(heading_line(heading.group, own, errors, is_folded=is_folded), is_folded=is_folded)
        self.call_after_refresh(self._follow_fields)

    def _follow_fields(self) -> None:
        """Follow the fields that errors have moved: the focused one stays visible with its error, as do its choices."""
        row = next((each for each in self.query(FieldRow) if each.path == self._field), None)
        if row is not None and row.path in self._result.errors:
            row.scroll_visible(animate=False, immediate=True)
        self._chooser.place(self.size)

    def refuse(self, no: RequestRefused, spec: JobSpec) -> None:
        """Show why the cluster refuses the job, each sentence at its field."""
        remedies = spreading_remedies(no.refusal, [spec], self._answers.nodes or ())
        self._show(self._form.errors_by_field(refusal_lines(no.refusal, remedies, self.app.state.now())))

    # Actions

    async def action_submit(self) -> None:
        """Give the job to the cluster and close the form; with errors, go to the first field that has one."""
        spec = self._result.spec
        if spec is None:
            self._focus_first_error()
            return
        try:
            await self._accept(spec)
        except RequestRefused as no:
            # The form stays open with all that was typed.
            self.refuse(no, spec)
            self._focus_first_error()
        except CockpitError as error:
            self.app.notify(str(error), severity="error")
        else:
            self.dismiss()

    def _focus_first_error(self) -> None:
        wrong = next((row for row in self.query(FieldRow) if row.path in self._result.errors), None)
        if wrong is not None:
            self._fold(group_of(wrong.path), is_folded=False)
            wrong.typed.focus()

    async def action_edit(self) -> None:
        """Let the user edit the values in $EDITOR, and fill the form with the result."""
        try:
            edited = self._edit(self._form.values())
        except SpecErrors as wrong:
            self.app.notify(str(wrong), severity="warning")
            return
        except CockpitError as error:
            self.app.notify(str(error), severity="error")
            return
        if edited is not None:
            await self._replace_job(edited)

    @work(group="add")
    async def action_add(self) -> None:
        """Let the user choose a field that the form does not show yet, and add it."""
        choices = [Choice(path, self._form.choice(path), about(path)) for path in self._form.absent]
        picked = await pick(self.app, "Another field", choices, verb="puts it into the form")
        if picked is not None:
            await self._remount_fields(self._form.add(picked.id))

    @work(group="add")
    async def action_choose_specs(self) -> None:
        """Let the user choose node specs, and put them into the form."""
        demand = self.app.state.overview.demand if self.app.state.overview is not None else {}
        entries, nodes = [row.entry for row in self._answers.catalogue], self._answers.nodes or ()
        chosen = await self.app.push_screen_wait(
            SpecsScreen(offers(nodes, entries), models(nodes, demand), self.app.state.role_theme)
        )
        if chosen:
            self._form.put_specs([each.values for each in chosen])
            await self._remount_fields(self._form.first_spec)

    @work(group="add")
    async def action_take_entry(self) -> None:
        """Let the user choose a catalogue entry, and put it into its field."""
        rows = {row.entry.key: row for row in self._answers.catalogue if row.entry.kind in FIELD_OF}
        choices = [Choice(key, f"{row.entry.kind} {row.entry.name}", means_text(row)) for key, row in rows.items()]
        if not choices:
            self.app.notify("Nothing has a name in the catalogue yet; :catalogue add gives it one.")
            return
        picked = await pick(self.app, "From the catalogue", choices, verb="puts it into the form")
        if picked is not None:
            path = take_entry(self._form, rows[EntryKey(picked.id)])
            await self._remount_fields(path)

    @on(Field.Pasted)
    def _pasted(self, event: Field.Pasted) -> None:
        event.stop()
        read = partial(convert_job, "what was pasted", event.text, submission=self._here())
        self.run_worker(self._take(event.what, read), group="add")

    @work(group="add")
    async def action_take_file(self) -> None:
        """Let the user choose a job file of the present folder; `:new PATH` reads one of any folder."""
        choices = [Choice(name, name, what) for name, what in job_files_in(Path.cwd())]
        if not choices:
            self.app.notify(f"No file in {Path.cwd()} holds a job; paste one here, or leave and type :new PATH.")
            return
        picked = await pick(self.app, "What you have here", choices, verb="fills the form")
        if picked is not None:
            await self._take(
                picked.id, lambda: read_job_file(Path(picked.id), self.app.options.read_jobs, self._here())
            )

    def _here(self) -> Submission:
        context = self.app.state.context()
        return submission_from_here(context.now, context.zone)

    async def _take(self, what: str, read: Callable[[], ConvertedJob | None]) -> None:
        """Replace the form's values by what `read` returns; ask first where the user has changed some."""
        try:
            job = read()
        except SpecErrors as wrong:
            self.app.notify(str(wrong), severity="warning")
            return
        changed = self._form.texts != self._initial_texts
        if job is None or (changed and not await self.app.push_screen_wait(Confirm(f"Fill in {safe(what)}?", LOST))):
            return
        await self._replace_job(job)

    async def _replace_job(self, job: ConvertedJob) -> None:
        self._imported = job
        self._form = JobForm(job.values, needs_image=self._form.needs_image)
        self._chooser.close()
        await self._remount_fields()

    async def _remount_fields(self, focused: str = "") -> None:
        """Mount the fields again; `focused` is the path of the field that gets the focus, by default the first."""
        fields = self.query_one("#fields", VerticalScroll)
        # All again, as fields appear in the order of a job file, wherever a new one belongs.
        await fields.remove_children()
        await fields.mount(*self._rows())
        rows = list(self.query(FieldRow))
        row = next((row for row in rows if row.path == focused), rows[0])
        self._fold(group_of(row.path), is_folded=False)
        row.typed.focus(scroll_visible=False)
        self.call_after_refresh(row.scroll_visible, animate=False)  # it has no place before
        self.choices_changed()
        # New rows know nothing of the errors in their texts.
        self._judge()

    def action_preview(self) -> None:
        self._shows = self._shows.following
        self.draw()

    def action_scroll_aside(self, pages: int) -> None:
        self.query_one("#aside", LineView).action_pages(pages)

    def action_leave(self) -> None:
        if self._chooser.is_open:
            self._chooser.close()
        elif self._form.texts == self._initial_texts:
            self.dismiss()
        else:
            self.run_worker(self._leave(), group="leave")

    async def _leave(self) -> None:
        if await self.app.push_screen_wait(Confirm("Leave the form?", LOST)):
            self.dismiss()

    # Drawing

    def draw(self) -> None:
        """Draw all that depends on the fields and on the answers."""
        if not is_open(self):
            return
        self._show_field_help()
        self.query_one("#verdict", Lines).show([self._verdict()])
        self.query_one("#form-keys", Lines).show([KEYS])
        aside = self.query_one("#aside", LineView)
        # Before it has a size, its text would be wrapped to a column; it is drawn again as soon as it has one.
        if aside.size.width:
            aside.show(list(self._aside(max(20, aside.size.width - 1))))

    def _verdict(self) -> Line:
        judged = self._result
        if judged.spec is not None:
            return (
                Span(" ^s ", ACCENT),
                Span("submit   ", MUTED),
                *start_line(self._answers.outlook, self.app.state.context()),
            )
        wrong = len(judged.errors) + len(judged.others)
        return line(Span(f" {counted(wrong, 'field is', 'fields are')} wrong", "warning"))

    def _aside(self, columns: int) -> Iterator[Line]:
        """Yield the text beside the fields: source, errors, missing files, reason, nodes with room, preview."""
        if self._imported is not None:
            yield from imported_lines(self._imported, columns)
        for sentence in self._result.others:
            yield line(Span(safe(sentence), "warning"))
        spec = self._result.spec
        if spec is None:
            # What is free does not depend on the fields that are still missing or wrong.
            if (readable := self._spec_so_far()) is not None and self._answers.nodes is not None:
                known = self._answers.with_named_specs(readable)
                yield from room_lines(known, self._answers.nodes, self.app.state.demand, columns)
                yield line()
            yield line(Span("Once every field can be read, this says when it would start and what would run.", MUTED))
            return
        for sentence in self._answers.missing_files:
            yield from hung(line(Span(safe(sentence), "warning")), columns)
        known = self._answers.with_named_specs(spec)
        yield from why_lines(self._answers.outlook, self.app.state.context(), columns)
        nodes = self._answers.nodes
        # A narrow form has the text below its fields, with room for a few lines: there each preview is shown by itself.
        if nodes is not None and (self._shows is Preview.RUNS or not self.has_class("narrow")):
            yield from room_lines(known, nodes, self.app.state.demand, columns)
            yield line()
        if self._shows in {Preview.RUNS, Preview.SBATCH} and self.app.backend.capabilities.has(Ability.SCRIPTS):
            yield from script_lines(self._answers.script, columns)
        else:
            yield from preview_lines(
                self._shows, spec, known, self._submitter, nodes or (), self.app.options.read_jobs, columns
            )
