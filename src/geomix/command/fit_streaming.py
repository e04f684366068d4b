"""``geomix fit`` on rows that are never all in memory.

survey, scratch file, passes (``farfit``)  ->  one more look at the rows: which plane answers for
how many of them, and how good the answers are on those that were held out
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from typing import Any

from geomix.command.exit_codes import DATA, Failure, blamed_on, usage
from geomix.command.fit_in_memory import Fitted, Roles, figures_on_file, remembering
from geomix.command.messages import is_watched
from geomix.command.metrics import Figures, Tally, codes_of
from geomix.errors import InvalidParameterError
from geomix.out_of_core.file_source import HeldOut, TableSource
from geomix.tablefile.block import TEXT, Block

# A table of more cells than this is streamed unless told otherwise. The limit is the table's and
# not the machine's, so that the same command gives the same model everywhere; so many cells take
# some 2 GB in memory.
MOST_CELLS = 30_000_000


def check_can_stream(estimator: Any) -> None:
    """Refuse parameters that need all rows in memory."""
    from geomix.out_of_core.fit import settled

    try:
        settled(estimator.settings())
    except InvalidParameterError as error:
        raise usage(f"{error} Leave --stream out, or that parameter.") from error


def can_stream(estimator: Any) -> bool:
    try:
        check_can_stream(estimator)
    except Failure:
        return False
    return True


def fit_streamed(a: Any, estimator: Any, roles: Roles, share: float | None) -> Fitted:
    from geomix.out_of_core.fit import fit_estimator

    source = _source(a, roles, share)
    started = time.perf_counter()
    with blamed_on(DATA):
        model = fit_estimator(estimator, source).model_
        class_rows, model, figures = _looked_back(model, roles, source)
    seconds = time.perf_counter() - started
    if share is None:
        figures = figures_on_file(model, a)
    return Fitted(model, class_rows, source.n_held_out, figures, seconds, streamed=True)


def _source(a: Any, roles: Roles, share: float | None) -> TableSource:
    return TableSource(
        roles.table,
        roles.target,
        roles.learnt,
        fixed=dict.fromkeys(roles.categorical, TEXT),
        weight=roles.weight,
        scratch=a.scratch,
        single=a.single,
        drops_unlabelled=a.drop_unlabelled,
        held_out=None if share is None else HeldOut(share, a.seed),
        shown=_with_bar if is_watched(a) else lambda title, blocks: blocks,
    )


def _looked_back(
    model: Any, roles: Roles, source: TableSource
) -> tuple[dict[str, int], Any, Figures | None]:
    """Rows by class, the model with what it is to remember, and figures of the rows held out."""
    from geomix.explain.drift import CellCounts, cell_counts

    class_rows: collections.Counter[Any] = collections.Counter()
    answered: CellCounts | None = None
    tally = Tally(model)
    for learn, held in source.cut("asking the model"):
        if len(learn):
            one = cell_counts(model, learn.X)
            answered = one if answered is None else answered + one
            class_rows.update(learn.y.tolist())
        if len(held):
            tally.add(model.predict_proba(held.X), codes_of(model, held.y), held.weight)
    by_text = {str(label): class_rows[label] for label in model.classes.tolist()}
    figures = tally.figures() if tally.n_rows else None
    return by_text, remembering(model, roles, answered), figures


def _with_bar(title: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks of a pass, with a line that counts their rows."""
    from tqdm import tqdm

    with tqdm(desc=f"geomix fit: {title}", unit=" rows", unit_scale=True, leave=False) as bar:
        for block in blocks:
            yield block
            bar.update(block.n_rows)
