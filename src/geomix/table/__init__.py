"""Input tables: any frame, array or sparse matrix as checked columns and rows.

frames            frames of any library: column names, types and cells
columns           one column as numbers or labels, with error messages
known_rows        rows for a model whose columns are known: its one door
schema            the columns of the training data; encodes later tables in the same way
category_levels   which levels of a category get a weight of their own
labels            class labels and row weights as codes and floats
reader            a whole table as checked rows
row_views         rows of a table by index, without a copy
sparse_rows       sparse matrices as CSR rows, their structure checked
one_hot           encoded cells as 0/1 columns and numbers
check             facts about a table before a fit; suspicions has the tests
printing          small tables as text, HTML and pandas frames
sql_text          SQL identifiers and literals
"""
