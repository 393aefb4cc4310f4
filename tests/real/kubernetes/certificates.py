"""The keys of a test cluster: an authority, the certificates that it signs, and the key of service accounts' tokens."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "training-operator.kubeflow.svc",
    "127.0.0.1",
    "10.96.0.1",
)
AUTHORITY_NAME = "training-operator-ca"
"""The training operator replaces an authority that has not this name, or less than 90 days."""
ISSUER = "https://kubernetes.default.svc"
CLOCK_LEEWAY_SECONDS = 60
"""For how long after its end the API server accepts a token."""


class Authority:
    """Writes pairs `NAME.crt` and `NAME.key` into a folder, as files in PEM."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = self._new_key("ca")
        self._name = _subject("cockpit-tests")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            crl_sign=False,
            encipher_only=False,
            decipher_only=False,
        )
        own = (
            self._certificate(self._name, self._key, days=365)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(AUTHORITY_NAME)]), critical=False)
        )
        self._write("ca", own)
        self._tokens = self._new_key("sa")

    def sign_server(self, name: str) -> None:
        """A certificate for every name under which a program of the cluster is called."""
        names = x509.SubjectAlternativeName([_general_name(each) for each in SERVER_NAMES])
        key = self._new_key(name)
        built = self._certificate(_subject(name), key, days=365).add_extension(names, critical=False)
        self._write(name, built.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False))

    def sign_client(self, name: str, user: str, group: str = "") -> None:
        """A certificate by which the API server knows a user."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        key = self._new_key(name)
        self._write(name, self._certificate(_subject(user, group), key, days=365).add_extension(usage, critical=False))

    def service_token(self, namespace: str, account: str, uid: str, seconds: float) -> str:
        """Make a token of a service account that the API server accepts for so long. It remembers for ten seconds more
        what it has accepted. (Its own tokens are valid for ten minutes at least.)
        """
        now = time.time()  # noqa: TID251 - the API server reads this machine's clock too
        about = {"namespace": namespace, "serviceaccount": {"name": account, "uid": uid}}
        claims = {
            "iss": ISSUER,
            "aud": [ISSUER],
            "sub": f"system:serviceaccount:{namespace}:{account}",
            "iat": now - 2 * CLOCK_LEEWAY_SECONDS,
            "nbf": now - 2 * CLOCK_LEEWAY_SECONDS,
            "exp": now + seconds - CLOCK_LEEWAY_SECONDS,
            "kubernetes.io": about,
        }
        signed = b".".join(_base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        signature = self._tokens.sign(signed, padding.PKCS1v15(), hashes.SHA256())
        return b".".join((signed, _base64url(signature))).decode()

    def _certificate(self, subject: x509.Name, key: RSAPrivateKey, *, days: int) -> x509.CertificateBuilder:
        now = datetime.now(UTC)  # noqa: TID251 - certificates are valid by this machine's clock
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=days))
        )

    def _new_key(self, name: str) -> RSAPrivateKey:
        """PKCS #1: the only form that the training operator reads."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        kind = serialization.PrivateFormat.TraditionalOpenSSL
        text = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
        file = self.folder / f"{name}.key"
        file.touch(mode=0o600)
        file.write_bytes(text)
        return key

    def _write(self, name: str, built: x509.CertificateBuilder) -> None:
        signed = built.sign(self._key, hashes.SHA256())
        (self.folder / f"{name}.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))


def _subject(name: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if group:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _general_name(name: str) -> x509.GeneralName:
    try:
        address = ip_address(name)
    except ValueError:
        return x509.DNSName(name)
    assert isinstance(address, IPv4Address)
    return x509.IPAddress(address)


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
