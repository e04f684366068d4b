"""Data sets beside the paper's eight, one small file each. To add one, add a file here with

    def load():
        return geomix.datasets.Dataset(name, X, y, columns, classes, description)

``name`` is the name of the file, ``X`` float rows without missing cells, ``y`` codes 0 .. k - 1,
``description`` where the rows come from, with every parameter of their generator. The set then
takes part in every table of the comparison; ``--only your_file`` runs it alone.
"""
