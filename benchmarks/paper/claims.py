"""What the paper claims, one by one, and whether it held here: a verdict with its numbers.

A claim is about the paper's method, so it is tested on the GMC recipe; our defaults are shown
beside it. The recipe learns from the training rows alone, so its rivals do, too, where the two
are compared; our defaults and the rivals beside them learn from training and validation rows.
"Level" and "ahead" are by one standard error of the paired seeds; one seed gives no verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from spread import spread

from paper import ablations, data
from paper.ablations import EITHER, LINEAR, RECIPE
from paper.differences import Difference, paired
from paper.measure import EQUAL_ROWS
from paper.models import OURS
from paper.results import ABLATIONS, MODELS, Results
from paper.tables import ESTIMATOR, SCORER, one_row, titles

HELD, PARTLY, NOT_HELD, UNKNOWN = "held", "partly held", "did not hold", "not measured"
RECIPE_MODEL, DEFAULTS, PLAIN = "geomix_paper", "geomix", "geomix_linear"
# One seed has no standard error.
FEWEST_SEEDS = 2


@dataclass(frozen=True)
class Verdict:
    """``source``: place in the paper; ``evidence``: the numbers, in plain words."""

    claim: str
    source: str
    outcome: str
    evidence: str


@dataclass(frozen=True)
class Tally:
    """On which data sets one model is ahead of, level with or behind another."""

    ahead: tuple[str, ...]
    level: tuple[str, ...]
    behind: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.ahead) + len(self.level) + len(self.behind)

    def text(self) -> str:
        text = (
            f"ahead on {len(self.ahead)}, level on {len(self.level)}, behind on {len(self.behind)}"
        )
        return text + (f" ({', '.join(self.behind)})" if self.behind else "") + f" of {self.n}"


def tally(
    results: Results, ours: str, theirs: str, sets: list[str], metric: str = "accuracy"
) -> Tally:
    found: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for name in sets:
        change = on_equal_rows(results, name, ours, theirs, metric)
        if change is None or change.n < FEWEST_SEEDS:
            continue
        kind = "level"
        if not (change.not_ahead and change.not_behind):
            kind = "ahead" if change.mean > 0 else "behind"
        found[kind].append(name)
    return Tally(*(tuple(names) for names in found.values()))


def on_equal_rows(
    results: Results, dataset: str, ours: str, theirs: str, metric: str
) -> Difference | None:
    """``ours`` minus ``theirs``, both fitted on as many rows."""
    their_metric = metric_of(results, dataset, theirs, metric) if ours == RECIPE_MODEL else metric
    return paired(results, dataset, ours, theirs, metric, their_metric=their_metric)


def metric_of(results: Results, dataset: str, rival: str, metric: str) -> str:
    """The metric of a rival beside the recipe: fitted on the training rows alone, if measured."""
    if rival in OURS or not results.by_seed(dataset, rival, metric + EQUAL_ROWS):
        return metric
    return metric + EQUAL_ROWS


def mean_beside_recipe(results: Results, dataset: str, rival: str) -> float:
    metric = metric_of(results, dataset, rival, "accuracy")
    return results.mean(dataset, rival, metric)


def sets_of(results: Results) -> list[str]:
    return results.datasets(data.names())


def outcome(good: int, total: int) -> str:
    if not total:
        return UNKNOWN
    return HELD if good == total else PARTLY if 2 * good > total else NOT_HELD


def average(numbers: list[float]) -> float:
    """Mean of those that were measured; NaN if none was."""
    known = [number for number in numbers if not np.isnan(number)]
    return float(np.mean(known)) if known else float("nan")


def name_of(key: str) -> str:
    return titles([key])[0]


# --- accuracy ---


def beats(results: Results, peers: tuple[str, ...], claim: str, source: str) -> Verdict:
    """Ahead of every one of ``peers`` on every data set."""
    good = total = 0
    parts = []
    for peer in peers:
        recipe = tally(results, RECIPE_MODEL, peer, sets_of(results))
        ours = tally(results, DEFAULTS, peer, sets_of(results))
        good, total = good + len(recipe.ahead), total + recipe.n
        parts.append(
            f"Against {name_of(peer)} the recipe is {recipe.text()}, our defaults {ours.text()}."
        )
    return Verdict(claim, source, outcome(good, total), " ".join(parts))


def over_linear(results: Results) -> Verdict:
    return beats(
        results,
        ("logistic", "linear_svm"),
        "GMC outperforms the linear baselines on all data sets.",
        "abstract, section 4.2",
    )


def over_neighbours(results: Results) -> Verdict:
    return beats(results, ("knn",), "GMC consistently outperforms k-NN.", "abstract")


def largest_margins(results: Results) -> Verdict:
    margins = {}
    for name in sets_of(results):
        best = max(mean_beside_recipe(results, name, one) for one in ("logistic", "linear_svm"))
        margins[name] = results.mean(name, RECIPE_MODEL, "accuracy") - best
    known = {name: margin for name, margin in margins.items() if not np.isnan(margin)}
    order = sorted(known, key=lambda name: -known[name])
    good = set(order[:3]) == {"moons", "circles", "spirals"}
    text = ", ".join(f"{name} {known[name]:+.3f}" for name in order)
    claim = "Its largest margins over linear models are on moons, circles and spirals."
    found = (HELD if good else NOT_HELD) if len(known) > 3 else UNKNOWN
    return Verdict(claim, "section 4.2", found, f"Recipe minus the better linear model: {text}.")


def competitive(
    results: Results, peers: tuple[str, ...], sets: tuple[str, ...], claim: str, source: str
) -> Verdict:
    """Not behind any of ``peers`` on any of ``sets`` (none given: all)."""
    names = [name for name in sets_of(results) if not sets or name in sets]
    good = total = 0
    parts = []
    for peer in peers:
        recipe, ours = (tally(results, key, peer, names) for key in (RECIPE_MODEL, DEFAULTS))
        gaps = [
            results.mean(name, RECIPE_MODEL, "accuracy") - mean_beside_recipe(results, name, peer)
            for name in names
        ]
        good, total = good + recipe.n - len(recipe.behind), total + recipe.n
        parts.append(
            f"Against {name_of(peer)} the recipe is {recipe.text()} (mean {average(gaps):+.3f}), "
            f"our defaults {ours.text()}."
        )
    return Verdict(claim, source, outcome(good, total), " ".join(parts))


def matches_kernels(results: Results) -> Verdict:
    return competitive(
        results,
        ("rbf_svm", "mlp"),
        ("moons", "circles", "spirals"),
        "On nonlinear sets, GMC with Fourier features matches or surpasses RBF-SVM and MLP.",
        "section 4.2",
    )


def digits_competitive(results: Results) -> Verdict:
    return competitive(
        results,
        ("rbf_svm", "mlp"),
        ("digits",),
        "On digits, GMC with Fourier features is competitive with RBF-SVM and MLP.",
        "section 4.2",
    )


def competitive_overall(results: Results) -> Verdict:
    return competitive(
        results,
        ("rbf_svm", "forest", "mlp"),
        (),
        "GMC is competitive with RBF-SVM, Random Forest and compact MLPs.",
        "abstract",
    )


def linear_suffices(results: Results) -> Verdict:
    names = [name for name in sets_of(results) if name in ("iris", "wine", "wdbc")]
    found = tally(results, PLAIN, DEFAULTS, names)
    text = ", ".join(
        f"{name} {results.mean(name, PLAIN, 'accuracy'):.3f} against "
        f"{results.mean(name, DEFAULTS, 'accuracy'):.3f}"
        for name in names
    )
    claim = "On iris, wine and wdbc a linear GMC suffices."
    good = found.n - len(found.behind)
    return Verdict(
        claim, "section 4.2", outcome(good, found.n), f"Linear against free lift: {text}."
    )


def glass_boxes(results: Results) -> Verdict:
    claim = "GMC matches GAM and EBM in accuracy."
    return competitive(results, ("gam", "ebm"), data.APPENDIX, claim, "table 8")


def f1_mirrors(results: Results) -> Verdict:
    gaps = [
        abs(
            results.mean(name, RECIPE_MODEL, "accuracy")
            - results.mean(name, RECIPE_MODEL, "macro_f1")
        )
        for name in sets_of(results)
    ]
    gaps = [gap for gap in gaps if not np.isnan(gap)]
    found = (HELD if max(gaps) <= 0.01 else NOT_HELD) if gaps else UNKNOWN
    text = (
        f"Largest gap between accuracy and macro-F1 of the recipe: {max(gaps, default=np.nan):.4f}."
    )
    return Verdict("Macro-F1 mirrors accuracy.", "section 4.2", found, text)


# --- calibration ---


def scaling_helps(results: Results) -> Verdict:
    text = []
    ratios = {}
    for key in (RECIPE_MODEL, DEFAULTS):
        before, after = (
            average([results.mean(name, key, metric) for name in sets_of(results)])
            for metric in ("ece_before", "ece")
        )
        ratios[key] = before / after
        text.append(f"{name_of(key)}: {before:.3f} before, {after:.3f} after.")
    found = (
        HELD if ratios[RECIPE_MODEL] >= 2 else PARTLY if ratios[RECIPE_MODEL] > 1.1 else NOT_HELD
    )
    claim = (
        "Temperature scaling takes the mean ECE from about 0.06 to about 0.02 (two to four times)."
    )
    return Verdict(claim, "abstract, section 4.2", found, " ".join(text))


def scaling_helps_wdbc(results: Results) -> Verdict:
    before, after = (results.mean("wdbc", RECIPE_MODEL, metric) for metric in ("ece_before", "ece"))
    found = UNKNOWN if np.isnan(before) else HELD if after <= before / 2 else NOT_HELD
    text = f"Recipe: {before:.3f} before, {after:.3f} after."
    return Verdict(
        "On wdbc the ECE drops from about 0.06 to about 0.02.", "section 4.2", found, text
    )


# --- cost ---


def single_digit(results: Results) -> Verdict:
    found = {name: one_row(results, name, RECIPE_MODEL, SCORER) for name in sets_of(results)}
    times = {name: path[1] for name, path in found.items() if path}
    good = sum(us < 10 for us in times.values())
    text = ", ".join(f"{name} {us:.2f}" for name, us in times.items())
    claim = "One example takes single-digit microseconds."
    return Verdict(claim, "abstract", outcome(good, len(times)), f"Recipe by `scorer`, us: {text}.")


def quicker_than_machines(results: Results) -> Verdict:
    good = total = 0
    parts = []
    for kind in (SCORER, ESTIMATOR):
        for peer in ("rbf_svm", "mlp"):
            ratios = []
            for name in sets_of(results):
                ours, theirs = (one_row(results, name, key, kind) for key in (RECIPE_MODEL, peer))
                if ours and theirs:
                    ratios.append(theirs[1] / ours[1])
            good, total = good + sum(ratio >= 1 for ratio in ratios), total + len(ratios)
            if ratios:
                span = f"{min(ratios):.1f} to {max(ratios):.1f}"
                parts.append(f"{kind}s: {name_of(peer)} takes {span} times as long.")
    claim = "Inference is faster than or comparable to RBF-SVM and MLP."
    return Verdict(claim, "abstract, section 4.2", outcome(good, total), " ".join(parts))


# --- planes ---


def concentrated(results: Results) -> Verdict:
    names = [name for name in sets_of(results) if name in data.APPENDIX]
    text, means = [], {}
    for key in (RECIPE_MODEL, PLAIN):
        found = {name: results.mean(name, key, "max_responsibility") for name in names}
        found = {name: value for name, value in found.items() if not np.isnan(value)}
        means[key] = average(list(found.values()))
        each = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        text.append(f"{name_of(key)}: mean {means[key]:.3f} ({each}).")
    found_ = (
        UNKNOWN
        if np.isnan(means[RECIPE_MODEL])
        else HELD
        if means[RECIPE_MODEL] > 0.98
        else NOT_HELD
    )
    text.append("Over the classes that have several planes.")
    claim = "Responsibilities concentrate: the largest is above 0.98 on average over five sets."
    return Verdict(claim, "section 5.1, appendix D", found_, " ".join(text))


def ablation_claim(results: Results, change: str, claim: str) -> Verdict:
    """``change`` makes accuracy or calibration worse, by more than its standard error."""
    hurt = wilder = total = 0
    parts = []
    for lift in (EITHER, LINEAR):
        base, other = (ablations.key(one, lift) for one in (RECIPE, change))
        for name in results.datasets(data.names(), ABLATIONS):
            gap, ece = (
                paired(results, name, other, base, metric, ABLATIONS)
                for metric in ("accuracy", "ece")
            )
            if gap is None or gap.n < FEWEST_SEEDS:
                continue
            before, after = (
                spread(list(results.by_seed(name, key, "accuracy", ABLATIONS).values()))
                for key in (base, other)
            )
            worse = not gap.not_behind or (ece is not None and not ece.not_ahead)
            hurt, wilder, total = hurt + worse, wilder + (after > before), total + 1
            text = "" if ece is None else f", ECE {ece.mean:+.3f} ± {ece.error:.3f}"
            parts.append(f"{name}, {lift}: {gap.mean:+.4f} ± {gap.error:.4f}{text}")
    evidence = (
        f"Accuracy or ECE worse by more than a standard error in {hurt} of {total}; deviation of "
        f"accuracy larger in {wilder} of {total} (half is chance). Change in accuracy: "
    )
    return Verdict(
        claim, "sections 3.5, 4.2", outcome(hurt, total), evidence + "; ".join(parts) + "."
    )


def annealing(results: Results) -> Verdict:
    claim = "Without annealing, accuracy or stability degrade."
    return ablation_claim(results, "no annealing", claim)


def usage_penalty(results: Results) -> Verdict:
    claim = "Without the usage-aware penalty, accuracy or stability degrade."
    return ablation_claim(results, "no usage-aware L2", claim)


def geometric_start(results: Results) -> Verdict:
    claim = "Without a geometry-aware start, accuracy or stability degrade."
    return ablation_claim(results, "random start", claim)


def dead_planes(results: Results) -> Verdict:
    """Does the penalty leave fewer idle planes?"""
    fewer = more = total = 0
    parts = []
    for name in results.datasets(data.names(), ABLATIONS):
        base, other = (ablations.key(one, LINEAR) for one in (RECIPE, "no usage-aware L2"))
        with_it, without = (
            results.mean(name, key, "idle_planes", ABLATIONS) for key in (base, other)
        )
        if np.isnan([with_it, without]).any():
            continue
        total += 1
        fewer += with_it < without - 1e-9
        more += with_it > without + 1e-9
        parts.append(f"{name} {with_it:.1%} with, {without:.1%} without")
    found = UNKNOWN if not total else HELD if fewer and not more else NOT_HELD
    claim = "The usage-aware penalty discourages dead planes."
    text = f"Share of planes that answer for under 1 % of their class's rows: {'; '.join(parts)}."
    return Verdict(claim, "section 3.4", found, text)


def complex_digits(results: Results) -> Verdict:
    counts: dict[str, list[int]] = {"1": [], "8": []}
    for run in results.runs:
        if (run.part, run.dataset, run.model) == ("models", "digits", RECIPE_MODEL):
            usage = results.metrics("digits", RECIPE_MODEL, run.seed, "usage ")
            for digit, seen in counts.items():
                own = [share for plane, share in usage.items() if plane.startswith(f"{digit} ")]
                seen.append(sum(share >= 0.01 for share in own))
    claim = 'More planes go to complex digits ("8") than to simple ones ("1").'
    if not counts["1"]:
        return Verdict(claim, "section 5", UNKNOWN, "Digits were not measured.")
    one, eight = (float(np.mean(counts[digit])) for digit in ("1", "8"))
    text = f"Planes in use, mean over the seeds: {eight:.1f} for 8, {one:.1f} for 1."
    return Verdict(claim, "section 5", HELD if eight > one else NOT_HELD, text)


CLAIMS: tuple[Callable[[Results], Verdict], ...] = (
    over_linear,
    largest_margins,
    over_neighbours,
    competitive_overall,
    matches_kernels,
    digits_competitive,
    linear_suffices,
    f1_mirrors,
    glass_boxes,
    scaling_helps,
    scaling_helps_wdbc,
    single_digit,
    quicker_than_machines,
    concentrated,
    complex_digits,
    annealing,
    usage_penalty,
    geometric_start,
    dead_planes,
)


def has_enough_seeds(results: Results) -> bool:
    """Whether any data set was measured with several seeds."""
    seeds: dict[str, set[int]] = {}
    for run in results.runs:
        if run.part == MODELS:
            seeds.setdefault(run.dataset, set()).add(run.seed)
    return any(len(found) >= FEWEST_SEEDS for found in seeds.values())


def judge(results: Results) -> list[Verdict]:
    """Every claim; one that could not be measured, or only with one seed, is marked so."""
    found = [claim(results) for claim in CLAIMS]
    if not has_enough_seeds(results):
        found = [replace(one, outcome=UNKNOWN) for one in found]
    return [replace(one, evidence="") if one.outcome == UNKNOWN else one for one in found]
