"""Tables in files: CSV, TSV, Parquet and Feather, plain or compressed, read block by block.

    table = open_table("rows.csv")
    for block in table.blocks({"age": "number", "city": "text"}):
        block.columns["age"]        # an Arrow column of float64, null where missing
        block.columns["city"]       # an Arrow column of dictionary<int32, string>
        block.place(3)              # "line 5": where row 3 of this block stands in the file

pyarrow parses; what lives here is what it lets pass in silence: ragged rows, unclosed quotes, a
wrong delimiter or encoding, numbers with a comma, repeated names. Each is refused with the file,
the physical line and the column.

    source, records         bytes, plain or compressed, cut at the ends of records
    dialect, names          delimiter, header and column names
    opening, several        one file, or many as one table
    delimited, columnar     text and columnar files as blocks
    block                   some rows as Arrow columns, with their place in the file
    kinds, looks, classes   which columns are numbers, which are text, and the class labels
    aligned                 blocks in the columns of a model
    written                 files of answers
"""

from geomix.tablefile.opening import ReadOptions, open_table

__all__ = ["ReadOptions", "open_table"]
