"""The paper's recipe, step by step: what each change of it does on fresh seeds of the paper's sets.

    python benchmarks/recipe_steps.py --label NAME [--sets a,b] [--seeds 10 20] [--output FILE]
    python benchmarks/recipe_steps.py                  # only the table, from what was measured
    python benchmarks/recipe_steps.py --gaussians 260  # how many Gaussians get several planes

Each run measures the recipe as the code has it and adds a line per set and seed under its label,
so that labels compare states of the code. The splits are those of ``benchmarks/paper``: 60 % of the
rows train, 20 % validate, 20 % test. No table of that benchmark uses seeds 10 to 19.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import ledger
import numpy as np
from markdown_table import table
from paper.data import load, split_rows
from quality import quality
from spread import standard_error
from threadpoolctl import threadpool_limits
from timing import now, since

from geomix import GeometricMixtureClassifier, datasets
from geomix.training.plane_counts import find_clusters
from geomix.training.rows import Rows
from geomix.training.settings import Settings

OUTPUT = Path(__file__).resolve().parent / "results" / "recipe_steps.csv"
METRICS = (
    "log_loss", "accuracy", "ece", "n_planes", "lift", "kept_epoch", "kept_sharpness",
    "temperature", "cpu_seconds",
)  # fmt: skip
HEADER = ("label", "dataset", "seed", *METRICS)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--label", default="", metavar="NAME")
    parser.add_argument("--sets", default=",".join(datasets.NAMES), metavar="A,B")
    parser.add_argument("--seeds", type=int, nargs=2, default=(10, 20), metavar=("FROM", "TO"))
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE")
    parser.add_argument("--gaussians", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if options.gaussians:
        print(f"{split_gaussians(options.gaussians)} of {options.gaussians} got several planes.")
        return
    if options.label:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in options.sets.split(","):
                for seed in range(*options.seeds):
                    line = measured(name, seed)
                    ledger.append(options.output, HEADER, [[options.label, name, seed, *line]])
    lines = ledger.read(options.output)
    text = "\n\n".join(summary(lines, metric) for metric in ("log_loss", "accuracy"))
    options.output.with_suffix(".md").write_text(f"# The paper's recipe, step by step\n\n{text}\n")
    print(text)


def measured(name: str, seed: int) -> list[Any]:
    data = load(name)
    split = split_rows(data.X, data.y, seed)
    start = now()
    clf = GeometricMixtureClassifier.paper(random_state=seed)
    clf.fit(split.X_train, split.y_train, X_val=split.X_valid, y_val=split.y_valid)
    spent, model = since(start), clf.model_
    found = quality(clf.predict_proba(split.X_test), split.y_test)
    epochs = clf.history_.records
    kept = epochs[clf.n_iter_ - 1]
    return [
        f"{found['log_loss']:.6f}", f"{found['accuracy']:.6f}", f"{found['ece']:.6f}",
        model.planes.n_planes, model.lift.kind, clf.n_iter_, f"{kept.sharpness:.3f}",
        f"{model.temperature:.4f}", f"{spent.cpu:.3f}",
    ]  # fmt: skip


def split_gaussians(n_classes: int) -> int:
    """Classes drawn from one Gaussian, round or long, that get more than one plane."""
    rng, n_split = np.random.default_rng(0), 0
    for place in range(n_classes):
        n_columns, n_rows = (1, 2, 5)[place % 3], (40, 100, 150)[place // 3 % 3]
        longest, most = (1.0, 6.0)[place // 2 % 2], (4, 12)[place % 2]
        X = rng.standard_normal((n_rows, n_columns)) * np.linspace(longest, 1.0, n_columns)
        rows = Rows(X, np.zeros(n_rows, dtype=np.intp), np.ones(n_rows))
        settings = Settings(n_planes="silhouette", max_planes=most)
        n_split += int(find_clusters(rows, 1, None, settings, place).planes_per_class[0] > 1)
    return n_split


def summary(lines: list[dict[str, str]], metric: str) -> str:
    """Mean over the seeds by set and label; the difference of each label to the first is paired."""
    labels = list(dict.fromkeys(line["label"] for line in lines))
    by_label = {
        label: {
            (line["dataset"], line["seed"]): float(line[metric])
            for line in lines
            if line["label"] == label
        }
        for label in labels
    }
    sets = [name for name in datasets.NAMES if any(line["dataset"] == name for line in lines)]
    body = [[name, *(cell(by_label, label, (name,)) for label in labels)] for name in sets]
    body.append(["mean of the sets", *(cell(by_label, label, tuple(sets)) for label in labels)])
    return "\n".join([f"## {metric}", "", *table(["data", *labels], body)])


def cell(by_label: dict[str, Any], label: str, sets: tuple[str, ...]) -> str:
    """The mean of the sets' means and, beside the first label's, the paired difference."""
    own, first = by_label[label], next(iter(by_label.values()))
    means, changes, errors = [], [], []
    for name in sets:
        found = [value for (dataset, _), value in own.items() if dataset == name]
        both = [key for key in own if key[0] == name and key in first]
        if not found or not both:
            return "–"
        gaps = [own[key] - first[key] for key in both]
        means.append(np.mean(found))
        changes.append(np.mean(gaps))
        errors.append(standard_error(gaps))
    text = f"{np.mean(means):.4f}"
    if own is first:
        return text
    error = np.sqrt(np.sum(np.square(errors))) / len(sets)
    return f"{text} ({np.mean(changes):+.4f} ± {error:.4f})"


if __name__ == "__main__":
    main()
