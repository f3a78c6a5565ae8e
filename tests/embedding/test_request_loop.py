"""The properties of the request loop, seen through OpenAI's protocol."""

from __future__ import annotations

import logging
import threading
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from ragnar_core.embedding import (
    EmbedCancelledError,
    EmbedReport,
    EmbedRunError,
    ProviderError,
    embed_openai,
    embedder_from_config,
)
from ragnar_core.errors import EmbedError

KEY = "sk-test-0123456789abcdef"
TEXTS = [chr(97 + i % 26) * (i + 1) for i in range(25)]
EXPECTED = [[i + 1, 1, 97 + i % 26] for i in range(25)]


def make(server, **options):
    options = {"api_key": KEY, "first_wait": 0.01, "retry_seconds": 5} | options
    return embed_openai("m", base_url=f"{server.url}/v1", **options)


def test_vectors_come_back_in_order_from_several_batches(server):
    out = make(server, batch_size=4, concurrency=3).embed(TEXTS)
    assert out.dtype == np.float32
    assert out.tolist() == EXPECTED
    assert sorted(len(batch) for batch in server.batches) == [1, 4, 4, 4, 4, 4, 4]


def test_requests_overlap_up_to_the_limit_and_no_further(server, protocol):
    server.rule = lambda texts: protocol.Fault(seconds=0.2)
    make(server, batch_size=2, concurrency=3).embed(TEXTS)
    assert server.most_at_once == 3


def test_blank_texts_are_never_sent(server):
    report = EmbedReport()
    out = make(server).embed(["a", "", "\n \n", None, "bb"], report=report)
    assert server.batches == [["a", "bb"]]
    assert out[[0, 4]].tolist() == [[1, 1, 97], [2, 1, 98]]
    assert np.isnan(out[1:4]).all()
    assert (report.requests, report.retries, report.tokens) == (1, 0, 3)


def test_nothing_to_embed_makes_no_request(server):
    assert make(server).embed([]).shape == (0, 0)
    assert server.seen == []


def test_answers_are_placed_by_index(server, protocol):
    def reverse(answer):
        return answer | {"data": answer["data"][::-1]}

    server.faults.append(protocol.Fault(change=reverse))
    assert make(server).embed(["a", "bb", "ccc"]).tolist() == [[1, 1, 97], [2, 1, 98], [3, 1, 99]]


def test_answers_without_index_are_taken_in_order(server, protocol):
    def bare(answer):
        return {"data": [{"embedding": item["embedding"]} for item in answer["data"]]}

    server.faults.append(protocol.Fault(change=bare))
    assert make(server).embed(["a", "bb"]).tolist() == [[1, 1, 97], [2, 1, 98]]


def missing(answer):
    return answer | {"data": answer["data"][:-1]}


def extra(answer):
    return answer | {"data": [*answer["data"], answer["data"][0]]}


def duplicate(answer):
    return answer | {"data": [item | {"index": 0} for item in answer["data"]]}


def ragged(answer):
    answer["data"][0]["embedding"] = [1.0]
    return answer


def words(answer):
    answer["data"][0]["embedding"] = ["one", "two", "three"]
    return answer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (missing, "answered with 1 vectors for 2 texts"),
        (extra, "answered with 3 vectors for 2 texts"),
        (duplicate, r"answered with the positions \[0, 0\] for 2 texts"),
        (ragged, "vectors of different lengths"),
        (words, "something else than numbers"),
        (lambda answer: {"result": 1}, "without a list of vectors"),
        (lambda answer: b"<html>proxy</html>", "without a list of vectors"),
        (lambda answer: b'{"data": [{"emb', "without a list of vectors"),
    ],
)
def test_a_malformed_answer_is_asked_for_once_more_and_then_refused(server, protocol, change, message):
    server.faults.extend([protocol.Fault(change=change)] * 2)
    with pytest.raises(ProviderError, match=message):
        make(server).embed(["a", "bb"])
    assert len(server.seen) == 2
    server.faults.append(protocol.Fault(change=change))
    assert make(server).embed(["a", "bb"]).tolist() == [[1, 1, 97], [2, 1, 98]]


@pytest.mark.parametrize(
    ("number", "message"),
    [(float("nan"), "NaN or infinite numbers for text 2 of 2"), (0.0, "vector of zeros for text 2 of 2")],
)
def test_poisonous_vectors_are_refused_with_the_place_of_the_text(server, protocol, number, message):
    def change(answer):
        answer["data"][0]["embedding"] = [number] * 3
        return answer

    server.faults.append(protocol.Fault(change=change))
    with pytest.raises(EmbedRunError, match=message):
        make(server).embed(["", "a"])


def test_another_dimension_than_before_is_refused(server, protocol):
    embedder = make(server)
    assert embedder.dim == 3

    def shorter(answer):
        answer["data"][0]["embedding"] = [1.0, 2.0]
        return answer

    server.faults.append(protocol.Fault(change=shorter))
    with pytest.raises(EmbedRunError, match=r"vectors of 2 numbers, expected 3\. Was the model changed\?"):
        embedder.embed(["a"])


def test_both_encodings_give_the_same_vectors(server):
    a = make(server, encoding="base64").embed(TEXTS)
    b = make(server, encoding="float").embed(TEXTS)
    assert [seen.body["encoding_format"] for seen in server.seen] == ["base64", "float"]
    assert a.tolist() == b.tolist() == EXPECTED


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_passing_trouble_is_waited_out(server, protocol, status):
    server.faults.extend([protocol.Fault(status, {"error": {"message": "later"}})] * 2)
    report = EmbedReport()
    assert make(server).embed(["a"], report=report).tolist() == [[1, 1, 97]]
    assert (report.requests, report.retries) == (3, 2)
    assert report.notes == ["2 of 3 requests had to be repeated."]


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "1"},
        {"retry-after-ms": "1000"},
        {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(days=-1))},
    ],
)
def test_retry_after_is_obeyed(server, protocol, headers):
    server.faults.append(protocol.Fault(429, {"error": {"message": "slow down"}}, headers))
    make(server, first_wait=30, longest_wait=30).embed(["a"])
    # Without the header the wait would be 15 s at least, which the time limit forbids.
    assert len(server.seen) == 2
    in_the_past = "+0000" in headers.get("Retry-After", "")
    assert server.seen[1].at - server.seen[0].at >= (0 if in_the_past else 1)


def test_googles_retry_delay_is_obeyed(server, protocol):
    body = {"error": {"message": "quota", "details": [{"@type": "RetryInfo", "retryDelay": "1s"}]}}
    server.faults.append(protocol.Fault(429, body))
    make(server, first_wait=30, longest_wait=30).embed(["a"])
    assert server.seen[1].at - server.seen[0].at >= 1


def test_a_wait_beyond_the_time_limit_is_not_begun(server, protocol):
    server.faults.append(
        protocol.Fault(429, {"error": {"message": "Rate limit reached."}}, {"Retry-After": "3600"})
    )
    with pytest.raises(
        ProviderError, match=r"Rate limit reached\. It asks to wait 3600 s\. Gave up after 1 try\."
    ):
        make(server).embed(["a"])
    assert len(server.seen) == 1


def test_trouble_that_does_not_pass_ends_within_the_time_limit(server, protocol):
    server.rule = lambda texts: protocol.Fault(503, b"<html><title>503 Service Unavailable</title>...</html>")
    with pytest.raises(ProviderError, match=r"answered HTTP 503: 503 Service Unavailable\.") as caught:
        make(server, retry_seconds=1).embed(["a"])
    assert str(caught.value).endswith(f" Gave up after {len(server.seen)} tries.")


def test_used_up_money_is_not_retried(server, protocol):
    body = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    server.faults.append(protocol.Fault(429, body))
    with pytest.raises(ProviderError, match="HTTP 429: You exceeded your current quota"):
        make(server).embed(["a"])
    assert len(server.seen) == 1


def test_one_429_holds_back_the_other_requests_too(server, protocol):
    # The first answer comes when the refusal is long known.
    server.faults.extend(
        [protocol.Fault(seconds=0.5), protocol.Fault(429, {"error": "slow"}, {"Retry-After": "1"})]
    )
    make(server, batch_size=1, concurrency=2).embed(["a", "b", "c", "d", "e", "f"])
    times = [seen.at for seen in server.seen]
    assert sum(t - times[0] < 0.9 for t in times) <= 4
    assert len(times) == 7


def test_a_smaller_limit_than_ours_is_found_and_kept(server, protocol):
    message = "batch size is invalid, it should not be larger than 10"

    def rule(texts):
        return protocol.Fault(400, {"error": {"message": message}}) if len(texts) > 10 else None

    server.rule = rule
    embedder = make(server, batch_size=20, concurrency=1)
    assert embedder.embed(TEXTS).tolist() == EXPECTED
    assert [len(batch) for batch in server.batches] == [20, 10, 10, 5]
    embedder.embed(TEXTS)
    assert [len(batch) for batch in server.batches[4:]] == [10, 10, 5]


def test_a_request_that_is_too_large_is_halved(server, protocol):
    def rule(texts):
        return protocol.Fault(413, b"Payload Too Large") if sum(map(len, texts)) > 100 else None

    server.rule = rule
    assert make(server).embed(TEXTS).tolist() == EXPECTED


def test_limits_of_items_and_tokens_make_the_batches(server, protocol):
    def rule(texts):
        if len(texts) > 2048 or sum(map(len, texts)) / 4 > 300_000:
            return protocol.Fault(400, {"error": {"message": "too large"}})
        return None

    server.rule = rule
    out = make(server, batch_size=4096).embed(["x" * 2000] * 2999 + ["yy"])
    assert out.shape == (3000, 3)
    assert out[[0, 2998, 2999]].tolist() == [[2000, 1, 120], [2000, 1, 120], [2, 1, 121]]
    assert len(server.batches) == 7


def test_the_guilty_text_is_found_and_named_and_the_others_are_kept(server, protocol):
    def rule(texts):
        if any("poison" in text for text in texts):
            return protocol.Fault(400, {"error": {"message": "content not allowed"}})
        return None

    server.rule = rule
    texts = [*TEXTS[:16], "", "some poison here", *TEXTS[18:]]
    with pytest.raises(ProviderError) as caught:
        make(server, batch_size=25).embed(texts)
    assert str(caught.value) == (
        f"OpenAI (m at {server.url[7:]})"
        + " refused text 18 of 25 (“some poison here…”) with HTTP 400: content not allowed."
    )
    assert caught.value.status == 400
    assert caught.value.done[:16].all()
    assert caught.value.done[16]
    assert not caught.value.done[17]
    assert caught.value.position == 17
    assert caught.value.vectors[:16].tolist() == EXPECTED[:16]


def test_a_wrong_setting_is_not_blamed_on_a_text(server, protocol):
    server.rule = lambda texts: protocol.Fault(400, {"error": {"message": "This model has no dimensions."}})
    with pytest.raises(ProviderError, match="answered HTTP 400: This model has no dimensions") as caught:
        make(server).embed(TEXTS)
    assert "text 1" not in str(caught.value)


def test_a_too_long_text_is_cut_until_it_fits_and_reported(server, protocol):
    def rule(texts):
        if max(map(len, texts)) > 1000:
            return protocol.Fault(400, {"error": {"message": "maximum context length is 1000 tokens"}})
        return None

    server.rule = rule
    report = EmbedReport()
    out = make(server).embed(["a", "", "b" * 2000, "c"], report=report)
    assert out[[0, 3]].tolist() == [[1, 1, 97], [1, 1, 99]]
    assert out[2].tolist() == [980, 1, 98]
    assert report.truncated == [2]
    assert report.notes[1] == "1 text is longer than the model reads; the end was cut off."


def test_a_text_that_had_to_be_cut_does_not_make_the_batches_smaller(server, protocol):
    def rule(texts):
        return (
            protocol.Fault(400, {"error": {"message": "too long"}}) if max(map(len, texts)) > 1000 else None
        )

    server.rule = rule
    embedder = make(server, batch_size=8, concurrency=1)
    embedder.embed(["a", "b" * 1200, "c", "d"])
    before = len(server.batches)
    embedder.embed(TEXTS[:16])
    assert [len(batch) for batch in server.batches[before:]] == [8, 8]


def test_a_500_that_means_too_large_is_not_waited_out(server, protocol):
    def rule(texts):
        message = "input is too large to process. increase the physical batch size"
        return protocol.Fault(500, {"error": {"message": message}}) if max(map(len, texts)) > 1000 else None

    server.rule = rule
    report = EmbedReport()
    out = make(server).embed(["a", "b" * 1200], report=report)
    assert out.tolist() == [[1, 1, 97], [840, 1, 98]]
    assert (report.retries, report.truncated) == (0, [1])


@pytest.mark.parametrize("key", [f"{KEY}\n", f"  {KEY} "])
def test_white_space_around_a_key_does_no_harm(server, key):
    assert make(server, api_key=key).embed(["a"]).tolist() == [[1, 1, 97]]


@pytest.mark.parametrize("key", ["sk-two lines\nof-a-key", "sk-…elided-0123"])
def test_a_key_that_cannot_be_one_is_not_shown(server, key):
    with pytest.raises(EmbedError, match="holds a character that no key has") as caught:
        make(server, api_key=key).embed(["a"])
    assert key[:6] not in str(caught.value)
    assert server.seen == []


def test_a_failing_credential_in_mid_run_is_said_as_it_is(server):
    answers = iter([KEY, KEY, KEY])

    def key():
        try:
            return next(answers)
        except StopIteration:
            raise EmbedError("Your login has run out: log in again.") from None

    with pytest.raises(EmbedRunError, match=r"^Your login has run out: log in again\.$") as caught:
        make(server, api_key=key, batch_size=1, concurrency=1).embed(["a", "b", "c"])
    assert caught.value.done.tolist() == [True, True, False]


def test_a_too_long_text_is_refused_when_asked(server, protocol):
    def rule(texts):
        return (
            protocol.Fault(400, {"error": {"message": "too long"}}) if max(map(len, texts)) > 1000 else None
        )

    server.rule = rule
    with pytest.raises(ProviderError, match="refused text 2 of 2"):
        make(server, too_long="refuse").embed(["a", "b" * 2000])


def test_a_failure_halfway_keeps_what_was_paid_for(server, protocol):
    def rule(texts):
        return protocol.Fault(403, {"error": {"message": "no more"}}) if "k" * 11 in texts else None

    server.rule = rule
    with pytest.raises(ProviderError, match="HTTP 403: no more") as caught:
        make(server, batch_size=5, concurrency=1).embed(TEXTS)
    assert caught.value.done.tolist() == [True] * 10 + [False] * 15
    assert caught.value.vectors[:10].tolist() == EXPECTED[:10]
    assert np.isnan(caught.value.vectors[10:]).all()


def test_a_failure_waits_for_the_answers_that_are_under_way(server, protocol):
    under_way = threading.Event()

    def rule(texts):
        if "a" in texts:
            return protocol.Fault(403, {"error": {"message": "no"}}, until=under_way)
        under_way.set()
        return protocol.Fault(seconds=0.3)

    server.rule = rule
    with pytest.raises(ProviderError) as caught:
        make(server, batch_size=5, concurrency=2).embed(TEXTS)
    assert caught.value.done.tolist() == [False] * 5 + [True] * 5 + [False] * 15


def test_cancel_comes_back_at_once_with_what_was_done(server, protocol):
    released = threading.Event()

    def rule(texts):
        return protocol.Fault(until=released) if "f" * 6 in texts else None

    server.rule = rule
    cancel = threading.Event()

    def progress(done, total):
        threading.Timer(0.2, cancel.set).start()

    with pytest.raises(EmbedCancelledError) as caught:
        make(server, batch_size=5, concurrency=1).embed(TEXTS, progress=progress, cancel=cancel)
    released.set()
    assert caught.value.done.tolist() == [True] * 5 + [False] * 20


def test_a_cancelled_wait_ends_at_once(server, protocol):
    server.rule = lambda texts: protocol.Fault(429, {"error": "slow"}, {"Retry-After": "4"})
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    with pytest.raises(EmbedCancelledError):
        make(server).embed(TEXTS, cancel=cancel)
    assert len(server.seen) == 1


def test_a_timeout_is_retried_and_then_says_how_long_it_waited(server, protocol):
    released = threading.Event()
    server.faults.append(protocol.Fault(until=released))
    assert make(server, read_seconds=1.5).embed(["a"]).tolist() == [[1, 1, 97]]
    released.set()
    server.rule = lambda texts: protocol.Fault(seconds=1)
    with pytest.raises(ProviderError, match=r"did not answer within 0\.2 s\."):
        make(server, read_seconds=0.2, retry_seconds=0.5).embed(["a"])


def test_progress_counts_texts(server):
    calls = []
    make(server, batch_size=10, concurrency=1).embed(
        TEXTS, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(10, 25), (20, 25), (25, 25)]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (
            401,
            {"error": {"message": f"Incorrect API key provided: {KEY}."}},
            "Incorrect API key provided: [key]",
        ),
        (
            401,
            {"error": {"message": "Incorrect API key provided: sk-te***cdef."}},
            "Incorrect API key provided: [key]",
        ),
        (401, {"error": {"message": f"{'x' * 290} {KEY}"}}, f"{'x' * 290} [key]"),
        (401, {"error": {"message": f"No such key: {KEY[8:]}"}}, "No such key: [key]."),
        (401, {"error": {"message": "y" * 400}}, f"{'y' * 299}… Check"),
        (
            403,
            {"detail": "Country not supported"},
            "HTTP 403: Country not supported. Check OPENAI_API_KEY or api_key.",
        ),
        (
            404,
            {"error": {"message": "The model does not exist"}},
            "HTTP 404: The model does not exist. Check the model",
        ),
        (405, b"", "HTTP 405: no explanation."),
        (418, {"errors": [{"message": "one"}, {"message": "two"}]}, "HTTP 418: one; two."),
        (402, {"detail": [{"msg": "field required"}]}, "HTTP 402: field required."),
        (301, b"", "HTTP 301: the address redirects to https://elsewhere.example/: use that one."),
    ],
)
def test_errors_show_the_providers_words_model_and_host_but_no_key(
    server, protocol, status, body, expected, caplog
):
    caplog.set_level(logging.DEBUG)
    server.faults.append(protocol.Fault(status, body, {"Location": "https://elsewhere.example/"}))
    embedder = make(server)
    with pytest.raises(ProviderError) as caught:
        embedder.embed(["a"])
    message = str(caught.value)
    assert message.startswith(f"OpenAI (m at {server.url[7:]}) ")
    assert expected in message
    assert caught.value.status == status
    assert len(server.seen) == 1
    everything = (
        "".join(traceback.format_exception(caught.value))
        + caplog.text
        + repr(embedder)
        + str(embedder.config)
    )
    assert KEY not in everything
    assert KEY[8:] not in everything
    assert KEY[:9] not in everything


def test_an_unreachable_local_server_is_asked_once(server):
    url = server.url
    server.close()
    with pytest.raises(ProviderError, match=r"could not be reached: .*refused.*Is OpenAI running at \S+\?$"):
        embed_openai("m", base_url=f"{url}/v1", api_key=KEY).embed(["a"])


def test_a_query_is_one_request_with_the_query_prefix(server):
    embedder = make(server, query_prefix="q: ", document_prefix="d: ")
    assert embedder.embed_query("abc").tolist() == [6, 1, 113]
    assert embedder.embed(["abc"]).tolist() == [[6, 1, 100]]
    assert embedder.embed_queries(["abc", "b"]).tolist() == [[6, 1, 113], [4, 1, 113]]
    assert server.batches == [["q: abc"], ["d: abc"], ["q: abc", "q: b"]]


def test_the_check_tells_dimension_latency_and_limits(server, protocol):
    server.rule = lambda texts: protocol.Fault(seconds=0.2)
    check = make(server, batch_size=7, concurrency=2).test()
    assert (check.dim, check.batch_items, check.concurrency) == (3, 7, 2)
    assert check.seconds >= 0.2
    assert check.sentence.startswith(f"m (at {server.url[7:]}): 3 dimensions, answered in ")
    assert server.batches == [["test"]]


def test_a_failing_check_does_not_wait_long(server, protocol):
    server.rule = lambda texts: protocol.Fault(503, {"error": "down"}, {"Retry-After": "20"})
    with pytest.raises(ProviderError, match="HTTP 503: down"):
        embed_openai("m", base_url=f"{server.url}/v1", api_key=KEY).test()
    assert len(server.seen) == 1


def test_config_makes_the_same_embedder_without_the_key(server):
    embedder = make(server, batch_size=9, dims=3, user="me", query_prefix="q ", too_long="refuse")
    assert embedder.config == {
        "provider": "openai",
        "model": "m",
        "base_url": f"{server.url}/v1",
        "dims": 3,
        "user": "me",
        "query_prefix": "q ",
        "document_prefix": "",
        "batch_size": 9,
        "read_seconds": 300.0,
        "retry_seconds": 5,
        "first_wait": 0.01,
        "too_long": "refuse",
        "dim": 3,
    }
    again = embedder_from_config(embedder.config)
    assert again.config == embedder.config
    assert again.dim == 3
    assert server.seen == []


def test_a_key_in_a_config_is_refused():
    with pytest.raises(EmbedError, match="must not hold api_key"):
        embedder_from_config({"provider": "openai", "model": "m", "api_key": KEY})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size of OpenAI must be a whole number of at least 1"),
        ({"concurrency": 65}, "concurrency of OpenAI may be 64 at most"),
        ({"read_seconds": 0}, "read_seconds of OpenAI must be more than 0"),
        ({"too_long": "explode"}, 'too_long must be "truncate" or "refuse"'),
        ({"encoding": "int8"}, 'encoding must be "float" or "base64"'),
        ({"base_url": "ftp://x"}, "must start with http"),
        ({"base_url": "https://me:secret@api.openai.com/v1"}, "must not hold a user or password"),
        ({"dims": 0}, "dims of OpenAI must be a whole number of at least 1"),
        ({"dim": "x"}, "dim of OpenAI must be a whole number of at least 1"),
        ({"query_prefix": 5}, "query_prefix of OpenAI must be text"),
        ({"model": " "}, "needs the name of a model"),
    ],
)
def test_settings_out_of_range_are_refused_at_once(options, message):
    with pytest.raises(EmbedError, match=message):
        embed_openai(**options)
