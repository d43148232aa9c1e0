"""One trajectory, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Sequence

from rollout_cassettes.display import shading
from rollout_cassettes.display.amounts import readable_number
from rollout_cassettes.display.html import MONOSPACE, element, escaped, folded, lines
from rollout_cassettes.display.outline import outline
from rollout_cassettes.display.sparkline import sparkline
from rollout_cassettes.trajectories.trajectory import Trajectory
from rollout_cassettes.trajectories.view import per_token, title_of, token_texts

_WIDTH = 60  # characters, of a spark line
_MOST_TOKENS = 4096
_SHADE = "255,110,60"
_BLOCK = (
    f"{MONOSPACE};white-space:pre-wrap;overflow-wrap:anywhere;margin:2px 0 8px;padding:2px 8px;"
    "border-left:3px solid rgba(128,128,128,0.4)"
)


def trajectory_html(row: Trajectory) -> str:
    """Make the view of a trajectory."""
    texts = token_texts(row)
    parts = [element("div", element("b", escaped(title_of(row))), "margin:4px 0")]
    parts += _section("prompt", escaped(_prompt(row)))
    if row.response is not None and row.tokens is None:
        parts += _section("response", escaped(row.response))
    if texts is not None:
        name = "response" if row.response is None or row.tokens is not None else "tokens"
        parts += _section(name + _legend(row), _tokens(row, texts))
    parts.append(_figures(row))
    if row.metadata:
        parts.append(folded("other fields", lines("\n".join(outline(row.metadata)))))
    return element("div", "".join(parts))


def _section(name: str, content: str) -> list[str]:
    return [element("div", name, "opacity:0.7"), element("div", content, _BLOCK)]


def _prompt(row: Trajectory) -> str:
    if row.prompt_text is not None:
        return row.prompt_text
    return "" if row.prompt_ids is None else " ".join(map(str, row.prompt_ids.tolist()))


def _legend(row: Trajectory) -> str:
    if row.log_probs is None:
        return ""
    shades = zip(shading.LEGEND, shading.HTML, strict=True)
    parts = [
        element("span", escaped(t), f"{_background(alpha)};padding:0 4px;border-radius:3px")
        for t, alpha in shades
        if t
    ]
    return " · probability " + " ".join(parts)


def _tokens(row: Trajectory, texts: list[str]) -> str:
    figures = list(per_token(row))
    shown = [_token(row, figures, place, text) for place, text in enumerate(texts[:_MOST_TOKENS])]
    if len(texts) > _MOST_TOKENS:
        shown.append(escaped(f"… {len(texts) - _MOST_TOKENS} more tokens"))
    return "".join(shown)


def _token(
    row: Trajectory, figures: Sequence[tuple[str, list[float]]], place: int, text: str
) -> str:
    """Return a token: shaded, faint where the mask leaves it out, underlined where it is rewarded."""
    known = {name: values[place] for name, values in figures if place < len(values)}
    style = []
    if known.get("mask", 1) == 0:
        style.append("opacity:0.5;font-style:italic")
    elif "log-prob" in known:
        style.append(_background(shading.HTML[shading.shade(known["log-prob"])]))
    if known.get("reward"):
        style.append("border-bottom:2px solid rgba(40,160,90,0.9)")
    told = [f"{name} {readable_number(value)}" for name, value in known.items()]
    number = [] if row.response_ids is None else [f"id {row.response_ids[place]}"]
    told = [f"token {place}", *number, *told]
    return element("span", escaped(text), ";".join(filter(None, style)), title=", ".join(told))


def _background(alpha: float) -> str:
    return f"background:rgba({_SHADE},{alpha})" if alpha else ""


def _figures(row: Trajectory) -> str:
    """Make the spark lines of what there is for each token, and isn't the same for all."""
    made = []
    for name, values in per_token(row):
        if min(values) == max(values):
            continue
        ends = " to ".join(dict.fromkeys(map(readable_number, (min(values), max(values)))))
        made.append(spark_html(name, sparkline(values, _WIDTH), ends))
    return element("table", "".join(made), "border-collapse:collapse") if made else ""


def spark_html(name: str, line: str, ends: str) -> str:
    """Make a row with a name, a spark line, and from where to where it goes."""
    cells = (
        element("td", escaped(name), "text-align:left;padding:0 8px"),
        element("td", escaped(line), f"text-align:left;padding:0 8px;{MONOSPACE};white-space:pre"),
        element("td", escaped(ends), "text-align:left;padding:0 8px;opacity:0.7"),
    )
    return element("tr", "".join(cells))
