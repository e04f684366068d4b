"""Write the golden model files of the current format version: python tests/make_golden.py

Once a format version is released its files are never made again: that they keep loading, with the
same bits of probability, is the promise they test.
"""

from __future__ import annotations

import json

from places import GOLDEN
from saved_models import MAKERS, case

from geomix.modelfile import manifest, saving


def folder():
    return GOLDEN / ".".join(map(str, manifest.VERSION))


def main():
    folder().mkdir(parents=True, exist_ok=True)
    for name in MAKERS:
        model, rows = case(name).model, case(name).rows[-12:]
        stem = folder() / name.replace(" ", "_")
        saving.save(model, stem.with_suffix(".geomix"))
        cells = [[None if cell != cell else cell for cell in row] for row in rows.tolist()]
        answers = [[p.hex() for p in row] for row in model.predict_proba(rows).tolist()]
        labels = model.predict(rows).tolist()
        known = {"rows": cells, "labels": labels, "probabilities": answers}
        stem.with_suffix(".json").write_text(json.dumps(known, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
