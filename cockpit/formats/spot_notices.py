"""Reads the notices by which providers announce that they take a spot machine back, as their documentation has them.

- AWS: `/latest/meta-data/spot/instance-action`, `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`; else 404.
- Google Cloud: `/computeMetadata/v1/instance/preempted`, `TRUE` or `FALSE`.
- Azure: `/metadata/scheduledevents`, a document with events, of which `Preempt` is meant; it names the machines.
- Alibaba Cloud: `/latest/meta-data/instance/spot/termination-time`, `2015-01-05T18:02:00Z`; else 404.
- A watched file has a line for each node: `n07 300` or `n07 2026-11-28T08:00:00Z`; `*` stands for every spot node.

AWS, Google Cloud and Alibaba Cloud speak of the machine whose address it is; its own id or name has an address too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import msgspec

from cockpit.model.ids import Millis
from cockpit.model.outside import Provider

EVERY_NODE: Final = "*"
_LATEST: Final = 253_000_000_000_000
"""The last moment that is read, in the year 9987: later ones cannot be shown in every time zone."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider's notice is asked for."""

    address: str
    """The base address that its machines have."""
    path: str
    headers: Mapping[str, str] = MappingProxyType({})
    token_path: str = ""
    """Where a token is made by PUT; empty: none is needed."""
    token_lifetime_header: str = ""
    token_header: str = ""
    token_first: bool = False
    """Whether a token is always needed; False: only where a request without it is refused (hardened mode)."""
    instance_path: str = ""
    """Where the machine's own id or name is; empty: the notices have it."""


TOKEN_SECONDS: Final = 21_600
"""The lifetime that is asked for a token: the longest that AWS and Alibaba Cloud permit."""

SOURCES: Final[Mapping[Provider, Source]] = MappingProxyType(
    {
        Provider.AWS: Source(
            address="http://169.254.169.254",
            path="/latest/meta-data/spot/instance-action",
            token_path="/latest/api/token",  # noqa: S106 - a path
            token_lifetime_header="X-aws-ec2-metadata-token-ttl-seconds",  # noqa: S106 - a header
            token_header="X-aws-ec2-metadata-token",  # noqa: S106 - a header
            token_first=True,
            instance_path="/latest/meta-data/instance-id",
        ),
        Provider.GCP: Source(
            address="http://metadata.google.internal",
            path="/computeMetadata/v1/instance/preempted",
            headers=MappingProxyType({"Metadata-Flavor": "Google"}),
            instance_path="/computeMetadata/v1/instance/name",
        ),
        Provider.AZURE: Source(
            address="http://169.254.169.254",
            path="/metadata/scheduledevents?api-version=2020-07-01",
            headers=MappingProxyType({"Metadata": "true"}),
        ),
        Provider.ALIBABA: Source(
            address="http://100.100.100.200",
            path="/latest/meta-data/instance/spot/termination-time",
            token_path="/latest/api/token",  # noqa: S106 - a path
            token_lifetime_header="X-aliyun-ecs-metadata-token-ttl-seconds",  # noqa: S106 - a header
            token_header="X-aliyun-ecs-metadata-token",  # noqa: S106 - a header
            instance_path="/latest/meta-data/instance-id",
        ),
    }
)


class Notice(msgspec.Struct, frozen=True):
    """A notice that machines are taken back."""

    gone_at: Millis | None
    """When it is gone; None: the provider gives no time."""
    names: tuple[str, ...] = ()
    """The machines that are meant, by their ids or names at their provider or by the names of their nodes; empty: the
    one that was asked."""


class NotANotice(ValueError):
    """An answer that is not of the provider's documented form; the text is its beginning."""


def read_notices(provider: Provider, text: str) -> tuple[Notice, ...]:
    """Return the notices in an answer with status 200; none: the machine stays. Raises `NotANotice`."""
    try:
        return _READERS[provider](text)
    except (ValueError, TypeError, KeyError, AttributeError, msgspec.DecodeError):
        raise NotANotice(text[:80]) from None


def _of_aws(text: str) -> tuple[Notice, ...]:
    fields = msgspec.json.decode(text, type=dict[str, str])
    # a machine that is stopped or hibernated takes its jobs with it as one that is terminated does
    return (Notice(_moment(fields["time"])),) if fields["action"] in {"terminate", "stop", "hibernate"} else ()


def _of_gcp(text: str) -> tuple[Notice, ...]:
    return {"TRUE": (Notice(None),), "FALSE": ()}[text.strip().upper()]


class _AzureEvent(msgspec.Struct, frozen=True, rename="pascal"):
    event_type: str
    resources: tuple[str, ...] = ()
    not_before: str = ""
    """Empty: the event has begun."""


class _AzureDocument(msgspec.Struct, frozen=True, rename="pascal"):
    events: tuple[_AzureEvent, ...]


def _of_azure(text: str) -> tuple[Notice, ...]:
    from email.utils import parsedate_to_datetime  # slow to load, and only Azure writes such times

    events = msgspec.json.decode(text, type=_AzureDocument).events
    meant = [each for each in events if each.event_type == "Preempt"]
    moments = [_millis(parsedate_to_datetime(each.not_before)) if each.not_before else None for each in meant]
    notices = [Notice(moment, each.resources) for moment, each in zip(moments, meant, strict=True)]
    # the earliest first; one that has begun comes before all that have a time
    return tuple(sorted(notices, key=lambda each: each.gone_at or 0))


def _of_alibaba(text: str) -> tuple[Notice, ...]:
    return (Notice(_moment(text.strip())),)


_READERS: Final[Mapping[Provider, Callable[[str], tuple[Notice, ...]]]] = {
    Provider.AWS: _of_aws,
    Provider.GCP: _of_gcp,
    Provider.AZURE: _of_azure,
    Provider.ALIBABA: _of_alibaba,
}


def read_file(text: str, changed_at: Millis) -> Iterator[Notice | str]:
    """Yield the notice of each line of a watched file, or a sentence about a line that has none.

    `changed_at`: when the file was written, from which a number of seconds counts.
    """
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            node, when = words
            yield Notice(_within(changed_at + 1000 * int(when)) if when.isdecimal() else _moment(when), (node,))
        except ValueError:
            yield f"line {number} is not a node with seconds or a time, such as `n07 300`"


def _moment(text: str) -> Millis:
    """Return the moment of an ISO 8601 time; one without a zone is in UTC, as the providers' are."""
    return _millis(datetime.fromisoformat(text))


def _within(millis: int) -> Millis:
    """Return the moment if it is one that can be shown. Raises `ValueError`."""
    if not 0 <= millis <= _LATEST:
        raise ValueError(millis)
    return Millis(millis)


def _millis(moment: datetime) -> Millis:
    return _within(round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
