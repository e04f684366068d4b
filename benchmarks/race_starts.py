"""Where families start in the race, and which of them win: what decision 64 rests on.

    python benchmarks/race_starts.py [--data FOLDER ...] [--tables a,b] [--seeds N] [--rows N]
        [--output FILE]

Every family is walked, as if none started too far behind. Reported for each family that starts
from another one, its parent, over all tables and seeds: races in which it took part and races that
it won. The same for those where its first trial was more than 5 % behind the parent, clearly behind
the best of all (2 standard errors and 2 %), the latter and no better than a parent that is
itself more than 5 % behind the best, or with a parent more than 2 % behind a simpler family. Below
2,000 rows trials have folds, above one split.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from markdown_table import table
from race_parts import DATA, all_walks, changed, never
from suite_tables import Caps, find_tables, read_table, split

from geomix import GeometricMixtureClassifier
from geomix.search import race
from geomix.search.families import FAMILIES

OUTPUT = Path(__file__).resolve().parent / "results" / "race_starts.md"
FAR, BEHIND = 1.05, 1.02
PARENTS = {one.name: one.parent for one in FAMILIES}


class Trial(NamedTuple):
    """The loss of a trial, and whether it is clearly behind the best before it."""

    loss: float
    is_behind: bool


class Start(NamedTuple):
    """How a family began, as shares of losses, and whether it won."""

    family: str
    of_parent: float
    parent_of_best: float
    parent_of_simpler: float
    is_behind: bool
    won: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, nargs="+", default=DATA, metavar="FOLDER")
    parser.add_argument("--tables", default="", metavar="A,B")
    parser.add_argument("--seeds", type=int, default=2, metavar="N")
    parser.add_argument("--rows", type=int, default=700, metavar="N")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    wanted = parser.parse_args()
    names = [name for name in wanted.tables.split(",") if name]
    found = []
    for one in (one for folder in wanted.data for one in find_tables(folder)):
        if not names or one.name in names:
            for seed in range(wanted.seeds):
                found += list(starts(one.path, seed, wanted.rows))
            print(one.name, flush=True)
    command = f"python benchmarks/race_starts.py --rows {wanted.rows} --seeds {wanted.seeds}"
    command += f" --tables {wanted.tables}" if names else ""
    head = f"# Starts of families in the race\n\nMade by `{command}`. Races, and those won.\n\n"
    wanted.output.write_text(head + "\n".join(report(found)) + "\n")


def starts(path: Path, seed: int, n_rows: int) -> Iterator[Start]:
    data = split(*read_table(path), seed, Caps(train=n_rows))
    with everything_walked(), recorded() as trials:
        clf = GeometricMixtureClassifier(random_state=seed).fit(data.X_train, data.y_train)
    families = [one.family for one in clf.history_.trials]
    chosen = clf.history_.choice.chosen.family
    for name, parent in PARENTS.items():
        if name not in families or parent not in families:
            continue
        at = families.index(name)
        before = trials[:at]
        of_parent = min(
            one.loss for one, family in zip(before, families, strict=False) if family == parent
        )
        best = min(one.loss for one in before)
        simpler = min((one.loss for one in before[: families.index(parent)]), default=of_parent)
        loss, is_behind = trials[at]
        of_simpler = of_parent / simpler
        yield Start(name, loss / of_parent, of_parent / best, of_simpler, is_behind, name == chosen)


@contextmanager
def recorded() -> Iterator[list[Trial]]:
    """The trials of the fits inside."""
    trials: list[Trial] = []
    measure = race.measure

    def watched(
        candidate: Any, folds: Any, settings: Any, watch: Any, rivals: Any, **rest: Any
    ) -> Any:
        found = measure(candidate, folds, settings, watch, rivals, **rest)
        excess = [race.paired(found[0], rivals[0])] if rivals else []
        margin = race.MARGIN_TO_DROP.of_best * (rivals[0].loss if rivals else 0.0)
        is_behind = any(not one.is_within(race.ERRORS_TO_DROP, margin) for one in excess)
        trials.append(Trial(found[0].loss, is_behind))
        return found

    with changed(race, "measure", watched):
        yield trials


def everything_walked() -> ExitStack:
    off = ExitStack()
    off.enter_context(all_walks())
    off.enter_context(changed(race.Race, "_needs_more_rows", never))
    off.enter_context(changed(race.Race, "_starts_behind", never))
    return off


def report(found: list[Start]) -> list[str]:
    kinds = {
        "all": lambda one: True,
        "5 % behind the parent": lambda one: one.of_parent > FAR,
        "behind the best": lambda one: one.is_behind,
        "and its parent too": lambda one: (
            one.is_behind and one.of_parent >= 1.0 and one.parent_of_best > FAR
        ),
        "its parent 2 % behind a simpler family": lambda one: one.parent_of_simpler > BEHIND,
    }
    rows = []
    for name in dict.fromkeys(one.family for one in found):
        own = [one for one in found if one.family == name]
        some = [[one for one in own if is_of(one)] for is_of in kinds.values()]
        rows.append([name, *(f"{len(few)}, {sum(one.won for one in few)}" for few in some)])
    return table(["family", *kinds], rows)


if __name__ == "__main__":
    main()
