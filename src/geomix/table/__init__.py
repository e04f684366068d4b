"""Tables at the door: any frame, array or sparse matrix as checked columns and rows.

frames      tables of any library: names, kinds and cells of their columns
columns     one column as numbers or labels, and what is refused
schema      what the columns were in training; later tables in those terms
levels      which levels of a category get a weight of their own
labels      class labels and row weights as codes and plain numbers
reader      a whole table: frames, arrays and sparse matrices as clean rows
row_views   rows of a table by index, without a copy
one_hot     encoded cells as columns of numbers
printing    small tables for people: text, HTML and pandas frames
"""
