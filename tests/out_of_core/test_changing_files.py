"""Files that change while they are read: refused by name, never fitted in silence."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from geomix import SchemaError, fit_files
from geomix.core.row_sums import PartSums
from geomix.out_of_core import parquet_source, table_source
from geomix.tablefile import unchanged

FIXED = {"lift": "linear", "n_planes": 1, "l2": 1e-2, "max_iter": 5, "random_state": 0}
FORMATS = ("csv", "parquet")
CHANGES = {
    "cut": lambda frame: frame.iloc[: len(frame) // 2],
    "longer": lambda frame: pd.concat([frame, frame]),
    "emptied": lambda frame: frame.iloc[:0],
    "columns swapped": lambda frame: frame[["b", "a", "y"]],
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 600).round(4), rng.normal(50, 9, 600).round(4)
    return pd.DataFrame({"a": a, "b": b, "y": np.where(a > 0.1 * (b - 50), "yes", "no")})


def write(frame, path):
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)


def before(monkeypatch, owner, name, act, call=1):
    """Make ``act`` happen before the given call of a function."""
    real, calls = getattr(owner, name), []

    def with_act(*arguments, **named):
        calls.append(name)
        if len(calls) == call:
            act()
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, with_act)
    return calls


@pytest.fixture(params=FORMATS)
def path(request, frame, tmp_path):
    made = tmp_path / f"rows.{request.param}"
    write(frame, made)
    return made


def source_of(path):
    return parquet_source.ParquetSource if path.suffix == ".parquet" else table_source.TableSource


@pytest.mark.parametrize("scratch", [None, False])
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_the_first_pass_is_refused(
    frame, path, monkeypatch, change, scratch
):
    before(monkeypatch, source_of(path), "sums", lambda: write(CHANGES[change](frame), path))
    with pytest.raises(SchemaError, match=rf"rows{path.suffix} changed while it was being read"):
        fit_files(path, "y", scratch=scratch, **FIXED)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_passes_of_training_is_refused(
    frame, path, monkeypatch, change
):
    before(monkeypatch, PartSums, "terms", lambda: write(CHANGES[change](frame), path), call=3)
    with pytest.raises(SchemaError, match=rf"rows{path.suffix} changed while it was being read"):
        fit_files(path, "y", scratch=False, **FIXED)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_during_the_first_pass_is_refused(frame, path, monkeypatch, change):
    module = parquet_source if path.suffix == ".parquet" else table_source
    before(monkeypatch, module, "survey_part", lambda: write(CHANGES[change](frame), path))
    with pytest.raises(SchemaError, match=rf"rows{path.suffix} changed while it was being read"):
        fit_files(path, "y", **FIXED)


def test_a_change_that_keeps_size_and_time_is_found_by_the_digest(frame, path, monkeypatch):
    def change_a_byte():
        kept = path.stat()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))

    before(monkeypatch, source_of(path), "sums", change_a_byte)
    with pytest.raises(SchemaError, match="its content or its time of change is another one"):
        fit_files(path, "y", **FIXED)


def test_a_file_that_is_gone_is_refused_by_name(path, monkeypatch):
    before(monkeypatch, source_of(path), "sums", path.unlink)
    with pytest.raises(SchemaError, match=r"rows\.\w+ changed while .* cannot be opened any more"):
        fit_files(path, "y", scratch=False, **FIXED)


@pytest.mark.parametrize("form", FORMATS)
def test_of_several_files_the_one_that_changed_is_named(frame, tmp_path, monkeypatch, form):
    parts = [tmp_path / f"part-{k}.{form}" for k in range(3)]
    for k, one in enumerate(parts):
        write(frame.iloc[k::3], one)
    before(monkeypatch, source_of(parts[1]), "sums", lambda: write(frame, parts[1]))
    with pytest.raises(SchemaError, match=rf"part-1\.{form} changed while it was being read"):
        fit_files(tmp_path / f"*.{form}", "y", **FIXED)


def test_what_happens_after_the_scratch_file_is_written_does_not_matter(frame, path, monkeypatch):
    expected = fit_files(path, "y", **FIXED)
    before(monkeypatch, PartSums, "terms", lambda: write(frame.iloc[:0], path))
    found = fit_files(path, "y", **FIXED)
    rows = frame[["a", "b"]]
    assert np.array_equal(found.predict_proba(rows), expected.predict_proba(rows))


def test_a_large_file_is_compared_by_parts_of_it(tmp_path):
    path = tmp_path / "large"
    size = 3 * unchanged.N_PARTS * unchanged.PART
    path.write_bytes(bytes(size))
    places = unchanged._places(size)
    assert (len(places), places[0], places[-1] + unchanged.PART) == (unchanged.N_PARTS, 0, size)
    state = unchanged.file_state(path)
    with open(path, "r+b") as file:
        file.seek(places[7])
        file.write(b"x")
    assert unchanged.file_state(path).digest != state.digest


def test_the_command_line_refuses_a_file_that_is_written_to(frame, tmp_path):
    path, model = tmp_path / "rows.csv", tmp_path / "out.geomix"
    write(frame, path)
    script = f"""
import sys
from geomix.out_of_core import table_source
real = table_source.TableSource.sums
def sums(self, reader):
    with open({str(path)!r}, "a") as file:
        file.write("1,2,yes\\n")
    return real(self, reader)
table_source.TableSource.sums = sums
from geomix.cli import main
sys.exit(main(["fit", {str(path)!r}, "--target", "y", "--output", {str(model)!r}, "--stream"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    assert "rows.csv changed while it was being read" in done.stderr
    assert not model.exists()
