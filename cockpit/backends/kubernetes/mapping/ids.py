"""Numbers of jobs on a cluster that names jobs by namespace and name.

The number follows from the object alone, so that every user and every command sees the same one. Numbers sort by the
time of creation.
"""

from __future__ import annotations

import hashlib

from cockpit.backends.kubernetes.objects.meta import ObjectMeta
from cockpit.model.ids import JobId, named_id

_EPOCH_SECONDS = 1_577_836_800
"""2020-01-01, before which no job of any such cluster was made."""


class JobNumbers:
    """The numbers of the jobs that are listed."""

    def __init__(self) -> None:
        self._by_uid: dict[str, JobId] = {}
        self._uids: dict[JobId, str] = {}

    def number(self, meta: ObjectMeta) -> JobId:
        """Return the number of an object."""
        if (known := self._by_uid.get(meta.uid)) is not None:
            return known
        seconds = max(0, meta.created_at // 1000 - _EPOCH_SECONDS)
        mixed = int.from_bytes(hashlib.blake2b(meta.uid.encode(), digest_size=4).digest(), "big")
        while True:
            job = named_id(seconds, mixed)
            # Two jobs of one second in a million have one number; the one that was listed later gets the next.
            if self._uids.setdefault(job, meta.uid) == meta.uid:
                self._by_uid[meta.uid] = job
                return job
            mixed += 1

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
