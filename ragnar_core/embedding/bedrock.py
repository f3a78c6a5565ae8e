"""Amazon Bedrock: Titan and Cohere embedding models.

Protocols: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html and
https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Unpack
from urllib.parse import quote

from ragnar_core.embedding.aws import AwsCredentials, find_credentials, find_region, sign
from ragnar_core.embedding.embedder import Purpose
from ragnar_core.embedding.http import Request
from ragnar_core.embedding.request import Answer, AnswerError, Limits, rows
from ragnar_core.embedding.service import Key, ServiceEmbedder, ServiceOptions, setting
from ragnar_core.errors import EmbedError

_ENDPOINT_VARIABLE = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"


class BedrockEmbedder(ServiceEmbedder):
    """Amazon Bedrock: `POST /model/{model}/invoke`, signed with AWS Signature Version 4 or an API key."""

    provider = "bedrock"
    title = "Amazon Bedrock"
    key_variable = "AWS_BEARER_TOKEN_BEDROCK"
    key_required = False
    address_setting = None
    own_hosts = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")

    def __init__(
        self,
        model: str,
        address: str,
        api_key: Key,
        settings: dict[str, Any],
        options: ServiceOptions,
        profile: str | None,
    ) -> None:
        self._cohere = "cohere" in model
        if not self._cohere and "titan" not in model:
            raise EmbedError(
                f"Of Amazon Bedrock's models Titan and Cohere Embed are known here, not {model!r}."
            )
        if self._cohere:
            long = "v4" in model
            self.limits = Limits(
                items=96, text_characters=None if long else 2048, text_tokens=128_000 if long else 512
            )
        else:
            self.limits = Limits(items=1, text_characters=50_000, text_tokens=8192)
        super().__init__(model, address, api_key, settings, options)
        self._profile = profile
        self._secrets: list[str] = []

    def build(self, texts: Sequence[str], purpose: Purpose) -> Request:
        # The colon of a model's name is escaped in the path, and so escaped twice in what is signed.
        url = f"{self.base_url}/model/{quote(self.model, safe='')}/invoke"
        body = json.dumps(self._body(texts, purpose), ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token := self.key():
            return Request(url, body, {**headers, "Authorization": f"Bearer {token}"})
        credentials = self._credentials()
        self._secrets = [
            credentials.access_key_id,
            credentials.secret_access_key,
            credentials.session_token or "",
        ]
        region = self._settings["region"]
        return Request(
            url, body, sign("POST", url, body, headers, credentials, region, "bedrock", datetime.now(UTC))
        )

    def read(self, data: Any, count: int) -> Answer:
        if not isinstance(data, dict):
            raise AnswerError("answered with something else than a JSON object.")
        if not self._cohere:
            return Answer(rows([data.get("embedding")], count), int(data.get("inputTextTokenCount") or 0))
        vectors = data.get("embeddings")
        return Answer(rows(vectors.get("float") if isinstance(vectors, dict) else vectors, count))

    def uses_prefixes(self) -> bool:
        return False

    def check(self) -> None:
        if not self.key():
            self._credentials()

    def secrets(self) -> list[str]:
        return [self._seen_key, *self._secrets]

    def hint(self, status: int | None, words: str) -> str:
        if status == 403:
            return " Check the AWS credentials, and that the account has access to this model in this region."
        return super().hint(status, words)

    def trusted_addresses(self) -> list[str]:
        return [os.environ.get(_ENDPOINT_VARIABLE, "").strip().rstrip("/")]

    def _credentials(self) -> AwsCredentials:
        if not self.is_own_address():
            raise EmbedError(
                f"AWS credentials are not sent to {self.base_url}: set {_ENDPOINT_VARIABLE} to that address, "
                "or pass api_key."
            )
        return find_credentials(self._profile)

    def _body(self, texts: Sequence[str], purpose: Purpose) -> dict[str, Any]:
        dims = self._settings.get("dims")
        if not self._cohere:
            return {"inputText": texts[0], **({"dimensions": dims} if dims else {})}
        return {
            "texts": list(texts),
            "input_type": "search_query" if purpose == "query" else "search_document",
            "truncate": "END" if self._requests.too_long == "truncate" else "NONE",
            **({"output_dimension": dims, "embedding_types": ["float"]} if dims else {}),
        }


def embed_bedrock(
    model: str = "amazon.titan-embed-text-v2:0",
    *,
    profile: str | None = None,
    region: str | None = None,
    api_key: Key = None,
    dims: int | None = None,
    base_url: str | None = None,
    **options: Unpack[ServiceOptions],
) -> BedrockEmbedder:
    """Titan and Cohere Embed on Amazon Bedrock in `region` (or AWS_REGION, AWS_DEFAULT_REGION, or the
    profile's).

    Credentials are an API key for Bedrock (`api_key` or AWS_BEARER_TOKEN_BEDROCK), the environment's access
    key, or `profile` (or AWS_PROFILE) in `~/.aws`; with `botocore` installed also single sign-on, roles and
    instances.
    """
    where = setting(region or find_region(profile), "region", "Amazon Bedrock")
    address = base_url or os.environ.get(_ENDPOINT_VARIABLE)
    settings = {"region": where, "profile": profile, "dims": dims, "base_url": base_url}
    address = address or f"https://bedrock-runtime.{where}.amazonaws.com"
    return BedrockEmbedder(model, address, api_key, settings, options, profile)
