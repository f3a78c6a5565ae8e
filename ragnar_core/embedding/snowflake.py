"""Snowflake Cortex. Protocol: https://docs.snowflake.com/en/user-guide/snowflake-cortex/cortex-rest-api"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request, json_request
from ragnar_core.embedding.openai import read_openai
from ragnar_core.embedding.request import Answer, Limits, RequestSettings
from ragnar_core.embedding.service import Key, ServiceEmbedder, ServiceOptions, setting
from ragnar_core.errors import EmbedError

_KEYPAIR_SECONDS = 600


class SnowflakeEmbedder(ServiceEmbedder):
    """Snowflake Cortex: `POST /api/v2/cortex/inference:embed`."""

    provider = "snowflake"
    title = "Snowflake"
    key_variable = "SNOWFLAKE_TOKEN"
    address_setting = None
    own_hosts = (".snowflakecomputing.com", ".snowflakecomputing.cn")
    limits = Limits(items=512, text_tokens=512)
    defaults = RequestSettings(batch_size=128)
    _keypair: tuple[str, float] = ("", 0.0)

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        token, kind = self._token()
        headers = {"Authorization": f"Bearer {token}", "X-Snowflake-Authorization-Token-Type": kind}
        body = {"model": self.model, "text": list(texts)}
        return json_request(f"{self.base_url}/api/v2/cortex/inference:embed", body, headers)

    def read(self, data: Any, count: int) -> Answer:
        # Each item's vector comes inside a list of one.
        if isinstance(data, dict) and isinstance(data.get("data"), list):
            items = [{**item, "embedding": _inner(item.get("embedding"))} for item in data["data"] if item]
            data = {**data, "data": items}
        return read_openai(data, count)

    def check(self) -> None:
        self._token()

    def secrets(self) -> list[str]:
        return [self._seen_key, self._keypair[0]]

    def hint(self, status: int | None, words: str) -> str:
        if status in (401, 403):
            return " Check the token, and that the role may use SNOWFLAKE.CORTEX_USER."
        return super().hint(status, words)

    def _token(self) -> tuple[str, str]:
        """Token and its kind: given, from the environment, or made from a private key."""
        if token := self._find_key():
            self._seen_key = token
            return token, str(self._settings.get("token_type", "OAUTH"))
        user, key = os.environ.get("SNOWFLAKE_USER"), os.environ.get("SNOWFLAKE_PRIVATE_KEY")
        if not user or not key or not self.is_own_address():
            raise EmbedError(
                "Snowflake needs a token: set SNOWFLAKE_TOKEN, or SNOWFLAKE_USER and SNOWFLAKE_PRIVATE_KEY, "
                "or pass api_key."
            )
        if time.time() > self._keypair[1]:
            made = keypair_token(str(self._settings["account"]), user, key, int(time.time()))
            self._keypair = (made, time.time() + _KEYPAIR_SECONDS * 0.8)
        return self._keypair[0], "KEYPAIR_JWT"


def embed_snowflake(
    model: str = "snowflake-arctic-embed-m-v1.5",
    *,
    account: str | None = None,
    api_key: Key = None,
    token_type: str | None = None,
    base_url: str | None = None,
    **options: Unpack[ServiceOptions],
) -> SnowflakeEmbedder:
    """Snowflake Cortex in `account` (or SNOWFLAKE_ACCOUNT).

    The token is `api_key` or SNOWFLAKE_TOKEN, of the `token_type` "OAUTH" (default) or
    "PROGRAMMATIC_ACCESS_TOKEN"; or a key pair: SNOWFLAKE_USER and SNOWFLAKE_PRIVATE_KEY (PEM, or a path to
    it), which needs the package `cryptography`.
    """
    name = account or os.environ.get("SNOWFLAKE_ACCOUNT")
    if not name:
        raise EmbedError("Snowflake needs an account: pass account, or set SNOWFLAKE_ACCOUNT.")
    setting(name, "account", "Snowflake")
    # Underscores of account names are not allowed in host names; Snowflake answers to the dashed form.
    address = base_url or f"https://{name.replace('_', '-').lower()}.snowflakecomputing.com"
    settings = {"account": name, "token_type": token_type, "base_url": base_url}
    return SnowflakeEmbedder(model, address, api_key, settings, options)


def keypair_token(account: str, user: str, private_key: str, now: int) -> str:
    """A JSON web token signed with RS256, as Snowflake's key-pair authentication wants it (ten minutes)."""
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError:
        raise EmbedError("Snowflake's key pairs need cryptography: run `pip install cryptography`.") from None
    try:
        pem = private_key.encode() if "PRIVATE KEY" in private_key else Path(private_key).read_bytes()
        key = serialization.load_pem_private_key(pem, None)
    except (OSError, ValueError, TypeError):
        raise EmbedError("SNOWFLAKE_PRIVATE_KEY is no unencrypted PEM key, nor a path to one.") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise EmbedError("SNOWFLAKE_PRIVATE_KEY must be an RSA key.")
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    fingerprint = base64.b64encode(hashlib.sha256(public).digest()).decode()
    subject = f"{re.split(r'[.]', account)[0]}.{user}".upper()
    claims = {
        "iss": f"{subject}.SHA256:{fingerprint}",
        "sub": subject,
        "iat": now,
        "exp": now + _KEYPAIR_SECONDS,
    }
    signed = f"{_part({'alg': 'RS256', 'typ': 'JWT'})}.{_part(claims)}"
    signature = key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{signed}.{_unpadded(signature)}"


def _part(value: dict[str, Any]) -> str:
    return _unpadded(json.dumps(value, separators=(",", ":")).encode())


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _inner(embedding: Any) -> Any:
    return (
        embedding[0]
        if isinstance(embedding, list) and embedding and isinstance(embedding[0], list)
        else embedding
    )
