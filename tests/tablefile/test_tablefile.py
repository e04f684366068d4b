"""The reader of delimited text against Python's csv module, on tables of odd cells and any cut."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomix.errors import TableFileError
from geomix.tablefile import ReadOptions, byte_source, open_table

CELLS = st.text(st.sampled_from("\",;\n\r aé0'"), max_size=6)


@st.composite
def tables(draw):
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=8))
    return [f"c{j}" for j in range(width)], rows


@given(
    tables(),
    st.sampled_from([",", ";"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    st.integers(1, 40),
)
def test_any_cut_of_any_table_reads_as_the_csv_module_does(
    tmp_path_factory, table, delimiter, line_end, quoting, chunk
):
    names, rows = table
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting)
    writer.writerow(names)
    writer.writerows(rows)
    path = tmp_path_factory.getbasetemp() / "cut.csv"
    path.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(byte_source, "CHUNK", chunk)
        opened = open_table(path, ReadOptions(delimiter=delimiter))
        read, places = [], []
        for block in opened.blocks(dict.fromkeys(names, "raw")):
            read.extend(zip(*(block.columns[name].to_pylist() for name in names), strict=True))
            places.extend(block.place(i) for i in range(block.n_rows))
    assert [list(row) for row in read] == rows
    assert places == [f"line {line}" for line in physical_lines(text.getvalue(), delimiter)]


def physical_lines(text, delimiter):
    """The line on which each record after the header starts, counted by the csv module."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    next(reader)
    lines, at = [], reader.line_num + 1
    for _ in reader:
        lines.append(at)
        at = reader.line_num + 1
    return lines


@given(st.lists(st.text(st.sampled_from('ab"'), max_size=5), min_size=2, max_size=2))
def test_quotes_within_bare_fields_are_characters(tmp_path_factory, cells):
    cells = ["x" + cell for cell in cells]  # no field begins with a quote
    path = tmp_path_factory.getbasetemp() / "bare.csv"
    path.write_text("p,q\n" + ",".join(cells) + "\n1,2\n")
    (block,) = open_table(path).blocks({"p": "raw", "q": "raw"})
    assert block.columns["p"].to_pylist() == [cells[0], "1"]
    assert block.columns["q"].to_pylist() == [cells[1], "2"]


def test_a_column_of_one_keeps_its_empty_lines(tmp_path):
    (tmp_path / "one.csv").write_text("a\n1\n\n3\n")
    (block,) = open_table(tmp_path / "one.csv").blocks({"a": "number"})
    assert block.columns["a"].to_pylist() == [1.0, None, 3.0]
    assert block.place(2) == "line 4"


def test_no_columns_wanted_still_counts_rows(tmp_path):
    (tmp_path / "two.csv").write_text("a,b\n1,2\n3,4\n")
    assert [block.n_rows for block in open_table(tmp_path / "two.csv").blocks({})] == [2]


def test_zstd_bzip2_and_xz_are_unfolded(tmp_path):
    import bz2
    import lzma

    import pyarrow as pa

    content = b"a,b\n1,2\n3,4\n"
    zstd = pa.Codec("zstd").compress(content, asbytes=True)
    for folded in (bz2.compress(content), lzma.compress(content), zstd):
        (tmp_path / "rows.csv").write_bytes(folded)
        (block,) = open_table(tmp_path / "rows.csv").blocks({"b": "number"})
        assert block.columns["b"].to_pylist() == [2.0, 4.0]


def test_fifty_thousand_columns_are_a_table(tmp_path):
    width = 50_000
    lines = [",".join(f"c{j}" for j in range(width)), ",".join(map(str, range(width)))]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    (block,) = open_table(tmp_path / "wide.csv").blocks({"c7": "number", "c49999": "text"})
    assert block.columns["c7"].to_pylist() == [7.0]
    assert block.columns["c49999"].to_pylist() == ["49999"]


@pytest.mark.parametrize("thousands", [None, "_"])
@pytest.mark.parametrize("mark", [" ", "\t", "\n", "\r", "\f", "\v"])
@pytest.mark.parametrize("is_after", [True, False])
def test_only_blanks_and_tabs_may_surround_a_number(tmp_path, thousands, mark, is_after):
    cell = f"1.5{mark}" if is_after else f"{mark}1.5"
    (tmp_path / "t.csv").write_bytes(f'a,b\n2.5,"x"\n"{cell}",y\n'.encode())
    table = open_table(tmp_path / "t.csv", ReadOptions(thousands=thousands))
    assert table.reads_as_number(cell) == (mark in " \t")
    if mark in " \t":
        (block,) = table.blocks({"a": "number"})
        assert block.columns["a"].to_pylist() == [2.5, 1.5]
        return
    with pytest.raises(TableFileError, match=f"line 3, column 'a': {re.escape(repr(cell))} is not"):
        list(table.blocks({"a": "number"}))
