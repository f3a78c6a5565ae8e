"""What colour each point of a map has: one of a few groups, or a place on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

GROUPS = 11
DOCUMENT, CLUSTER, SCORE, LENGTH = "Document", "Cluster", "Score", "Length"


@dataclass(frozen=True)
class Colouring:
    """`code` uint8 (n,): a group's number where `names` are given, else 0 to 255 between `low` and `high`.
    With `others` the last group is the rest."""

    title: str
    code: NDArray[np.uint8]
    names: list[str]
    counts: list[int]
    low: str = ""
    high: str = ""
    others: bool = False


def by_group(title: str, values: Any, *, in_order: bool = False) -> Colouring:
    """The largest groups by name; the rest as one. With `in_order` values are group numbers with names of their own."""
    codes, names = pd.factorize(pd.Series(values, dtype=object).map(_name), sort=in_order)
    sizes = np.bincount(codes, minlength=len(names))
    order = np.arange(len(names)) if in_order else np.argsort(-sizes, kind="stable")
    shown = order if len(names) <= GROUPS + 1 else order[:GROUPS]
    place = np.full(len(names), len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    labels, counts = [str(names[i]) for i in shown], [int(sizes[i]) for i in shown]
    others = len(shown) < len(names)
    if others:
        labels.append(f"{len(names) - len(shown):,} others")
        counts.append(int(sizes.sum() - sum(counts)))
    return Colouring(title, place[codes].astype(np.uint8), labels, counts, others=others)


def by_scale(title: str, values: Any, digits: int = 0) -> Colouring:
    """From the lowest value to the highest; a missing value counts as the lowest. Extremes beyond the 1st and 99th
    percentile share a colour, so that one of them does not take the colour from all others."""
    numbers = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    if not len(numbers) or np.isnan(numbers).all():
        return Colouring(title, np.zeros(len(numbers), np.uint8), [], [], "no values", "")
    low, high = np.nanpercentile(numbers, [1, 99])
    share = (
        np.clip((np.nan_to_num(numbers, nan=low) - low) / (high - low), 0, 1)
        if high > low
        else np.full(len(numbers), 0.5)
    )
    return Colouring(
        title, np.round(share * 255).astype(np.uint8), [], [], f"{low:,.{digits}f}", f"{high:,.{digits}f}"
    )


def attribute(title: str, values: pd.Series) -> Colouring:
    """A further column of the store: numbers with many values on a scale, everything else as groups."""
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if numeric and values.nunique() > GROUPS:
        return by_scale(title, values, 0 if pd.api.types.is_integer_dtype(values) else 3)
    return by_group(title, values)


def _name(value: Any) -> str:
    if value is None or value is pd.NA or (np.isscalar(value) and bool(pd.isna(value))):
        return "no value"
    return str(value)[:80]
