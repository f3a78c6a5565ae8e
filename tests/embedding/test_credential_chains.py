"""The optional credential chains, botocore's and google-auth's, where those packages are installed."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from ragnar_core.embedding import embed_bedrock, embed_google_vertex, google
from ragnar_core.embedding.aws import AwsCredentials, sign
from ragnar_core.errors import EmbedError

KEY = "sk-test-0123456789abcdef"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    ("url", "body", "token"),
    [
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke",
            b"{}",
            None,
        ),
        (
            "https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%2Fb%20c/invoke",
            "é".encode(),
            "session/token+=",
        ),
        ("https://example.amazonaws.com/a/b?x=1&y=%20&x=0", b"", None),
    ],
)
def test_our_signature_is_botocores(url, body, token):
    pytest.importorskip("botocore", reason="botocore is an optional extra")
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    request = AWSRequest("POST", url, data=body, headers={"Content-Type": "application/json"})
    SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, token), "bedrock", "eu-west-1").add_auth(request)
    now = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    credentials = AwsCredentials("AKIDEXAMPLE", SECRET, token)
    ours = sign(
        "POST", url, body, {"Content-Type": "application/json"}, credentials, "eu-west-1", "bedrock", now
    )
    assert ours["Authorization"] == request.headers["Authorization"]


def test_bedrock_takes_credentials_from_botocores_chain(server, monkeypatch, tmp_path):
    pytest.importorskip("botocore", reason="botocore is an optional extra")
    answer = {"Version": 1, "AccessKeyId": "AKIDEXAMPLE", "SecretAccessKey": SECRET}
    program = tmp_path / "credentials.py"
    program.write_text(f"print({json.dumps(answer)!r})")
    config = f"[profile work]\nregion = eu-west-1\ncredential_process = {sys.executable} {program}\n"
    (tmp_path / "AWS_CONFIG_FILE").write_text(config)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    # The server works the signature out itself.
    assert embed_bedrock(profile="work").embed(["a"]).tolist() == [[1, 1, 97]]


class Google(BaseHTTPRequestHandler):
    """Google's token endpoint: gives an access token for a signed assertion."""

    asked: list[str]

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.asked.append(form["grant_type"][0])
        data = json.dumps({"access_token": KEY, "token_type": "Bearer", "expires_in": 3600}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


def test_vertex_takes_a_token_from_googles_chain_once(monkeypatch, tmp_path):
    pytest.importorskip("google.auth", reason="google-auth is an optional extra")
    pytest.importorskip("requests", reason="google-auth needs requests")
    pytest.importorskip("cryptography", reason="the test makes a key")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    handler = type("Handler", (Google,), {"asked": []})
    endpoint = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True).start()
    pem = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "p1",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "ada@p1.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"http://127.0.0.1:{endpoint.server_address[1]}/token",
    }
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    monkeypatch.delenv("GOOGLE_ACCESS_TOKEN", raising=False)
    monkeypatch.setattr(google, "_credentials", None)
    try:
        embedder = embed_google_vertex("text-embedding-005", project_id="p1")
        first = embedder.build(["a"], "document")
        second = embedder.build(["b"], "document")
    finally:
        endpoint.shutdown()
        endpoint.server_close()
    assert first.headers["Authorization"] == second.headers["Authorization"] == f"Bearer {KEY}"
    assert handler.asked == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]


def test_vertex_without_any_token_says_what_to_do(monkeypatch):
    monkeypatch.delenv("GOOGLE_ACCESS_TOKEN", raising=False)
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(EmbedError, match=r"set GOOGLE_ACCESS_TOKEN .*pip install google-auth requests"):
        embed_google_vertex(project_id="p1").embed(["a"])
