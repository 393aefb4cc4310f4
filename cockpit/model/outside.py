"""The kinds of services outside the cluster that an engine is set up to use."""

from __future__ import annotations

from enum import StrEnum


class Provider(StrEnum):
    """The providers of spot machines whose metadata addresses are known."""

    NONE = ""
    """No metadata address is asked."""
    AWS = "aws"
    GCP = "gcp"
    AZURE = "azure"
    ALIBABA = "alibaba"


class SmtpTls(StrEnum):
    """How the connection to an SMTP server is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    """From the first byte on, as on port 465."""
    NONE = "none"
