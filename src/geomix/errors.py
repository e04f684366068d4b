"""The errors and warnings of geomix."""

from __future__ import annotations


class InvalidParameterError(ValueError):
    """A parameter has an invalid value."""


class SchemaError(ValueError):
    """A column cannot be used as it is: its type, or a value in it."""


class DataQualityWarning(UserWarning):
    """The data can be used, but probably contain a mistake."""


class ModelFileError(ValueError):
    """A file is truncated, damaged, forged or not a model file."""


class ModelVersionError(ModelFileError):
    """A model file of a version that this release cannot read."""


class TableFileError(ValueError):
    """A file of rows cannot be read: its format, or a cell in it."""


class NoShapes(TypeError):
    """The model's planes are not sums over columns, so there is no exact answer."""
