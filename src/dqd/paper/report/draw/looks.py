"""How an algorithm looks: the same colour, dashes and marker in every figure; and what all figures share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

PAGE = 7.2  # inches, two columns of a page and the gap between them
FAINT = "#666666"
Options = dict[str, Any]  # of matplotlib


@dataclass(frozen=True)
class Look:
    """How an algorithm is drawn."""

    color: str
    dashes: str | tuple[float, tuple[float, ...]]
    marker: str
    hollow: bool = False


DASH, DOT, DASH_DOT = (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.2, 1, 1.2))
# Told apart by colour-blind readers too: the two nearest are 20 apart in CIELAB under protan-, deuter- and tritanopia
# (Machado et al. 2009), and 37 in full colour. A variant has the colour of its algorithm.
LOOKS = {
    "map-elites": Look("#999999", "-", "o"),
    "map-elites-line": Look("#000000", DASH, "s"),
    "cma-me": Look("#56b4e9", "-", "^"),
    "og-map-elites": Look("#e69f00", "-", "v"),
    "og-map-elites-line": Look("#994f88", DASH, "D"),
    "omg-mega": Look("#0a7d4f", "-", "P"),
    "cma-mega": Look("#2a52be", "-", "X"),
    "cma-mega-adam": Look("#cc3311", DASH, "*"),
    "og-map-elites-independent.paper-budget": Look("#e69f00", DOT, "v", hollow=True),
    "og-map-elites-independent.released-budget": Look("#e69f00", DASH_DOT, "<", hollow=True),
    "og-map-elites-line-independent.paper-budget": Look("#994f88", DOT, "D", hollow=True),
    "og-map-elites-line-independent.released-budget": Look("#994f88", DASH_DOT, "d", hollow=True),
}
OTHER = Look("#444444", DOT, ".")


def style(key: str) -> Options:
    """How matplotlib draws the line of an algorithm."""
    look = LOOKS.get(key, OTHER)
    face = "white" if look.hollow else look.color
    line = {"color": look.color, "linestyle": look.dashes, "linewidth": 1.1}
    return line | {"marker": look.marker, "markersize": 3.8, "markerfacecolor": face, "markeredgewidth": 0.5}


def plain(axes: Axes) -> None:
    """Axes with a faint grid and no frame above and to the right."""
    axes.grid(color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def number(value: float) -> str:
    """A whole number with a proper minus sign."""
    return f"{value:,.0f}".replace("-", "\N{MINUS SIGN}")
