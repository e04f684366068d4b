"""How calm the curves of a default model are, and what that costs.

    python benchmarks/curves.py [--data FOLDER ...] [--tables a,b] [--output FILE]

Each table is split as in ``suite.py`` (seed 0, at most 10,000 training rows) and fitted twice: as
it is, and with the removal of small changes of direction switched off. The choice of the model is
the same in both. Reported for models with curves: log-loss on the test rows, changes of direction
per curve, and the columns that have any effect, of all columns.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markdown_table import table
from sklearn.metrics import log_loss
from suite_tables import Caps, find_tables, read_table, split

from geomix import GeometricMixtureClassifier
from geomix.core.calm import direction_changes
from geomix.core.spline_parts import CurvePart
from geomix.search import finish

ROOT = Path(__file__).resolve().parent.parent
DATA = (ROOT.parent / "shared" / "data", ROOT.parent / "shared" / "data" / "second")
OUTPUT = ROOT / "benchmarks" / "results" / "curves.md"
FLAT = 1e-9


@dataclass(frozen=True)
class Curves:
    """Of one model: log-loss, changes of direction of each curve, and shown columns."""

    log_loss: float
    changes: float
    n_shown: int
    n_columns: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", default=DATA, metavar="FOLDER")
    parser.add_argument("--tables", default="", metavar="A,B")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    wanted = parser.parse_args()
    names = [name for name in wanted.tables.split(",") if name]
    parts = [
        (folder.name, [t for t in find_tables(folder) if not names or t.name in names])
        for folder in wanted.data
    ]
    text = "\n\n".join(section(name, tables) for name, tables in parts if tables)
    wanted.output.write_text("# Calm curves\n\nMade by `python benchmarks/curves.py`.\n\n" + text)


def section(name: str, tables: list[Any]) -> str:
    """A table of one part of the benchmark tables, with the means below it."""
    rows, gains, before, after = [], [], [], []
    for one in tables:
        data = split(*read_table(one.path), 0, Caps())
        calm = measured(data)
        if calm is None:
            continue
        kept, finish.CALM = finish.CALM, finish.CALM._replace(tolerances=())
        plain = measured(data)
        finish.CALM = kept
        assert plain is not None
        gains.append(np.log(calm.log_loss / plain.log_loss))
        before.append(plain.changes)
        after.append(calm.changes)
        rows.append(
            [
                one.name,
                f"{plain.log_loss:.4f}",
                f"{calm.log_loss:.4f}",
                f"{plain.changes:.1f}",
                f"{calm.changes:.1f}",
                f"{calm.n_shown} of {calm.n_columns}",
            ]
        )
        print(*rows[-1], flush=True)
    head = ["table", "log-loss", "calm", "changes per curve", "calm", "columns with an effect"]
    change = 100.0 * (np.exp(np.mean(gains)) - 1.0)
    mean = (
        f"Mean change of log-loss {change:+.2f} %; changes of direction per curve "
        f"{np.mean(before):.1f} before, {np.mean(after):.1f} after."
    )
    return "\n".join([f"## Part {name}", "", *table(head, rows), "", mean, ""])


def measured(data: Any) -> Curves | None:
    """None for a model without curves."""
    clf = GeometricMixtureClassifier(random_state=0).fit(data.X_train, data.y_train)
    model = clf.model_
    if model.lift.kind != "spline":
        return None
    P = clf.predict_proba(data.X_test)
    changes, shown = [], set()
    for part, steps in model.lift.by_part():
        weights = model.planes.weights[:, steps]
        if isinstance(part, CurvePart):
            slopes = weights[:, : len(part.knots) - 1]
            values = np.cumsum(np.where(np.abs(slopes) > FLAT, slopes, 0.0), axis=1)
            changes += [direction_changes(np.append(0.0, one)) for one in values]
        if np.abs(weights).max(initial=0.0) > FLAT:
            shown.update(part.columns)
    loss = log_loss(data.y_test, P, labels=np.arange(P.shape[1]))
    return Curves(loss, float(np.mean(changes or [0])), len(shown), model.n_features)


if __name__ == "__main__":
    main()
