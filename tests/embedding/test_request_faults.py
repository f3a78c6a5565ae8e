"""Whatever goes wrong on the way, a vector that arrives belongs to its text."""

from __future__ import annotations

import json
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragnar_core.embedding import EmbedRunError, embed_openai
from ragnar_core.embedding.http import Reply, UnreachableError

FAULTS = ("none", "none", "reversed", "no index", "short", "duplicate", "html", "429", "500", "timeout")


class Network:
    """A provider behind a bad line: takes `most` texts a request, and answers by the list of faults."""

    def __init__(self, faults: list[str], most: int, poison: str | None) -> None:
        self.faults = faults
        self.most = most
        self.poison = poison

    def send(self, request, connect_seconds, read_seconds):
        texts = json.loads(request.body)["input"]
        if len(texts) > self.most:
            return Reply(413, "too many", {})
        if self.poison in texts:
            return Reply(400, '{"error": {"message": "no"}}', {})
        fault = self.faults.pop() if self.faults else "none"
        data = [{"index": i, "embedding": [len(text), ord(text[0]), 1]} for i, text in enumerate(texts)]
        if fault == "timeout":
            raise UnreachableError("did not answer", True)
        if fault in ("429", "500"):
            return Reply(int(fault), "later", {"retry-after-ms": "1"})
        if fault == "html":
            return Reply(200, "<html>", {})
        if fault == "reversed":
            data.reverse()
        elif fault == "no index":
            data = [{"embedding": item["embedding"]} for item in data]
        elif fault == "short":
            data.pop()
        elif fault == "duplicate":
            data.append(data[0])
        return Reply(200, json.dumps({"data": data}), {})


texts = st.lists(st.text("abcdef ", max_size=12), max_size=40)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    texts,
    st.lists(st.sampled_from(FAULTS), max_size=12),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(0, 39)),
)
def test_a_vector_belongs_to_its_text(texts, faults, most, batch_size, concurrency, poisoned):
    poison = None
    if poisoned is not None and poisoned < len(texts):
        poison = texts[poisoned] = "poison"
    network = Network(list(faults), most, poison)
    embedder = embed_openai(
        "m",
        base_url="http://localhost/v1",
        batch_size=batch_size,
        concurrency=concurrency,
        first_wait=0.001,
        longest_wait=0.002,
        too_long="refuse",
    )
    blank = np.array([not text.strip() for text in texts], dtype=bool)
    with patch("ragnar_core.embedding.request.send", network.send):
        try:
            out, done, failure = embedder.embed(texts), np.ones(len(texts), dtype=bool), None
        except EmbedRunError as error:
            failure = error
            done = error.done
            out = error.vectors if error.vectors is not None else np.full((len(texts), 3), np.nan)
    assert np.isnan(out[blank]).all()
    assert done[blank].all()
    for i in np.flatnonzero(done & ~blank):
        assert out[i].tolist() == [len(texts[i]), ord(texts[i][0]), 1]
    assert np.isnan(out[~done]).all()
    if failure is None:
        assert poison is None
        assert done.all()
    elif poison is None:
        # Two malformed answers to one request are the one thing that is not waited out.
        assert sum(fault in ("short", "duplicate", "html") for fault in faults) >= 2
    elif failure.position is not None:
        assert texts[failure.position] == "poison"
