"""AWS request signing (Signature Version 4) and the usual places where AWS credentials are kept.

Specification: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from ragnar_core.errors import EmbedError


@dataclass(frozen=True)
class AwsCredentials:
    """An access key; `session_token` for temporary ones. Secrets are kept out of `repr`."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def sign(
    method: str,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    credentials: AwsCredentials,
    region: str,
    service: str,
    now: datetime,
) -> dict[str, str]:
    """The headers with `Host`, `X-Amz-Date`, a session token if there is one, and `Authorization` added."""
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    parts = urlsplit(url)
    signed = {**headers, "Host": parts.netloc, "X-Amz-Date": stamp}
    if credentials.session_token:
        signed["X-Amz-Security-Token"] = credentials.session_token
    lowered = {name.lower().strip(): " ".join(value.split()) for name, value in signed.items()}
    names = ";".join(sorted(lowered))
    canonical = "\n".join(
        [
            method,
            quote(parts.path or "/", safe="/~"),
            _query(parts.query),
            *(f"{name}:{lowered[name]}" for name in sorted(lowered)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    signed["Authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    return signed


def find_credentials(profile: str | None) -> AwsCredentials:
    """Credentials from the environment, else from the profile in `~/.aws`, else from botocore's whole chain
    (single sign-on, roles, container and instance credentials) where botocore is installed."""
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    if profile is None and key and secret:
        return AwsCredentials(key, secret, os.environ.get("AWS_SESSION_TOKEN"))
    section = _profile(profile)
    if section.get("aws_access_key_id") and section.get("aws_secret_access_key"):
        return AwsCredentials(
            section["aws_access_key_id"], section["aws_secret_access_key"], section.get("aws_session_token")
        )
    found = _botocore_credentials(profile)
    if found is None:
        raise EmbedError(
            "No AWS credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, name a profile "
            "of ~/.aws/credentials, set AWS_BEARER_TOKEN_BEDROCK, or run `pip install botocore` for single "
            "sign-on and roles."
        )
    return found


def find_region(profile: str | None) -> str:
    """The region from AWS_REGION, AWS_DEFAULT_REGION or the profile. Raises EmbedError when none says."""
    section = _profile(profile)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or section.get("region")
    if profile is not None and section.get("region"):
        region = section["region"]
    if not region:
        raise EmbedError("Amazon Bedrock needs a region: pass region, or set AWS_REGION.")
    return region


def _profile(profile: str | None) -> dict[str, str]:
    """The settings of a profile in the shared credentials and config files, credentials first."""
    name = profile or os.environ.get("AWS_PROFILE") or "default"
    home = Path.home() / ".aws"
    files = (
        (
            os.environ.get("AWS_CONFIG_FILE") or home / "config",
            name if name == "default" else f"profile {name}",
        ),
        (os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", name),
    )
    settings: dict[str, str] = {}
    for path, section in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            raise EmbedError(
                f"The AWS file {path} cannot be read: its lines must be [section] or name = value."
            ) from None
        if parser.has_section(section):
            settings |= dict(parser.items(section))
    return settings


_sessions: dict[str | None, Any] = {}


def _botocore_credentials(profile: str | None) -> AwsCredentials | None:
    try:
        botocore = importlib.import_module("botocore.session")
    except ImportError:
        return None
    try:
        if profile not in _sessions:
            _sessions[profile] = botocore.Session(profile=profile).get_credentials()
        credentials = _sessions[profile]
        frozen = credentials.get_frozen_credentials() if credentials else None
    except Exception as error:
        raise EmbedError(f"The AWS credentials cannot be used: {error}") from None
    return AwsCredentials(frozen.access_key, frozen.secret_key, frozen.token) if frozen else None


def _query(query: str) -> str:
    pairs = sorted(
        (quote(k, safe="~"), quote(v, safe="~")) for k, v in parse_qsl(query, keep_blank_values=True)
    )
    return "&".join(f"{name}={value}" for name, value in pairs)
