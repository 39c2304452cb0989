"""Certificates that sign themselves, for a web that speaks TLS."""

from __future__ import annotations

import datetime as dt
import ssl
import tempfile
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Certificate:
    """``public`` is what a client would have to trust, in PEM; ``private`` the key."""

    public: str
    private: str

    def context(self) -> ssl.SSLContext:
        """For a server. It asks OpenSSL, which reads files alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.private + self.public)
            file.flush()
            context.load_cert_chain(Path(file.name))
        return context


def certificate(*names: str, now: dt.datetime, days: int = 2) -> Certificate:
    """For these names or addresses, valid from a day before ``now`` for so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sandbox")])
    built = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now - _DAY + days * _DAY)
        .add_extension(x509.SubjectAlternativeName([_named(name) for name in names]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        built.public_bytes(serialization.Encoding.PEM).decode("ascii"),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode("ascii"),
    )


def _named(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
