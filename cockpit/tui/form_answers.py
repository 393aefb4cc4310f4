"""What the cluster answers about the job in the form: its nodes and names, when the job would start, what would run."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import structs

from cockpit.errors import CockpitError, RequestRefused
from cockpit.headless.surroundings import missing_paths
from cockpit.model.capabilities import Ability
from cockpit.model.image import HOST
from cockpit.present.form.facts import ClusterFacts
from cockpit.present.form.fields import with_named_specs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from cockpit.backends.base import CommandPreview
    from cockpit.model.catalogue import EntryRow
    from cockpit.model.forecast import Outlook
    from cockpit.model.spec import JobSpec
    from cockpit.model.view import NodeRow, QueueRow
    from cockpit.tui.cockpit import Cockpit

T = TypeVar("T")
MOST_JOBS = 20
"""The most jobs whose images are looked up."""


class AnsweredForm(Protocol):
    """The form as its answers see it."""

    @property
    def app(self) -> Cockpit: ...

    def run_worker(self, work: Coroutine[None, None, None], *, group: str, exclusive: bool) -> object:
        """Run this in a task of the form."""

    def draw(self) -> None:
        """Draw all that depends on the answers."""

    def choices_changed(self) -> None:
        """Note that more is known of what the fields may have as values."""

    def refuse(self, no: RequestRefused, spec: JobSpec) -> None:
        """Show why the cluster refuses the job."""


class FormAnswers:
    """The answers about the present job of a form, which draws itself anew after each."""

    def __init__(self, form: AnsweredForm) -> None:
        self._form = form
        self._spec: JobSpec | None = None
        self.outlook: Outlook | None = None
        self.script: CommandPreview | RequestRefused | None = None
        self.missing_files: tuple[str, ...] = ()
        self.nodes: Sequence[NodeRow] | None = None
        """The nodes of the cluster; None: it has not answered yet."""
        self.catalogue: Sequence[EntryRow] = ()
        self.facts = ClusterFacts()
        """What the cluster has, from which the choices of the fields are made."""

    def start_over(self, spec: JobSpec | None) -> None:
        """Forget the answers about the last job; `spec` is the job from now on, None while a field is wrong."""
        self._spec, self.outlook, self.script, self.missing_files = spec, None, None, ()

    def with_named_specs(self, spec: JobSpec) -> JobSpec:
        """Return the spec with the names of the catalogue resolved; the engine does this again on submission."""
        return with_named_specs(spec, (row.entry for row in self.catalogue))

    async def ask_nodes(self) -> None:
        """Ask for the nodes, the catalogue and what else the fields may have as values."""
        backend = self._form.app.backend
        try:
            self.nodes = await backend.nodes()
            if backend.capabilities.has("catalogue"):
                self.catalogue = (await backend.catalogue()).rows
        except CockpitError as error:
            self._form.app.notify(str(error), severity="warning")
        overview = self._form.app.state.overview
        self.facts = ClusterFacts(
            user=self._form.app.state.context().user,
            admin=overview.admin if overview is not None else True,
            now=self._form.app.state.now(),
            nodes=tuple(self.nodes or ()),
            catalogue=tuple(self.catalogue),
            host_image=backend.capabilities.has(Ability.HOST_IMAGE),
            demand=self._form.app.state.demand,
        )
        self._form.choices_changed()
        self._form.draw()
        # What takes a slow cluster longer comes afterwards, each by itself.
        for name, ask in (
            ("rules", backend.rules),
            ("accounts", backend.accounts),
            ("queues", self._ask_queues),
            ("reservations", backend.reservations),
            ("images", self._ask_images),
        ):
            if backend.capabilities.has(name):
                # The field keeps what is typed into it where the cluster does not answer this.
                with suppress(CockpitError):
                    answer = await ask()
                    value = tuple(answer) if isinstance(answer, list) else answer
                    self.facts = structs.replace(self.facts, **{name: value})
                    self._form.choices_changed()

    async def _ask_queues(self) -> tuple[QueueRow, ...]:
        return (await self._form.app.backend.queues()).rows

    async def _ask_images(self) -> Mapping[str, str]:
        """Return the images of the latest jobs, the user's own first, each with the name of a job.

        Only where every job needs an image: elsewhere few have one.
        """
        app = self._form.app
        if self.facts.host_image:
            return {}
        rows = sorted(app.state.job_rows.list.rows(), key=lambda row: (row.user != self.facts.user, -row.submitted_at))
        images: dict[str, str] = {}
        for row in rows[:MOST_JOBS]:
            with suppress(CockpitError):  # a job may be gone by now
                image = (await app.backend.job(row.id)).job.spec.image
                images.setdefault(image, row.name)
        return {image: name for image, name in images.items() if image != HOST}

    def predict_start(self) -> None:
        """Ask when the job would start and what would run, and look for its files."""
        spec = self._spec
        # A wrong field leaves no spec to ask about; `start_over` has dropped the answers already.
        if spec is not None:
            self._form.run_worker(self._ask_start(spec), group="start", exclusive=True)
            if self._form.app.backend.capabilities.has(Ability.LOCAL_FILES):
                _in_thread(lambda: missing_paths(spec), lambda sentences: self._take_missing_files(spec, sentences))

    def _take_missing_files(self, spec: JobSpec, sentences: tuple[str, ...]) -> None:
        # Each answer may be late: the user may have typed on, and it is about another job then. The same check follows
        # every wait.
        if spec is self._spec:
            self.missing_files = sentences
            self._form.draw()

    async def _ask_start(self, spec: JobSpec) -> None:
        """Fetch what would run and when the job would start, or show at its fields why the cluster refuses the job."""
        backend = self._form.app.backend
        try:
            # The script first: it comes at once, while a prediction may take seconds.
            if backend.capabilities.has(Ability.SCRIPTS):
                await self._ask_script(spec)
            (outlook,) = await backend.predict([spec])
        except RequestRefused as no:
            if spec is self._spec:
                self._form.refuse(no, spec)
        except CockpitError as error:
            self._form.app.notify(str(error), severity="warning")
        else:
            if spec is self._spec:
                self.outlook = outlook
                self._form.draw()

    async def _ask_script(self, spec: JobSpec) -> None:
        script: CommandPreview | RequestRefused | None
        try:
            script = await self._form.app.backend.written(self.with_named_specs(spec))
        except RequestRefused as no:
            script = no
        if spec is self._spec:
            self.script = script
            self._form.draw()


def _in_thread(look: Callable[[], T], then: Callable[[T], None]) -> None:
    """Call `look` in a thread and `then` with its result in the event loop.

    On a file system that hangs `look` may never return, so that nothing waits for the thread, not even on quitting.
    """
    # Textual finds the active application by a context variable: `then` draws, and so needs the context of the form.
    loop, context = asyncio.get_running_loop(), copy_context()

    def run() -> None:
        result = look()
        with suppress(RuntimeError):  # the user has quit the cockpit
            loop.call_soon_threadsafe(then, result, context=context)

    # A daemon: Python waits for all other threads at its exit.
    Thread(target=run, name="look", daemon=True).start()
