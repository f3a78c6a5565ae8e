"""robots.txt as RFC 9309 has it: the longest matching rule wins, `*` and `$` are understood."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

MOST_BYTES = 500_000


@dataclass(frozen=True)
class Robots:
    """What a site lets one user agent do.

    Attributes:
        rules: (pattern, allowed) of the group that applies.
        delay: seconds between two requests; None when unstated.
        sitemaps: addresses of sitemaps, for all user agents.
    """

    rules: tuple[tuple[str, bool], ...] = ()
    delay: float | None = None
    sitemaps: tuple[str, ...] = ()

    def allows(self, url: str) -> bool:
        """Whether the address may be fetched."""
        parts = urlsplit(url)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        matches = [(len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, path)]
        return max(matches)[1] if matches else True


def parse_robots(text: str, user_agent: str) -> Robots:
    """The rules for a user agent (its first word, without version, counts), or those for `*`."""
    product = re.split(r"[/\s]", user_agent.strip(), maxsplit=1)[0].lower()
    groups: dict[str, tuple[list[tuple[str, bool]], list[float]]] = {}
    sitemaps: list[str] = []
    agents: list[str] = []
    in_rules = False
    for line in text[:MOST_BYTES].lstrip("\ufeff").splitlines():
        key, colon, value = line.split("#", 1)[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "sitemap":
            sitemaps.append(value)
        elif key == "user-agent":
            if in_rules:
                agents, in_rules = [], False
            agents.append(value.lower())
            groups.setdefault(value.lower(), ([], []))
        elif key in ("allow", "disallow", "crawl-delay"):
            in_rules = True
            for agent in agents:
                rules, delays = groups[agent]
                if key == "crawl-delay":
                    delays.extend(_seconds(value))
                elif value:
                    rules.append((value, key == "allow"))
    rules, delays = groups.get(product) or groups.get("*") or ([], [])
    return Robots(tuple(rules), delays[0] if delays else None, tuple(sitemaps))


def _seconds(value: str) -> list[float]:
    return [float(value)] if re.fullmatch(r"\d{1,4}(\.\d+)?", value) else []


def _matches(pattern: str, path: str) -> bool:
    """Each part between two `*` at its first place behind the last one: linear, whatever the pattern."""
    anchored = pattern.endswith("$")
    first, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    last = parts.pop() if anchored and parts else None
    for part in parts:
        found = path.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    if last is not None:
        return path.endswith(last) and len(path) - len(last) >= position
    return not anchored or position == len(path)


ALLOW_ALL = Robots()
ALLOW_NONE = Robots((("/", False),))
