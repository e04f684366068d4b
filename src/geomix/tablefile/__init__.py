"""Tables in files: CSV, TSV, Parquet and Feather, plain or compressed, read block by block.

    table = open_table("rows.csv")
    for block in table.blocks({"age": "number", "city": "text"}):
        block.columns["age"]        # an Arrow column of float64, null where missing
        block.columns["city"]       # an Arrow column of dictionary<int32, string>
        block.place(3)              # "line 5": the line of row 3 of this block

pyarrow parses. This package adds the checks that pyarrow lacks: ragged rows, unclosed quotes, a
wrong delimiter or encoding, decimal commas, repeated names. Every error names the file, the line
and the column.

    reader                  open one file: ``open_table`` and ``ReadOptions``
    multiple_files          several files as one table
    unchanged               files that change while they are read are refused
    byte_source             bytes of a file, a pipe or standard input, decompressed
    records, dialect        where CSV records end; delimiter and header
    delimited, columnar     text files, and Parquet or Feather files, as blocks
    block                   consecutive rows as Arrow columns, with their line numbers
    column_names            errors for columns that a file has twice or not at all
    column_types            which columns are numbers and which are text
    single_precision        numbers that float32 cannot hold are refused
    column_checks           text that was probably meant as numbers or dates
    class_labels            the labels of the target column
    alignment               blocks with the columns of a model
    writer                  CSV and Parquet files of predictions
"""

from geomix.tablefile.reader import ReadOptions, open_table

__all__ = ["ReadOptions", "open_table"]
