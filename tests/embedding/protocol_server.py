"""A local server that speaks every provider's documented protocol and is strict about it.

A request that a real provider would not understand is answered with 400 and noted in `violations`, which the
fixture expects to be empty. Faults can be put in the way of single answers (`faults`) or of all (`rule`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import numpy as np

KEY = "sk-test-0123456789abcdef"
AWS_KEY_ID = "AKIDEXAMPLE"
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TASKS = {"RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING"}


def vector(text: str) -> list[float]:
    """What the server answers for a text: its length, one, and its first character's number."""
    return [float(len(text)), 1.0, float(ord(text[0]))]


@dataclass
class Fault:
    """Something to answer instead of vectors, or (`change`) something to do to the answer."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    until: threading.Event | None = None
    change: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Seen:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    texts: list[str]
    at: float


class Violation(Exception):  # noqa: N818
    """The request is not what the provider documents."""


class ProtocolServer:
    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.violations: list[str] = []
        self.faults: deque[Fault | None] = deque()
        self.rule: Callable[[list[str]], Fault | None] = lambda texts: None
        self.most_at_once = 0
        self.lock = threading.Lock()
        self._at_once = 0
        handler = type("Handler", (_Handler,), {"server_state": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def batches(self) -> list[list[str]]:
        """The texts of each embedding request, in order of arrival."""
        return [seen.texts for seen in self.seen if seen.texts]

    def enter(self) -> None:
        with self.lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)

    def leave(self) -> None:
        with self.lock:
            self._at_once -= 1


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: ProtocolServer

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        state = self.server_state
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        form = "urlencoded" in headers.get("content-type", "")
        body = parse_qs(raw.decode()) if form else json.loads(raw) if raw else None
        call = Call(method, parts.path, parse_qs(parts.query), headers, body, raw)
        state.enter()
        try:
            route = next((r for r in ROUTES if r[0] == method and re.fullmatch(r[1], parts.path)), None)
            if route is None:
                return self._reply(404, {"error": {"message": f"no route {parts.path}"}})
            match = re.fullmatch(route[1], parts.path)
            assert match is not None
            try:
                texts, answer = route[2](call, *map(unquote, match.groups()))
            except Violation as violation:
                state.violations.append(f"{parts.path}: {violation}")
                return self._reply(400, {"error": {"message": str(violation)}})
            except Refusal as refusal:
                return self._reply(refusal.status, refusal.body)
            with state.lock:
                state.seen.append(Seen(parts.path, call.query, headers, body, texts, time.monotonic()))
                fault = state.faults.popleft() if texts and state.faults else None
            fault = fault or (state.rule(texts) if texts else None)
            if fault is not None:
                time.sleep(fault.seconds)
                if fault.until is not None:
                    fault.until.wait(30)
                if fault.change is not None:
                    answer = fault.change(answer)
                elif fault.status != 200 or fault.body is not None:
                    return self._reply(fault.status, fault.body, fault.headers)
            return self._reply(200, answer)
        finally:
            state.leave()

    def _reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True


class Refusal(Exception):  # noqa: N818
    """What the provider itself would refuse, in its own words."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any
    raw: bytes

    def only(self, required: set[str], optional: set[str] = frozenset(), body: Any = None) -> None:  # type: ignore[assignment]
        names = set(self.body if body is None else body)
        if not required <= names <= required | optional:
            raise Violation(f"fields {sorted(names)}, documented are {sorted(required | optional)}")
        if self.method == "POST" and self.headers.get("content-type") != "application/json":
            raise Violation(f"content type {self.headers.get('content-type')}")

    def texts(self, value: Any, most: int) -> list[str]:
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(t, str) and t.strip() for t in value)
        ):
            raise Violation(f"texts {value!r}")
        if len(value) > most:
            raise Violation(f"{len(value)} texts, {most} is the limit")
        return value

    def bearer(self, failure: Any = None) -> None:
        if self.headers.get("authorization") != f"Bearer {KEY}":
            given = self.headers.get("authorization", "")
            message = f"Incorrect API key provided: {given.removeprefix('Bearer ')}."
            raise Refusal(401, failure or {"error": {"message": message, "code": "invalid_api_key"}})


def openai_answer(texts: list[str], encoded: bool = False) -> dict[str, Any]:
    data = []
    for i, text in enumerate(texts):
        numbers: Any = vector(text)
        if encoded:
            numbers = base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()
        data.append({"object": "embedding", "index": i, "embedding": numbers})
    total = sum(len(t) for t in texts)
    return {
        "object": "list",
        "data": data,
        "model": "m",
        "usage": {"prompt_tokens": total, "total_tokens": total},
    }


def openai(call: Call) -> tuple[list[str], Any]:
    call.bearer()
    call.only({"model", "input"}, {"encoding_format", "dimensions", "user"})
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts, call.body.get("encoding_format") == "base64")


def open_server(call: Call) -> tuple[list[str], Any]:
    if "authorization" in call.headers:
        raise Violation("a key was sent to a server that asked for none")
    call.only({"model", "input"})
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts)


def openai_models(call: Call) -> tuple[list[str], Any]:
    call.bearer()
    names = ["gpt-5", "text-embedding-3-small"]
    return [], {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


def lm_studio(call: Call) -> tuple[list[str], Any]:
    if call.headers.get("authorization") != "Bearer lm-studio":
        raise Violation("LM Studio's usual key is missing")
    call.only({"model", "input"}, {"encoding_format", "dimensions", "user"})
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts)


def mistral(call: Call) -> tuple[list[str], Any]:
    call.bearer({"detail": "Unauthorized"})
    call.only({"model", "input"}, {"encoding_format", "output_dimension", "output_dtype"})
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts, call.body.get("encoding_format") == "base64")


def voyage(call: Call) -> tuple[list[str], Any]:
    call.bearer({"detail": "Provided API key is invalid."})
    call.only({"model", "input", "input_type", "truncation"}, {"output_dimension", "encoding_format"})
    if (
        call.body["input_type"] not in ("query", "document")
        or call.body.get("encoding_format", "base64") != "base64"
    ):
        raise Violation(f"input_type or encoding_format {call.body}")
    texts = call.texts(call.body["input"], 1000)
    return texts, openai_answer(texts, "encoding_format" in call.body)


def jina(call: Call) -> tuple[list[str], Any]:
    call.bearer({"detail": "Unauthorized"})
    call.only({"model", "input"}, {"task", "truncate", "dimensions", "embedding_type"})
    if call.body.get("task", "retrieval.query") not in ("retrieval.query", "retrieval.passage"):
        raise Violation(f"task {call.body['task']}")
    texts = call.texts(call.body["input"], 512)
    return texts, openai_answer(texts, call.body.get("embedding_type") == "base64")


def plain_compatible(call: Call) -> tuple[list[str], Any]:
    call.bearer()
    call.only({"model", "input"})
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts)


def ollama(call: Call) -> tuple[list[str], Any]:
    call.only({"model", "input"}, {"truncate", "dimensions", "keep_alive", "options"})
    if call.body["model"] == "absent":
        raise Refusal(404, {"error": 'model "absent" not found, try pulling it first'})
    texts = call.texts(call.body["input"], 512)
    total = sum(map(len, texts))
    return texts, {"model": "m", "embeddings": [vector(t) for t in texts], "prompt_eval_count": total}


def ollama_tags(call: Call) -> tuple[list[str], Any]:
    return [], {
        "models": [
            {"name": "llama3:8b", "details": {"family": "llama"}},
            {"name": "nomic-embed-text:latest", "details": {"family": "nomic-bert"}},
            {"name": "mine:latest", "capabilities": ["embedding"], "details": {"family": "qwen3"}},
        ]
    }


def azure(call: Call, deployment: str) -> tuple[list[str], Any]:
    if call.headers.get("api-key") != KEY or "authorization" in call.headers:
        raise Refusal(
            401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}}
        )
    if list(call.query) != ["api-version"]:
        raise Violation(f"query {call.query}")
    call.only({"model", "input"}, {"encoding_format", "dimensions", "user"})
    if deployment == "absent":
        raise Refusal(
            404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}
        )
    texts = call.texts(call.body["input"], 2048)
    return texts, openai_answer(texts, call.body.get("encoding_format") == "base64")


def gemini(call: Call, model: str) -> tuple[list[str], Any]:
    if call.headers.get("x-goog-api-key") != KEY or call.query:
        raise Refusal(
            400, {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}
        )
    call.only({"requests"})
    for request in call.body["requests"]:
        call.only({"model", "content", "taskType"}, {"outputDimensionality", "title"}, request)
        if request["model"] != f"models/{model}" or request["taskType"] not in TASKS:
            raise Violation(f"request {request}")
        if list(request["content"]) != ["parts"] or [list(p) for p in request["content"]["parts"]] != [
            ["text"]
        ]:
            raise Violation(f"content {request['content']}")
    texts = call.texts([r["content"]["parts"][0]["text"] for r in call.body["requests"]], 100)
    return texts, {"embeddings": [{"values": vector(text)} for text in texts]}


def gemini_models(call: Call) -> tuple[list[str], Any]:
    if call.headers.get("x-goog-api-key") != KEY:
        raise Refusal(400, {"error": {"code": 400, "message": "API key not valid."}})
    about = [("gemini-3-pro", "generateContent", 1_000_000), ("gemini-embedding-001", "embedContent", 2048)]
    models = [
        {"name": f"models/{name}", "supportedGenerationMethods": [does], "inputTokenLimit": limit}
        for name, does, limit in about
    ]
    return [], {"models": models}


def vertex(call: Call, project: str, location: str, model: str) -> tuple[list[str], Any]:
    call.bearer({"error": {"code": 401, "message": "Request had invalid authentication credentials."}})
    call.only({"instances", "parameters"})
    call.only({"autoTruncate"}, {"outputDimensionality"}, call.body["parameters"])
    for instance in call.body["instances"]:
        call.only({"content", "task_type"}, {"title"}, instance)
        if instance["task_type"] not in TASKS:
            raise Violation(f"task_type {instance['task_type']}")
    texts = call.texts([i["content"] for i in call.body["instances"]], 1 if "gemini" in model else 250)
    statistics = [{"token_count": len(t), "truncated": len(t) > 2048} for t in texts]
    pairs = zip(texts, statistics, strict=True)
    return texts, {"predictions": [{"embeddings": {"values": vector(t), "statistics": s}} for t, s in pairs]}


def databricks(call: Call, model: str) -> tuple[list[str], Any]:
    call.bearer({"error_code": "403", "message": "Invalid access token."})
    call.only({"input"})
    texts = call.texts(call.body["input"], 150)
    return texts, openai_answer(texts)


def databricks_token(call: Call) -> tuple[list[str], Any]:
    basic = "Basic " + base64.b64encode(b"machine:machine-secret").decode()
    if call.headers.get("authorization") != basic or call.body.get("grant_type") != ["client_credentials"]:
        raise Refusal(401, {"error": "invalid_client", "error_description": "Client authentication failed"})
    if call.body.get("scope") != ["all-apis"]:
        raise Violation(f"scope {call.body.get('scope')}")
    return [], {"access_token": KEY, "token_type": "Bearer", "expires_in": 3600}


def databricks_models(call: Call) -> tuple[list[str], Any]:
    call.bearer()
    about = [("chat", "llm/v1/chat"), ("databricks-gte-large-en", "llm/v1/embeddings")]
    return [], {"endpoints": [{"name": name, "task": task} for name, task in about]}


def snowflake(call: Call) -> tuple[list[str], Any]:
    kind = call.headers.get("x-snowflake-authorization-token-type")
    token = call.headers.get("authorization", "").removeprefix("Bearer ")
    if not (kind in ("OAUTH", "PROGRAMMATIC_ACCESS_TOKEN") and token == KEY) and not (
        kind == "KEYPAIR_JWT" and token.count(".") == 2
    ):
        raise Refusal(401, {"message": "Invalid OAuth access token.", "code": "390303"})
    call.only({"model", "text"})
    texts = call.texts(call.body["text"], 512)
    data = [{"object": "embedding", "embedding": [vector(t)], "index": i} for i, t in enumerate(texts)]
    return texts, {"object": "list", "data": data, "model": "m", "usage": {"total_tokens": len(texts)}}


def bedrock(call: Call, model: str) -> tuple[list[str], Any]:
    if call.headers.get("authorization") != f"Bearer {KEY}":
        check_signature(call)
    if "cohere" in model:
        call.only({"texts", "input_type", "truncate"}, {"embedding_types", "output_dimension"})
        if call.body["input_type"] not in ("search_document", "search_query"):
            raise Violation(f"input_type {call.body['input_type']}")
        texts = call.texts(call.body["texts"], 96)
        if "v3" in model and max(map(len, texts)) > 2048:
            raise Violation("a text of more than 2048 characters")
        vectors: Any = [vector(t) for t in texts]
        return texts, {
            "id": "1",
            "embeddings": {"float": vectors} if "embedding_types" in call.body else vectors,
        }
    call.only({"inputText"}, {"dimensions", "normalize", "embeddingTypes"})
    texts = call.texts([call.body["inputText"]], 1)
    return texts, {"embedding": vector(texts[0]), "inputTextTokenCount": 7}


def check_signature(call: Call) -> None:
    """Signature version 4 worked out from the request as it arrived, by the specification's four steps."""
    given = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/bedrock/aws4_request, "
        r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})",
        call.headers.get("authorization", ""),
    )
    denied = Refusal(403, {"message": "The security token included in the request is invalid."})
    if given is None or given[1] != AWS_KEY_ID or not {"host", "x-amz-date"} <= set(given[4].split(";")):
        raise denied
    lines = "".join(f"{name}:{call.headers[name].strip()}\n" for name in given[4].split(";"))
    twice_escaped = "/".join(quote(part, safe="~") for part in call.path.split("/"))
    canonical = f"POST\n{twice_escaped}\n\n{lines}\n{given[4]}\n{hashlib.sha256(call.raw).hexdigest()}"
    scope = f"{given[2]}/{given[3]}/bedrock/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{call.headers['x-amz-date']}\n{scope}\n{digest}"
    key = ("AWS4" + AWS_SECRET).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    if not hmac.compare_digest(hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest(), given[5]):
        raise denied


ROUTES: list[tuple[str, str, Callable[..., tuple[list[str], Any]]]] = [
    ("POST", "/v1/embeddings", openai),
    ("GET", "/v1/models", openai_models),
    ("POST", "/open/v1/embeddings", open_server),
    ("POST", "/lm/v1/embeddings", lm_studio),
    ("POST", "/mistral/v1/embeddings", mistral),
    ("POST", "/voyage/v1/embeddings", voyage),
    ("POST", "/jina/v1/embeddings", jina),
    ("POST", "/together/v1/embeddings", plain_compatible),
    ("POST", "/groq/openai/v1/embeddings", plain_compatible),
    ("POST", "/api/embed", ollama),
    ("GET", "/api/tags", ollama_tags),
    ("POST", r"/openai/deployments/([^/]+)/embeddings", azure),
    ("POST", r"/v1beta/models/([\w.-]+):batchEmbedContents", gemini),
    ("GET", "/v1beta/models", gemini_models),
    ("POST", r"/v1/projects/([^/]+)/locations/([^/]+)/publishers/google/models/([\w.-]+):predict", vertex),
    ("POST", r"/serving-endpoints/([^/]+)/invocations", databricks),
    ("POST", "/oidc/v1/token", databricks_token),
    ("GET", "/api/2.0/serving-endpoints", databricks_models),
    ("POST", "/api/v2/cortex/inference:embed", snowflake),
    ("POST", r"/model/([^/]+)/invoke", bedrock),
]
