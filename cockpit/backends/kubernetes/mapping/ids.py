"""Numbers of jobs on a cluster that names jobs by namespace and name.

The number follows from the object alone, so that every user and every command sees the same one. Numbers sort by the
time of creation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.model.ids import JobId, is_named, named_id

NUMBER = "cockpit/job-number"
"""Annotation with the number of a job that was created once more, which keeps it."""
_EPOCH_SECONDS = 1_577_836_800
"""2020-01-01, before which no job of any such cluster was made."""


class JobNumbers:
    """The numbers of the jobs that are listed."""

    def __init__(self, exists: Callable[[str], bool] = lambda _: True) -> None:
        """`exists`: whether there still is an object with this uid."""
        self._exists = exists
        self._by_uid: dict[str, JobId] = {}
        self._uids: dict[JobId, str] = {}

    def number(self, meta: ObjectMeta) -> JobId:
        """Return the number of an object."""
        if (known := self._by_uid.get(meta.uid)) is not None:
            return known
        if (kept := self._kept(meta)) is not None:
            return kept
        seconds = max(0, meta.created_at // 1000 - _EPOCH_SECONDS)
        mixed = int.from_bytes(hashlib.blake2b(meta.uid.encode(), digest_size=4).digest(), "big")
        while True:
            job = named_id(seconds, mixed)
            # Two jobs of one second in a million have one number; the one that was listed later gets the next.
            if self._uids.setdefault(job, meta.uid) == meta.uid:
                self._by_uid[meta.uid] = job
                return job
            mixed += 1

    def _kept(self, meta: ObjectMeta) -> JobId | None:
        """Return the number that the object was created with; None: none, or another object has it."""
        said = meta.annotation(NUMBER)
        number = JobId(int(said)) if said.isascii() and said.isdigit() and len(said) < 20 else JobId(0)
        holder = self._uids.get(number)
        if not is_named(number) or (holder is not None and self._exists(holder)):
            return None
        if holder is not None:
            self._by_uid.pop(holder, None)
        self._uids[number], self._by_uid[meta.uid] = meta.uid, number
        return number

    def known(self, uid: str) -> JobId | None:
        """Return the number that the object with this uid has been given; None: none."""
        return self._by_uid.get(uid)

    def forget_number(self, job: JobId) -> None:
        """Drop the number of an object that is gone."""
        self.forget(self._uids.get(job, ""))

    def forget(self, uid: str) -> None:
        """Drop the number of an object that is gone."""
        if (job := self._by_uid.pop(uid, None)) is not None:
            del self._uids[job]
