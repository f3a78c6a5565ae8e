"""Choosing an embedding model: built in, from a service, or from a folder; tested before anything is paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.shared.models import BGE, MODELS, WORDLLAMA, price_of
from pages.shared.shell import plain
from ragnar_core import Embedder, RagnarError, default_available, embed_default, embed_static
from ragnar_core.chunking.report import EmbeddingCost
from ragnar_core.embedding import PROVIDERS, Provider, embed_files, static_available

_SECRET = ("api_key", "access_token")
_NUMBERS = ("dims",)


@dataclass(frozen=True)
class Choice:
    """What was picked, how to make it, what it costs, and why it cannot be used yet, if so."""

    make: Callable[[], Embedder]
    cost: EmbeddingCost
    problem: str | None = None


_BUILT_IN = {BGE: (embed_default, default_available), WORDLLAMA: (embed_static, static_available)}
_FOLDER = "A model folder on the server"


def model_form() -> Choice:
    titles = {provider.title: provider for provider in PROVIDERS}
    picked = st.selectbox(
        "Embedding model",
        [*_BUILT_IN, *titles, _FOLDER],
        key="build_model",
        persist_state="session",
        help="The built-in models run here, offline and free. A store keeps to the model it was made with.",
    )
    if picked in _BUILT_IN:
        make, available = _BUILT_IN[picked]
        return Choice(make, MODELS[picked], available())
    if picked == _FOLDER:
        folder = st.text_input(
            "Folder", key="model_folder", persist_state="session", placeholder="/models/all-MiniLM-L6-v2"
        )
        problem = None if folder.strip() else "Name the folder of the model."
        return Choice(lambda: embed_files(folder.strip()), EmbeddingCost(picked), problem)
    return _service(titles[picked])


def _service(provider: Provider) -> Choice:
    values: dict[str, Any] = {}
    names = list(provider.settings.items())
    grid = st.grid(2, min_column_width=180)
    for name, default in names[:3]:
        values[name] = _field(grid, provider, name, default)
    if len(names) > 3:
        with st.popover("More settings"):
            for name, default in names[3:]:
                values[name] = _field(st, provider, name, default)
    missing = [name for name, default in names if default is ... and not values[name]]
    given = {name: value for name, value in values.items() if value is not None}
    price = st.number_input(
        "USD a million tokens",
        0.0,
        100.0,
        price_of(str(values.get("model"))),
        0.01,
        key=f"price_{provider.name}",
        disabled=provider.local,
    )
    problem = f"{provider.title} needs {' and '.join(missing)}." if missing else None
    cost = EmbeddingCost(provider.title, dollars_per_million=price)
    choice = Choice(lambda: provider.factory()(**given), cost, problem)
    _try(choice, provider)
    return choice


def _field(place: Any, provider: Provider, name: str, default: Any) -> Any:
    key = f"model_{provider.name}_{name}"
    label = name.replace("_", " ").capitalize()
    if name in _SECRET:
        hint = f"from {provider.key_variable}" if provider.key_variable else "not needed"
        shown = place.text_input(
            label,
            key=key,
            type="password",
            placeholder=hint,
            persist_state="session",
            help="Kept in memory for this session only, never written anywhere.",
        )
        return shown or (default if default is not ... else None)
    if name in _NUMBERS:
        return place.number_input(
            label, 1, 100_000, None, key=key, persist_state="session", placeholder="the model's own"
        )
    text = place.text_input(
        label, "" if default in (None, ...) else str(default), key=key, persist_state="session"
    )
    return text.strip() or None


def _try(choice: Choice, provider: Provider) -> None:
    with st.container(horizontal=True):
        test = st.button("Test connection", icon=":material/network_check:", disabled=bool(choice.problem))
        show = provider.lists_models and st.button("List models", icon=":material/list:")
    if not (test or show):
        return
    try:
        with st.spinner("Asking …"):
            if test:
                st.success(plain(choice.make().test().sentence), icon=":material/check_circle:")
            else:
                _list(choice, provider)
    except RagnarError as error:
        st.error(plain(str(error)), icon=":material/error:")


def _list(choice: Choice, provider: Provider) -> None:
    make = choice.make if not choice.problem else lambda: provider.factory()("any")
    models = make().list_models()
    fit = [model.name for model in models if model.embeds is not False]
    st.markdown(
        "Models that may embed: " + (", ".join(f"**{plain(name)}**" for name in fit[:60]) or "none was named")
    )
