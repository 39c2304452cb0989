"""RSA keys of Apps."""

from __future__ import annotations

from functools import lru_cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def new_private_key() -> str:
    """A fresh RSA key as PEM (PKCS 1, as GitHub hands them out). Takes about 0.1 s."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode("ascii")


@lru_cache(maxsize=64)
def public_key_of(private_key: str) -> str:
    key = serialization.load_pem_private_key(private_key.encode("ascii"), password=None)
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode("ascii")
    )


@lru_cache(maxsize=64)
def load_public_key(pem: str) -> rsa.RSAPublicKey:
    key = serialization.load_pem_public_key(pem.encode("ascii"))
    if not isinstance(key, rsa.RSAPublicKey):
        raise TypeError("an App's key is an RSA key")
    return key
