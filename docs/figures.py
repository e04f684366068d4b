"""Show geomix displays in the tutorials: they do not use pyplot, so the gallery misses them."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

DOTS_PER_INCH = 110


class DisplayScraper:
    """Saves the figure of every display that a block of a tutorial has drawn, once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def __repr__(self) -> str:  # sphinx-gallery keeps it in the build's configuration
        return "DisplayScraper()"

    def __call__(self, block: Any, block_vars: dict[str, Any], gallery_conf: Any) -> str:
        paths = []
        for value in list(block_vars["example_globals"].values()):
            figure = getattr(value, "figure_", None)
            if isinstance(figure, Figure) and id(figure) not in self.seen:
                self.seen.add(id(figure))
                paths.append(next(block_vars["image_path_iterator"]))
                figure.savefig(paths[-1], dpi=DOTS_PER_INCH)
        return figure_rst(paths, gallery_conf["src_dir"])
