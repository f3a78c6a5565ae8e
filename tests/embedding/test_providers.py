"""Each provider against its documented protocol: path, headers, body, answer, errors, limits."""

from __future__ import annotations

import numpy as np
import pytest

from ragnar_core.embedding import (
    PROVIDERS,
    EmbedReport,
    ProviderError,
    embed_azure_openai,
    embed_bedrock,
    embed_databricks,
    embed_google_gemini,
    embed_google_vertex,
    embed_groq,
    embed_jina,
    embed_lm_studio,
    embed_mistral,
    embed_ollama,
    embed_openai,
    embed_snowflake,
    embed_together,
    embed_voyage,
    embedder_from_config,
)
from ragnar_core.errors import EmbedError

KEY = "sk-test-0123456789abcdef"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

# Each with everything that the local server needs, and nothing more.
MAKERS = {
    "ollama": lambda url: embed_ollama("m", base_url=url),
    "lm_studio": lambda url: embed_lm_studio("m", base_url=f"{url}/lm/v1"),
    "openai": lambda url: embed_openai("m", base_url=f"{url}/v1", api_key=KEY),
    "azure_openai": lambda url: embed_azure_openai("my deployment", endpoint=url, api_key=KEY),
    "google_gemini": lambda url: embed_google_gemini(base_url=f"{url}/v1beta", api_key=KEY),
    "google_vertex": lambda url: embed_google_vertex(
        "text-embedding-005", project_id="p1", access_token=KEY, base_url=url
    ),
    "bedrock": lambda url: embed_bedrock(region="eu-west-1", api_key=KEY, base_url=url),
    "databricks": lambda url: embed_databricks(workspace=url, api_key=KEY),
    "snowflake": lambda url: embed_snowflake(account="acme-x1", api_key=KEY, base_url=url),
    "mistral": lambda url: embed_mistral(base_url=f"{url}/mistral/v1", api_key=KEY),
    "voyage": lambda url: embed_voyage(base_url=f"{url}/voyage/v1", api_key=KEY),
    "jina": lambda url: embed_jina(base_url=f"{url}/jina/v1", api_key=KEY),
    "together": lambda url: embed_together("m", base_url=f"{url}/together/v1", api_key=KEY),
    "groq": lambda url: embed_groq("m", base_url=f"{url}/groq/openai/v1", api_key=KEY),
}
ALL = pytest.mark.parametrize("name", MAKERS)


def test_every_provider_is_tried_here():
    assert list(MAKERS) == [provider.name for provider in PROVIDERS]


@ALL
def test_texts_become_vectors_in_order(server, name):
    out = MAKERS[name](server.url).embed(["a", " ", "bb", "ccc"])
    assert out.dtype == np.float32
    assert out[[0, 2, 3]].tolist() == [[1, 1, 97], [2, 1, 98], [3, 1, 99]]
    assert np.isnan(out[1]).all()


@ALL
def test_config_has_no_key_and_makes_the_embedder_again(server, name):
    embedder = MAKERS[name](server.url)
    assert embedder.dim == 3
    config = embedder.config
    assert KEY not in str(config)
    assert KEY not in repr(embedder)
    assert config["provider"] == name
    again = embedder_from_config(config)
    assert again.config == config
    assert again.label == embedder.label
    assert again.dim == 3


@ALL
def test_a_hundred_long_texts_stay_within_the_providers_limits(server, name):
    report = EmbedReport()
    texts = [chr(97 + i % 26) * 3000 for i in range(300)]
    out = MAKERS[name](server.url).embed(texts, report=report)
    assert out[:, 0].tolist() == [3000.0] * 300
    assert out[:, 2].tolist() == [float(97 + i % 26) for i in range(300)]
    assert report.retries == 0


@ALL
def test_the_check_works(server, name):
    check = MAKERS[name](server.url).test()
    assert check.dim == 3
    assert len(server.batches) == 1


@ALL
def test_passing_trouble_is_waited_out(server, protocol, name):
    server.faults.append(protocol.Fault(429, {"error": "slow"}, {"retry-after-ms": "1"}))
    report = EmbedReport()
    assert MAKERS[name](server.url).embed(["a"], report=report).tolist() == [[1, 1, 97]]
    assert report.retries == 1


@ALL
def test_an_answer_that_is_short_of_vectors_is_refused(server, protocol, name):
    server.faults.extend([protocol.Fault(change=lambda answer: {"unexpected": True})] * 2)
    with pytest.raises(ProviderError, match="answered with"):
        MAKERS[name](server.url).embed(["a"])


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"ollama", "lm_studio", "openai"}))
def test_without_a_key_nothing_is_sent_and_the_error_says_what_to_do(server, name, monkeypatch):
    config = MAKERS[name](server.url).config
    # The environment's credentials must not travel to an address that only the configuration names.
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SNOWFLAKE_USER", "SNOWFLAKE_PRIVATE_KEY"):
        monkeypatch.setenv(variable, SECRET)
    for provider in PROVIDERS:
        if provider.key_variable:
            monkeypatch.setenv(provider.key_variable, KEY)
    embedder = embedder_from_config(config)
    with pytest.raises(EmbedError, match=r"api_key|access_token"):
        embedder.embed(["a"])
    with pytest.raises(EmbedError, match=r"api_key|access_token"):
        embedder.test()
    assert server.seen == []


def test_the_environments_openai_key_is_not_sent_to_another_server(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # The server notes a violation when a key arrives.
    assert embed_openai("m", base_url=f"{server.url}/open/v1").embed(["a"]).tolist() == [[1, 1, 97]]


@pytest.mark.parametrize(
    ("make", "variables"),
    [
        (embed_openai, {"OPENAI_API_KEY": KEY}),
        (
            lambda: embed_azure_openai("m"),
            {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "https://x.example"},
        ),
        (embed_google_gemini, {"GEMINI_API_KEY": KEY}),
        (embed_google_vertex, {"GOOGLE_ACCESS_TOKEN": KEY, "GOOGLE_CLOUD_PROJECT": "p"}),
        (embed_bedrock, {"AWS_BEARER_TOKEN_BEDROCK": KEY, "AWS_REGION": "eu-west-1"}),
        (embed_databricks, {"DATABRICKS_TOKEN": KEY, "DATABRICKS_HOST": "adb-1.azuredatabricks.net"}),
        (embed_snowflake, {"SNOWFLAKE_TOKEN": KEY, "SNOWFLAKE_ACCOUNT": "a_b-c"}),
        (embed_mistral, {"MISTRAL_API_KEY": KEY}),
        (embed_voyage, {"VOYAGE_API_KEY": KEY}),
        (embed_jina, {"JINA_API_KEY": KEY}),
        (embed_together, {"TOGETHER_API_KEY": KEY}),
        (embed_groq, {"GROQ_API_KEY": KEY}),
    ],
)
def test_the_key_is_found_in_the_environment_for_the_providers_own_address(
    server, monkeypatch, make, variables
):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    request = make().build(["a"], "document")
    assert KEY in " ".join(request.headers.values())
    assert request.url.startswith("https://")
    assert KEY not in request.url
    assert KEY not in repr(request)


# Ollama


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/api", "/api/embed"])
def test_ollamas_address_may_be_written_in_many_ways(server, ending):
    assert embed_ollama("m", base_url=server.url + ending).embed(["a"]).tolist() == [[1, 1, 97]]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:8080", "http://gpu-box:8080"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("https://ollama.example/", "https://ollama.example"),
    ],
)
def test_ollamas_address_comes_from_ollama_host(monkeypatch, host, address):
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert embed_ollama().base_url == address


def test_ollama_says_how_to_get_a_missing_model(server):
    with pytest.raises(ProviderError) as caught:
        embed_ollama("absent", base_url=server.url).embed(["a"])
    assert str(caught.value) == (
        f'Ollama (absent at {server.url[7:]}) answered HTTP 404: model "absent" not found, try pulling it first. '
        "Run `ollama pull absent`."
    )


def test_ollama_that_is_not_there(server):
    url = server.url
    server.close()
    with pytest.raises(ProviderError, match=rf"Is Ollama running at {url}\?$"):
        embed_ollama("m", base_url=url).embed(["a"])
    with pytest.raises(ProviderError, match="Is Ollama running at"):
        embed_ollama("m", base_url=url).list_models()


def test_ollama_lists_its_models_those_that_embed_first(server):
    found = [(info.name, info.embeds) for info in embed_ollama(base_url=server.url).list_models()]
    assert found == [("mine:latest", True), ("nomic-embed-text:latest", True), ("llama3:8b", False)]


def test_ollama_sends_the_prefixes_that_a_model_expects_and_its_settings(server):
    embedder = embed_ollama(
        "nomic-embed-text", base_url=server.url, dims=3, keep_alive="5m", too_long="refuse"
    )
    embedder.embed(["x"])
    embedder.embed_query("y")
    assert server.batches == [["search_document: x"], ["search_query: y"]]
    assert server.seen[0].body == {
        "model": "nomic-embed-text",
        "input": ["search_document: x"],
        "truncate": False,
        "dimensions": 3,
        "keep_alive": "5m",
    }
    assert embedder.config["query_prefix"] == "search_query: "
    assert embed_ollama("nomic-embed-text", query_prefix="", document_prefix="").config["query_prefix"] == ""


def test_a_local_model_may_take_minutes_to_load():
    assert embed_ollama().defaults.read_seconds == 300
    assert embed_openai("m", base_url="http://localhost:8000/v1").config["read_seconds"] == 300
    assert "read_seconds" not in embed_openai("m").config


# OpenAI and LM Studio


def test_openai_sends_dims_and_user(server):
    embed_openai("m", base_url=f"{server.url}/v1", api_key=KEY, dims=3, user="me").embed(["a"])
    assert server.seen[0].body == {"model": "m", "input": ["a"], "dimensions": 3, "user": "me"}


def test_openai_itself_is_asked_for_base64():
    body = embed_openai(api_key=KEY).body(["a"], "document")
    assert body == {"model": "text-embedding-3-small", "input": ["a"], "encoding_format": "base64"}


def test_openai_address_may_lack_its_version(server):
    assert embed_openai("m", base_url=server.url, api_key=KEY).embed(["a"]).tolist() == [[1, 1, 97]]


def test_openai_lists_models(server):
    found = embed_openai("m", base_url=f"{server.url}/v1", api_key=KEY).list_models()
    assert [(info.name, info.embeds) for info in found] == [("text-embedding-3-small", True), ("gpt-5", None)]


def test_openai_without_a_key_says_where_to_put_it(server):
    with pytest.raises(EmbedError, match="set the environment variable OPENAI_API_KEY or pass api_key"):
        embed_openai().embed(["a"])


def test_a_key_may_be_a_function(server):
    assert embed_openai("m", base_url=f"{server.url}/v1", api_key=lambda: KEY).embed(["a"]).shape == (1, 3)


def test_a_wrong_key_is_not_shown(server):
    wrong = "sk-wrong-0123456789"
    with pytest.raises(ProviderError) as caught:
        embed_openai("m", base_url=f"{server.url}/v1", api_key=wrong).embed(["a"])
    assert "HTTP 401: Incorrect API key provided: [key]" in str(caught.value)
    assert wrong not in str(caught.value)


def test_a_wrong_address_is_shown_as_tried(server):
    with pytest.raises(
        ProviderError, match=rf"whether {server.url}/wrong/v1/embeddings is the right address"
    ):
        embed_openai("m", base_url=f"{server.url}/wrong/v1", api_key=KEY).embed(["a"])


# Azure


def test_azure_sends_key_and_version(server):
    embed_azure_openai("d", endpoint=f"{server.url}/", api_key=KEY, api_version="2024-10-21", dims=3).embed(
        ["a"]
    )
    seen = server.seen[0]
    assert seen.path == "/openai/deployments/d/embeddings"
    assert seen.query == {"api-version": ["2024-10-21"]}
    assert seen.body["dimensions"] == 3


def test_azure_deployment_that_is_not_there(server):
    with pytest.raises(
        ProviderError, match=r"The API deployment does not exist\. Is there a deployment named absent"
    ):
        embed_azure_openai("absent", endpoint=server.url, api_key=KEY).embed(["a"])


def test_azure_needs_an_endpoint(server):
    with pytest.raises(EmbedError, match="AZURE_OPENAI_ENDPOINT"):
        embed_azure_openai("m")


# Google


def test_gemini_tells_queries_from_documents(server):
    embedder = MAKERS["google_gemini"](server.url)
    embedder.embed(["a"])
    embedder.embed_query("b")
    tasks = [seen.body["requests"][0]["taskType"] for seen in server.seen]
    assert tasks == ["RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY"]


def test_gemini_uses_a_given_task_for_both_and_dims(server):
    embedder = embed_google_gemini(
        base_url=f"{server.url}/v1beta", api_key=KEY, task_type="CLUSTERING", dims=3
    )
    embedder.embed(["a"])
    embedder.embed_query("b")
    requests = [seen.body["requests"][0] for seen in server.seen]
    assert [r["taskType"] for r in requests] == ["CLUSTERING", "CLUSTERING"]
    assert requests[0]["outputDimensionality"] == 3
    assert embedder.config["task_type"] == "CLUSTERING"


def test_gemini_lists_models(server):
    found = MAKERS["google_gemini"](server.url).list_models()
    assert [(m.name, m.embeds, m.max_tokens) for m in found] == [
        ("gemini-embedding-001", True, 2048),
        ("gemini-3-pro", False, 1_000_000),
    ]


def test_vertex_sends_gemini_models_one_text_at_a_time(server):
    embedder = embed_google_vertex(
        project_id="p1", location="us-central1", access_token=KEY, base_url=server.url
    )
    embedder.embed(["a", "b", "c"])
    assert sorted(server.batches) == [["a"], ["b"], ["c"]]
    expected = "/v1/projects/p1/locations/us-central1/publishers/google/models/gemini-embedding-001:predict"
    assert server.seen[0].path == expected


def test_vertex_reports_what_it_truncated(server):
    report = EmbedReport()
    MAKERS["google_vertex"](server.url).embed(["a", "", "b" * 3000], report=report)
    assert report.truncated == [2]
    assert report.tokens == 3001


def test_vertex_addresses():
    def address(location):
        return embed_google_vertex(project_id="p", location=location).base_url

    assert address("europe-west1") == "https://europe-west1-aiplatform.googleapis.com"
    assert address("global") == "https://aiplatform.googleapis.com"


def test_vertex_needs_a_project(server):
    with pytest.raises(EmbedError, match="GOOGLE_CLOUD_PROJECT"):
        embed_google_vertex()


# Bedrock


def bedrock(server, monkeypatch, **settings):
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    return embed_bedrock(**{"region": "eu-west-1"} | settings)


def test_titan_takes_one_text_a_request_signed(server, monkeypatch):
    out = bedrock(server, monkeypatch, dims=3).embed(["a", "bb", "ccc"])
    assert out.tolist() == [[1, 1, 97], [2, 1, 98], [3, 1, 99]]
    assert server.seen[0].path == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    assert server.seen[0].body["dimensions"] == 3


def test_a_session_token_is_sent_and_signed(server, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "temporary-token")
    bedrock(server, monkeypatch).embed(["a"])
    assert server.seen[0].headers["x-amz-security-token"] == "temporary-token"
    assert "x-amz-security-token" in server.seen[0].headers["authorization"]


def test_cohere_batches_cuts_long_texts_and_tells_queries_from_documents(server, monkeypatch):
    embedder = bedrock(server, monkeypatch, model="cohere.embed-english-v3")
    report = EmbedReport()
    out = embedder.embed(["a" * 3000] * 97, report=report)
    assert out[:, 0].tolist() == [2048.0] * 97
    assert sorted(map(len, server.batches)) == [1, 96]
    assert report.truncated == list(range(97))
    embedder.embed_query("q")
    assert [seen.body["input_type"] for seen in server.seen] == ["search_document"] * 2 + ["search_query"]
    with pytest.raises(EmbedError, match="Text 2 of 2 has 3000 characters"):
        bedrock(server, monkeypatch, model="cohere.embed-english-v3", too_long="refuse").embed(
            ["x", "a" * 3000]
        )


def test_cohere_4_takes_long_texts_and_dims(server, monkeypatch):
    out = bedrock(server, monkeypatch, model="eu.cohere.embed-v4:0", dims=3).embed(["a" * 3000])
    assert out.tolist() == [[3000, 1, 97]]
    assert server.seen[0].body["output_dimension"] == 3


def test_a_wrong_secret_is_refused_in_amazons_words(server, monkeypatch):
    embedder = bedrock(server, monkeypatch)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret-of-aws")
    with pytest.raises(
        ProviderError, match="HTTP 403: The security token included in the request is invalid"
    ) as caught:
        embedder.embed(["a"])
    assert "wrong-secret-of-aws" not in str(caught.value)


def test_credentials_and_region_come_from_the_profile(server, monkeypatch, tmp_path):
    (tmp_path / "AWS_CONFIG_FILE").write_text(
        "[default]\nregion = us-east-1\n[profile work]\nregion = ap-south-1\n"
    )
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(
        f"[work]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = {SECRET}\n"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    embedder = embed_bedrock(profile="work")
    assert embedder.config["region"] == "ap-south-1"
    assert embed_bedrock().config["region"] == "us-east-1"
    assert embedder.embed(["a"]).tolist() == [[1, 1, 97]]
    assert "/ap-south-1/bedrock/aws4_request" in server.seen[0].headers["authorization"]


def test_no_region_and_unknown_models_are_refused(server):
    with pytest.raises(EmbedError, match="set AWS_REGION"):
        embed_bedrock()
    with pytest.raises(EmbedError, match="Titan and Cohere"):
        embed_bedrock("meta.llama3", region="eu-west-1")


# Databricks and Snowflake


def test_databricks_gets_a_token_for_a_machine_once(server, monkeypatch):
    monkeypatch.setenv("DATABRICKS_HOST", server.url)
    monkeypatch.setenv("DATABRICKS_CLIENT_ID", "machine")
    monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", "machine-secret")
    embedder = embed_databricks()
    assert embedder.embed(["a"]).tolist() == [[1, 1, 97]]
    assert embedder.embed(["b"]).tolist() == [[1, 1, 98]]
    assert [seen.path for seen in server.seen].count("/oidc/v1/token") == 1


def test_databricks_shows_what_is_wrong_with_a_machines_secret(server, monkeypatch):
    monkeypatch.setenv("DATABRICKS_HOST", server.url)
    monkeypatch.setenv("DATABRICKS_CLIENT_ID", "machine")
    monkeypatch.setenv("DATABRICKS_CLIENT_SECRET", "wrong-secret-of-machine")
    with pytest.raises(EmbedError, match=r"HTTP 401: invalid_client") as caught:
        embed_databricks().embed(["a"])
    assert "wrong-secret" not in str(caught.value)


def test_databricks_lists_models(server):
    found = MAKERS["databricks"](server.url).list_models()
    assert [(m.name, m.embeds) for m in found] == [("databricks-gte-large-en", True), ("chat", False)]


def test_snowflake_says_which_kind_of_token_it_sends(server):
    embed_snowflake(
        account="a", api_key=KEY, token_type="PROGRAMMATIC_ACCESS_TOKEN", base_url=server.url
    ).embed(["a"])
    assert server.seen[0].headers["x-snowflake-authorization-token-type"] == "PROGRAMMATIC_ACCESS_TOKEN"


def test_snowflakes_address_has_no_underscores():
    assert embed_snowflake(account="My_Org-acct").base_url == "https://my-org-acct.snowflakecomputing.com"


# The others


def test_voyage_and_jina_tell_queries_from_documents(server):
    for name in ("voyage", "jina"):
        embedder = MAKERS[name](server.url)
        embedder.embed(["a"])
        embedder.embed_query("b")
    bodies = [seen.body for seen in server.seen]
    assert [body["input_type"] for body in bodies[:2]] == ["document", "query"]
    assert [body["task"] for body in bodies[2:]] == ["retrieval.passage", "retrieval.query"]


def test_dims_and_encoding_have_each_providers_name(server):
    shared = {"api_key": KEY, "dims": 3, "encoding": "base64"}
    embedders = [
        embed_mistral(base_url=f"{server.url}/mistral/v1", **shared),
        embed_voyage(base_url=f"{server.url}/voyage/v1", **shared),
        embed_jina(base_url=f"{server.url}/jina/v1", **shared),
    ]
    for embedder in embedders:
        assert embedder.embed(["a"]).tolist() == [[1, 1, 97]]
    mistral, voyage, jina = (seen.body for seen in server.seen)
    assert (mistral["output_dimension"], mistral["encoding_format"]) == (3, "base64")
    assert (voyage["output_dimension"], voyage["encoding_format"]) == (3, "base64")
    assert (jina["dimensions"], jina["embedding_type"]) == (3, "base64")


def test_a_provider_without_a_list_says_so(server):
    for name in ("voyage", "jina", "azure_openai", "google_vertex", "bedrock", "snowflake"):
        with pytest.raises(EmbedError, match="does not list its models"):
            MAKERS[name](server.url).list_models()
    silent = [p.name for p in PROVIDERS if not p.lists_models]
    assert sorted(silent) == ["azure_openai", "bedrock", "google_vertex", "jina", "snowflake", "voyage"]


@pytest.mark.parametrize(
    "config",
    [
        {"provider": "snowflake", "model": "m", "account": "evil.example/x"},
        {"provider": "snowflake", "model": "m", "account": "x@evil.example#"},
        {"provider": "google_vertex", "model": "m", "project_id": "p", "location": "evil.example/#"},
        {"provider": "bedrock", "model": "titan", "region": "evil.example/"},
    ],
)
def test_a_setting_cannot_lead_the_request_to_another_host(config):
    with pytest.raises(EmbedError, match="may hold letters, digits, dots and dashes only"):
        embedder_from_config(config)


def test_a_wrong_type_in_a_configuration_is_an_embed_error():
    with pytest.raises(EmbedError, match="OpenAI needs the name of a model, not 7"):
        embedder_from_config({"provider": "openai", "model": 7})
    with pytest.raises(EmbedError, match="do not fit"):
        embedder_from_config({"provider": "openai", "model": "m", "base_url": 7})


def test_providers_tell_their_settings():
    azure = next(p for p in PROVIDERS if p.name == "azure_openai")
    assert azure.settings["model"] is ...
    assert azure.settings["api_version"] == "2023-05-15"
    assert azure.factory() is embed_azure_openai
