"""``geomix fit`` out of core: all rows are never in memory at once.

Training is in ``geomix.out_of_core``. One more pass over the rows then counts the rows of each
plane (for ``geomix drift``) and computes the metrics on the held-out rows.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from typing import Any

from geomix.command.exit_codes import DATA, CommandError, exit_code_for_bad_values, usage_error
from geomix.command.fit_in_memory import (
    ColumnRoles,
    FitResult,
    TestRows,
    with_training_facts,
)
from geomix.command.messages import is_interactive
from geomix.command.metrics import Metrics, MetricSums
from geomix.errors import InvalidParameterError
from geomix.out_of_core.table_source import HeldOut, TableSource
from geomix.table.labels import label_codes
from geomix.tablefile.block import TEXT, Block

# Larger tables are trained out of core by default. The limit does not depend on the machine, so
# that the same command gives the same model everywhere; 30 million cells take about 2 GB.
MOST_CELLS = 30_000_000


def check_can_stream(estimator: Any) -> None:
    """Refuse parameters that need all rows in memory."""
    from geomix.out_of_core.fit import out_of_core_settings

    try:
        out_of_core_settings(estimator.settings())
    except InvalidParameterError as error:
        raise usage_error(f"{error} Remove --stream or that parameter.") from error


def can_stream(estimator: Any) -> bool:
    try:
        check_can_stream(estimator)
    except CommandError:
        return False
    return True


def fit_streamed(args: Any, estimator: Any, roles: ColumnRoles, test: TestRows) -> FitResult:
    from geomix.out_of_core.fit import fit_estimator

    source = _source(args, roles, test.share)
    started = time.perf_counter()
    with exit_code_for_bad_values(DATA):
        model = fit_estimator(estimator, source).model_
        class_rows, model, metrics = _count_and_evaluate(model, roles, source)
    seconds = time.perf_counter() - started
    if test.share is None:
        metrics = test.file_metrics(model, args)
    return FitResult(model, class_rows, source.n_held_out, metrics, seconds, streamed=True)


def _source(args: Any, roles: ColumnRoles, share: float | None) -> TableSource:
    return TableSource(
        roles.table,
        roles.target,
        roles.features,
        fixed=dict.fromkeys(roles.categorical, TEXT),
        weight=roles.weight,
        scratch=args.scratch,
        single=args.single,
        drops_unlabelled=args.drop_unlabelled,
        held_out=None if share is None else HeldOut(share, args.seed),
        shown=_with_bar if is_interactive(args) else lambda title, blocks: blocks,
    )


def _count_and_evaluate(
    model: Any, roles: ColumnRoles, source: TableSource
) -> tuple[dict[str, int], Any, Metrics | None]:
    """Training rows by class, the model with its counts, and metrics on the held-out rows."""
    from geomix.explain.drift import CellCounts, cell_counts

    class_rows: collections.Counter[Any] = collections.Counter()
    counts: CellCounts | None = None
    sums = MetricSums(model)
    for train, held_out in source.cut("predicting"):
        if len(train):
            one = cell_counts(model, train.X)
            counts = one if counts is None else counts + one
            class_rows.update(train.y.tolist())
        if len(held_out):
            sums.add(
                model.predict_proba(held_out.X),
                label_codes(held_out.y, model.classes),
                held_out.weight,
            )
    by_text = {str(label): class_rows[label] for label in model.classes.tolist()}
    metrics = sums.metrics() if sums.n_rows else None
    return by_text, with_training_facts(model, roles, counts), metrics


def _with_bar(title: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks of one pass over the rows, with a progress bar."""
    from tqdm import tqdm

    with tqdm(desc=f"geomix fit: {title}", unit=" rows", unit_scale=True, leave=False) as bar:
        for block in blocks:
            yield block
            bar.update(block.n_rows)
