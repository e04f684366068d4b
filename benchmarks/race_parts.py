"""What each part of the race is worth: the default fit beside itself with one part switched off.

    python benchmarks/race_parts.py [--data FOLDER ...] [--tables a,b] [--seeds N]
        [--parts a,b] [--rows N] [--preset NAME] [--one-plane] [--output FILE]

Each table is split as in ``suite.py`` (at most 10,000 training rows, or ``--rows``). The parts:

    starts   the final training starts several times and keeps the lowest objective
    finals   the families that are left are compared once more, on five folds
    factor   tables over pairs of columns have a penalty of their own
    blend    models of one plane per class that raced are added where that clearly pays
    base     a family of several planes wins where it is clearly better with such an addition
    part     every rung has a part of the budget
    ties     a step of the search has to gain 0.1 nat over the validation rows
    walks    families that start far behind are not walked: on few rows 5 % behind their parent,
             else clearly behind the best, as their parent is
    pairs    several planes with pairs do not race on few rows
    steps    curves have knots beside the values at which the classes change at once
    width    pairs of columns that may get a table count in the budget
    folds    tables of 1,000 to 2,000 rows are cross-validated, and not split once
    dropped  models of one plane that were dropped are measured in the finals, to be added
    knots    curves of up to 64 knots need eight rows for each, and not sixteen
    room     the start of a family leaves half of the budget to later ones
    rungs    a rung with less than twice the rows of the last takes its place
    lines    on few rows several planes do not start from curves that are behind lines
    order    a weaker penalty is tried before a stronger one

Other settings are compared in the same way: ``half an error`` for the simplest family,
``smoothing 0.02``, ``rotated``, ``half budget``, ``eight starts``, ``calm to 0.2`` and the like.
With ``--one-plane`` every fit is one curve per column and class, without pairs.

Reported for both parts of the tables: log-loss on the test rows, the geometric mean of the ratio to
the default with its standard error, and the processor seconds of all fits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from markdown_table import table
from sklearn.metrics import log_loss
from suite_tables import Caps, find_tables, read_table, split

from geomix import GeometricMixtureClassifier, Recipe
from geomix.search import candidates, choosing, cost, finish, outcome, race, splits, winner
from geomix.training import preparation

ROOT = Path(__file__).resolve().parent.parent
DATA = (ROOT.parent / "shared" / "data", ROOT.parent / "shared" / "data" / "second")
LEAST = 1e-3  # a smaller log-loss counts as this one: ratios of nearly nothing mean nothing
OUTPUT = ROOT / "benchmarks" / "results" / "race_parts.md"


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def one_factor() -> Any:
    axis = candidates.FACTORS["pair penalty"]
    only = {**candidates.FACTORS, "pair penalty": axis._replace(low=axis.start, high=axis.start)}
    return changed(candidates, "FACTORS", only)


def whole_budget(settings: Any, folds: Any, _: int) -> cost.Budget:
    """The first rung may use all of the budget."""
    of_one_rung = cost.budget_for(settings, folds, n_rungs=1)
    return cost.Budget(of_one_rung.left + of_one_rung.part)


def part_of_budget(share: float) -> Any:
    """All races have a share of their operations."""
    whole = cost.OPERATIONS
    scaled = [{name: share * n for name, n in one.items()} for one in whole]
    return changed(cost, "OPERATIONS", type(whole)(*scaled))


def never(*_: Any) -> bool:
    return False


def columns_alone(_: Any, task: Any) -> int:
    """The width of a table without pairs of columns."""
    return int(task.rows.X.shape[1])


def every_rung(n_train: int) -> tuple[int, ...]:
    """The rungs of a race, however near to each other."""
    return tuple(dict.fromkeys(min(n_rows, n_train) for n_rows in splits.ROWS_PER_RUNG))


def stronger_first() -> Any:
    """The penalty's steps the other way round."""

    def turned(step: Callable[..., Any]) -> Callable[..., Any]:
        return lambda one, up, within: step(one, not up, within)

    axes = {name: turned(candidates.AXES[name]) for name in ("l2", "l2, fine")}
    return mock.patch.dict(candidates.AXES, axes)


def all_walks() -> Any:
    """Families that start far behind are walked, too."""
    off = ExitStack()
    margin = race.MARGIN_TO_DROP._replace(of_start=float("inf"))
    off.enter_context(changed(race, "MARGIN_TO_DROP", margin))
    off.enter_context(changed(race.Race, "_is_behind_in_vain", never))
    return off


def no_blend() -> Any:
    """Nothing is added to the winner, nor to the families that it is compared with."""
    off = ExitStack()
    off.enter_context(changed(choosing, "others_than", lambda *_: []))
    off.enter_context(changed(choosing, "with_others_added", lambda outcome, _: outcome))
    return off


class Variant(NamedTuple):
    """How a fit differs from the default one: a part that is switched off, or a recipe."""

    off: Callable[[], Any] = nullcontext
    recipe: Recipe | None = None


VARIANTS = {
    "default": Variant(),
    "eight starts": Variant(
        lambda: changed(choosing, "STARTS", choosing.STARTS._replace(number=8))
    ),
    "half budget": Variant(lambda: part_of_budget(0.5)),
    "quarter budget": Variant(lambda: part_of_budget(0.25)),
    "calm to 0.2": Variant(
        lambda: changed(finish, "CALM", finish.CALM._replace(tolerances=(0.02, 0.05, 0.1, 0.2)))
    ),
    "five folds": Variant(lambda: changed(splits, "FOLDS_UP_TO", {2000: 5})),
    "one start": Variant(lambda: changed(choosing, "STARTS", choosing.STARTS._replace(number=1))),
    "no finals": Variant(lambda: changed(splits.Rungs, "finals", property(lambda _: []))),
    "one penalty": Variant(one_factor),
    "no blend": Variant(no_blend),
    "same base": Variant(lambda: changed(winner, "_rivals", lambda *_: ())),
    "one part": Variant(lambda: changed(choosing, "budget_for", whole_budget)),
    "all walks": Variant(all_walks),
    "all families": Variant(lambda: changed(race.Race, "_needs_more_rows", never)),
    "no steps": Variant(lambda: changed(preparation, "step_knots", lambda *_: np.empty(0))),
    "no width": Variant(lambda: changed(cost, "_width", columns_alone)),
    "one split": Variant(lambda: changed(splits, "FOLDS_UP_TO", {300: 10, 1000: 5})),
    "finalists alone": Variant(
        lambda: changed(outcome.Runner, "is_dropped", property(lambda _: False))
    ),
    "sixteen rows": Variant(lambda: changed(preparation, "ROWS_PER_FIRST_KNOT", 16)),
    "no room": Variant(lambda: changed(race.Race, "_room_for_later", lambda *_: nullcontext())),
    "every rung": Variant(lambda: changed(splits, "rows_of_rungs", every_rung)),
    "from behind": Variant(lambda: changed(race.Race, "_starts_behind", never)),
    "stronger first": Variant(stronger_first),
    "half an error": Variant(lambda: changed(outcome, "ERRORS_TO_PREFER_SIMPLE", 0.5)),
    "no ties": Variant(lambda: changed(race, "NATS", race.NATS._replace(worth_a_step=0.0))),
    **{
        f"smoothing {share}": Variant(recipe=Recipe(label_smoothing=share))
        for share in (0.02, 0.01, 0.001, 0.0)
    },
    "no usage penalty": Variant(recipe=Recipe(usage_beta=0.0)),
    "rotated": Variant(recipe=Recipe(pca=0.95)),
}
PARTS = "one start,no finals,one penalty"
ONE_PLANE = {"lift": "spline", "n_planes": 1, "max_interactions": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", default=DATA, metavar="FOLDER")
    parser.add_argument("--tables", default="", metavar="A,B")
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--parts", default=PARTS, metavar="A,B", help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--rows", type=int, default=Caps().train, metavar="N")
    parser.add_argument("--preset", default="readable", metavar="NAME")
    parser.add_argument("--one-plane", action="store_true")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    wanted = parser.parse_args()
    names = [name for name in wanted.tables.split(",") if name]
    parts = [
        (folder.name, [t for t in find_tables(folder) if not names or t.name in names])
        for folder in wanted.data
    ]
    variants = {name: VARIANTS[name] for name in ("default", *wanted.parts.split(","))}
    settings = {"preset": wanted.preset, **(ONE_PLANE if wanted.one_plane else {})}
    text = "\n".join(
        section(name, some, wanted.seeds, variants, settings, Caps(train=wanted.rows))
        for name, some in parts
        if some
    )
    one_plane = " --one-plane" if wanted.one_plane else ""
    rows = "" if wanted.rows == Caps().train else f" --rows {wanted.rows}"
    preset = "" if wanted.preset == "readable" else f" --preset {wanted.preset}"
    options = f"{one_plane}{preset}{rows} --seeds {wanted.seeds}"
    command = f"python benchmarks/race_parts.py{options}"
    head = f"# Parts of the race\n\nMade by `{command} --parts {wanted.parts!r}`.\n\n"
    wanted.output.write_text(head + text)


def section(
    name: str,
    tables: list[Any],
    n_seeds: int,
    variants: dict[str, Variant],
    settings: dict[str, Any],
    caps: Caps,
) -> str:
    """A table of one part of the benchmark tables, with the geometric means below it."""
    rows, losses, seconds = [], [], np.zeros(len(variants))
    for one in tables:
        for seed in range(n_seeds):
            data = split(*read_table(one.path), seed, caps)
            found = [measured(data, seed, one, settings) for one in variants.values()]
            losses.append([loss for loss, _ in found])
            seconds += [took for _, took in found]
            rows.append([one.name, str(seed), *(f"{loss:.4f}" for loss in losses[-1])])
            print(*rows[-1], flush=True)
    logs = np.log(np.maximum(losses, LEAST))
    apart = logs[:, 1:] - logs[:, :1]
    ratios, errors = np.exp(apart.mean(axis=0)), apart.std(axis=0) / np.sqrt(len(apart))
    shown = [f"{one:.4f} ± {error:.4f}" for one, error in zip(ratios, errors, strict=True)]
    means = ["geometric mean of the ratio", "", "1", *shown]
    times = ["processor seconds", "", *(f"{took:.1f}" for took in seconds)]
    lines = table(["table", "seed", *variants], [*rows, means, times])
    return "\n".join([f"## Part {name}", "", *lines])


def measured(
    data: Any, seed: int, variant: Variant, settings: dict[str, Any]
) -> tuple[float, float]:
    """Test log-loss of a fit, and its processor seconds."""
    with variant.off():
        begun = time.process_time()
        clf = GeometricMixtureClassifier(
            random_state=seed, advanced=variant.recipe, **settings
        ).fit(data.X_train, data.y_train)
        took = time.process_time() - begun
    P = clf.predict_proba(data.X_test)
    return float(log_loss(data.y_test, P, labels=np.arange(P.shape[1]))), took


if __name__ == "__main__":
    main()
