"""Map: every chunk of a store as a point in the plane."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from pages.shared import workspace
from pages.shared.shell import copy_as_python, header, plain, through_navigation
from ragnar_core import Store

through_navigation()
header("Map", "Every chunk as a point: near points have similar vectors. Two axes keep only a part of the distances.")
MANY = 100_000


@st.cache_data(show_spinner="Placing the chunks …", max_entries=8)
def places(_store: Store, location: str, revision: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Chunk ids, their first two principal components (n, 2), and the share of variance these keep."""
    vectors = _store.vectors()
    matrix = np.asarray(vectors.matrix[:MANY], np.float32)
    good = np.isfinite(matrix).all(axis=1)
    matrix = matrix[good] - matrix[good].mean(axis=0)
    covariance = matrix.T @ matrix
    values, axes = np.linalg.eigh(covariance)
    kept = float(values[-2:].sum() / max(values.sum(), 1e-12))
    return np.asarray(vectors.chunk_ids[:MANY])[good], matrix @ axes[:, :-3:-1], kept


def draw() -> None:
    store = workspace.current_store()
    counts = store.counts()
    if counts.chunks < 3:
        st.info("A map needs at least three chunks; this store has fewer.", icon=":material/scatter_plot:")
        return
    with workspace.page_errors():
        ids, xy, kept = places(store, str(store.location), store.revision)
        table = store.chunks()
    origin_of = dict(zip(table["chunk_id"], table["origin"].fillna("no origin"), strict=True))
    origins = np.array([origin_of.get(int(i), "") for i in ids])
    names, group = np.unique(origins, return_inverse=True)
    figure = go.Figure()
    for number, name in enumerate(names[:30]):
        at = group == number
        figure.add_scattergl(x=xy[at, 0], y=xy[at, 1], mode="markers", name=str(name)[-40:], customdata=ids[at],
                             marker={"size": 7, "opacity": 0.75}, hovertemplate="chunk %{customdata}<extra>%{fullData.name}</extra>")  # fmt: skip
    if len(names) > 30:
        at = group >= 30
        figure.add_scattergl(x=xy[at, 0], y=xy[at, 1], mode="markers", name="other documents", customdata=ids[at],
                             marker={"size": 6, "opacity": 0.5, "color": "#94a3b8"})  # fmt: skip
    figure.update_layout(height=620, dragmode="pan", margin={"l": 0, "r": 0, "t": 8, "b": 0}, legend={"font": {"size": 12}})
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    event = st.plotly_chart(figure, key="map", on_select="rerun", selection_mode=("points", "lasso"), config={"scrollZoom": True})
    st.caption(f"{len(ids):,} chunks; the two axes keep {kept:.0%} of the variance of {counts.dim} dimensions (PCA).")
    chosen = [int(point["customdata"][0] if isinstance(point["customdata"], list) else point["customdata"]) for point in event.selection.points]
    for row in store.fetch(chosen[:20]).itertuples(index=False) if chosen else []:
        with st.container(border=True):
            st.caption(f"{plain(row.origin or 'no origin')} · chunk {row.chunk_id}")
            st.code(row.text, language=None, wrap_lines=True, height=160)


draw()
copy_as_python("from ragnar_core import Store\n\nwith Store.connect(\"store.duckdb\") as store:\n    vectors = store.vectors()  # .chunk_ids, .matrix (n, dim)\n")
