from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragnar_core.embedding.aws import AwsCredentials, find_credentials, sign
from ragnar_core.errors import EmbedError

# Amazon's published test suite for signature version 4: key, secret, time, region and service.
SUITE = AwsCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
TIME = datetime(2015, 8, 30, 12, 36, 0, tzinfo=UTC)


def signature(method: str, url: str, body: bytes = b"", headers: dict[str, str] | None = None) -> str:
    signed = sign(method, url, body, headers or {}, SUITE, "us-east-1", "service", TIME)
    return signed["Authorization"].rpartition("Signature=")[2]


@pytest.mark.parametrize(
    ("method", "url", "expected"),
    [
        (
            "GET",
            "https://example.amazonaws.com/",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "POST",
            "https://example.amazonaws.com/",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "GET",
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
)
def test_published_signatures(method, url, expected):
    assert signature(method, url) == expected


def test_authorization_names_what_was_signed():
    signed = sign(
        "GET", "https://example.amazonaws.com/", b"", {"My-Header": " a  b "}, SUITE, "r", "s", TIME
    )
    assert signed["Authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/r/s/aws4_request, "
        "SignedHeaders=host;my-header;x-amz-date, Signature="
    )
    assert signed["X-Amz-Date"] == "20150830T123600Z"


def test_secrets_are_not_shown():
    assert "EXAMPLEKEY" not in repr(SUITE)


def test_no_credentials_say_where_to_put_them(server):
    with pytest.raises(EmbedError, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        find_credentials(None)


def test_an_unreadable_profile_file_is_named_without_its_text(server, monkeypatch, tmp_path):
    broken = tmp_path / "credentials"
    broken.write_text("aws_secret_access_key = very-secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(broken))
    with pytest.raises(EmbedError, match="cannot be read") as caught:
        find_credentials(None)
    assert str(broken) in str(caught.value)
    assert "very-secret" not in str(caught.value)
