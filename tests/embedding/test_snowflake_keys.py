from __future__ import annotations

import base64
import hashlib
import json

import pytest

from ragnar_core.embedding import embed_snowflake
from ragnar_core.embedding.snowflake import keypair_token
from ragnar_core.errors import EmbedError

cryptography = pytest.importorskip("cryptography", reason="key pairs need the package cryptography")


@pytest.fixture(scope="module")
def key_pair() -> tuple[str, object]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode(), key.public_key()


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_the_token_says_who_and_how_long_and_is_signed(key_pair):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding

    pem, public = key_pair
    head, claims, signature = keypair_token("acme-x1.privatelink", "ada", pem, 1_000_000).split(".")
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    fingerprint = base64.b64encode(hashlib.sha256(der).digest()).decode()
    assert json.loads(decoded(head)) == {"alg": "RS256", "typ": "JWT"}
    assert json.loads(decoded(claims)) == {
        "iss": f"ACME-X1.ADA.SHA256:{fingerprint}",
        "sub": "ACME-X1.ADA",
        "iat": 1_000_000,
        "exp": 1_000_600,
    }
    # Raises InvalidSignature when the token was changed.
    public.verify(decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256())


def test_a_key_pair_is_used_when_there_is_no_token(server, key_pair, monkeypatch, tmp_path):
    path = tmp_path / "key.pem"
    path.write_text(key_pair[0])
    monkeypatch.setenv("SNOWFLAKE_USER", "ada")
    monkeypatch.setenv("SNOWFLAKE_PRIVATE_KEY", str(path))
    request = embed_snowflake(account="acme").build(["a"], "document")
    assert request.url == "https://acme.snowflakecomputing.com/api/v2/cortex/inference:embed"
    assert request.headers["X-Snowflake-Authorization-Token-Type"] == "KEYPAIR_JWT"


def test_a_key_that_is_none_is_refused_without_showing_it():
    with pytest.raises(EmbedError, match="no unencrypted PEM key") as caught:
        keypair_token("a", "u", "-----BEGIN PRIVATE KEY-----\nvery-secret", 0)
    assert "very-secret" not in str(caught.value)
