"""A report on a model: one HTML file that opens anywhere, and in which the model is alive.

    model.report(X, y, "report.html")

    asked.py       the rows as the model answered them
    metrics.py     how good the answers are, with intervals
    sample.py      the rows that the page carries, and the ranges of its controls
    words.py       the summary
    pictures.py, effect_pictures.py
                   where the lines, dots and bars of its pictures go
    live.py        what the page's JavaScript works with
    facts.py       all of it as plain values
    page.py        plain values as HTML, with templates/

The page runs the model from the document that ``geomix.export.to_json`` writes; its JavaScript is
in ``templates/``, a file for each idea, and is tested against the library.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from geomix.model import GeometricMixture
from geomix.modelfile import atomic
from geomix.report.facts import facts
from geomix.report.page import embedded_json, page

__all__ = ["report", "report_html"]

# A page beyond this is slow to open; its model is left out, which the page states.
LARGEST_MODEL = 8_000_000


def report(model: GeometricMixture, X: Any, y: Any, path: Any, **options: Any) -> None:
    """Write the report on ``model``, asked about rows ``X`` with labels ``y``, to ``path``.

    The file is replaced as a whole or not at all. Give rows that training has not seen: the
    figures are then those to expect.

    X_new : rows that came later, for the drift between them and ``X``
    title : of the page
    n_rows : rows of ``X`` that the page carries for its reader to choose from. They can be read by
        whoever has the file; 0 leaves them out
    n_counterfactuals : of how many of those the nearest row of another class is computed, at most;
        with many classes, and many planes with pairs of columns, of fewer
    ignore : numbers of findings not to report
    n_total : rows of the table that ``X`` was drawn from, evenly; None: ``X`` is all of it

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from geomix import GeometricMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GeometricMixtureClassifier(lift="linear", random_state=0).fit(X, y).model_
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.html"
    >>> model.report(X, y, path, title="Iris")
    >>> "<title>Iris</title>" in path.read_text()
    True
    """
    atomic.write_bytes(path, report_html(model, X, y, **options).encode())


def report_html(
    model: GeometricMixture,
    X: Any,
    y: Any,
    *,
    X_new: Any = None,
    title: str | None = None,
    n_rows: int = 48,
    n_counterfactuals: int = 24,
    ignore: Iterable[str] = (),
    n_total: int | None = None,
) -> str:
    """The report as a text; the parameters are those of ``report``."""
    for name, value in {"n_rows": n_rows, "n_counterfactuals": n_counterfactuals}.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"Got {name}={value!r}; expected an integer of at least 0.")
    shown = facts(
        model,
        X,
        y,
        X_new=X_new,
        title="Report on a geometric mixture" if title is None else str(title),
        n_rows=n_rows,
        n_counterfactuals=n_counterfactuals,
        ignore=ignore,
        n_total=n_total,
    )
    live = shown.pop("live")
    is_small = len(embedded_json(live["model"])) <= LARGEST_MODEL
    return page(shown, live if is_small else None)
