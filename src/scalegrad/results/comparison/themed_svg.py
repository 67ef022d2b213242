"""A figure as SVG inside a page, in the page's own colours: light or dark, it follows."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from scalegrad.extras import need
from scalegrad.results.comparison.colours import PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)


def inline_svg(figure: Figure, name: str, alternative: str) -> str:
    """`figure` as an `<svg>` element without a background, each colour of `PALETTE` as `var(--NAME, COLOUR)`.

    So it follows a page that defines these names, and shows the colours themselves where nobody does.
    `name` keeps its inner references apart from those of the page's other figures; `alternative` is read aloud.
    Text stays text, in the page's font. The same figure gives the same SVG.
    """
    stream = io.StringIO()
    settings = {"svg.hashsalt": f"scalegrad {name}", "svg.fonttype": "none", "svg.id": name}
    with need("matplotlib", extra="plots").rc_context(settings):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = _METADATA.sub("", _HEAD.sub("", stream.getvalue()))
    for token, colour in PALETTE.items():
        svg = svg.replace(colour.lower(), f"var(--{token}, {colour.lower()})")
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)  # every figure calls its parts alike
    svg = re.sub(r"font-family: ?[^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg\b[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    title = alternative.replace("&", "&amp;").replace("<", "&lt;")
    return svg.replace("<svg", '<svg role="img"', 1).replace(">", f"><title>{title}</title>", 1)


def svg_width(svg: str) -> float:
    """How wide an `inline_svg` is meant to be, in points: 72 an inch."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    return float(found.group(1)) if found else 0.0
