"""Names in plots are text: dollars are no mathematics, and a leading _ hides nothing."""

import numpy as np
import pandas as pd
import pytest
from making import classifier
from matplotlib.text import Text

from geomix import plots

CLASSES = ["$50k-$100k", "_rest", r"$\frac{$"]
COLUMNS = ["pay $", r"$\sqrt{$"]


@pytest.fixture(scope="module")
def drawn():
    """Every display of a model whose classes and columns have such names."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((120, 2)), columns=COLUMNS)
    y = np.array(CLASSES)[np.digitize(X.iloc[:, 0] + X.iloc[:, 1] ** 2, [0.5, 1.5])]
    settings = {"lift": "linear", "n_planes": 2, "l2": 1e-3, "max_iter": 20, "random_state": 0}
    model = classifier(**settings).fit(X, y).model_
    spline = classifier(**{**settings, "lift": "spline", "n_planes": 1}).fit(X, y).model_
    row = X.iloc[:1]
    target = next(label for label in CLASSES if label != model.predict(row)[0])
    made = {
        "regions": plots.RegionDisplay.from_model(model, X, y, resolution=40),
        "responsibility": plots.ResponsibilityDisplay.from_model(
            model, X, y, CLASSES[0], resolution=40
        ),
        "union": plots.UnionDisplay.from_model(model, X, y, CLASSES[0], resolution=40),
        "usage": plots.UsageDisplay.from_model(model, X, y),
        "reliability": plots.ReliabilityDisplay.from_model(model, X, y),
        "class reliability": plots.ClassReliabilityDisplay.from_model(model, X, y),
        "roc": plots.RocDisplay.from_model(model, X, y),
        "projection": plots.ProjectionDisplay.from_model(model, X, y),
        "certificate": plots.CertificateDisplay.from_model(model, X, y),
        "counterfactual": plots.CounterfactualDisplay.from_model(model, row, target),
        "bars": plots.PlaneCardDisplay.from_model(model, CLASSES[0], 0, X),
        "curves": plots.PlaneCardDisplay.from_model(spline, CLASSES[2], 0, X),
    }
    return {name: one.plot() for name, one in made.items()}


def texts_of(display):
    """What matplotlib writes, after its reading of dollars."""
    display.figure_.canvas.draw()
    shown = [one for one in display.figure_.findobj(Text) if one.get_text()]
    return [one._preprocess_math(one.get_text()) for one in shown]


def test_every_display_writes_dollars_as_they_are(drawn):
    for name, display in drawn.items():
        for text, as_math in texts_of(display):
            assert not as_math, (name, text)


@pytest.mark.parametrize("name", ["regions", "roc", "projection", "counterfactual"])
def test_every_class_is_in_the_legend_whatever_its_first_character(drawn, name):
    legend = [text.get_text() for text in drawn[name].ax_.get_legend().get_texts()]
    written = [Text(text=one)._preprocess_math(one)[0].strip() for one in legend]
    for label in CLASSES:
        assert any(one.startswith(label) for one in written), (label, written)


@pytest.mark.parametrize("name", ["regions", "union", "responsibility"])
def test_columns_name_the_axes(drawn, name):
    ax = drawn[name].ax_
    written = [Text()._preprocess_math(one)[0] for one in (ax.get_xlabel(), ax.get_ylabel())]
    assert written == COLUMNS
