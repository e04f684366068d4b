// One row of raw cells, by position or by name, as the numbers that a model reads.
//
// It is a second writing of Schema.encode_row and Expand (table/schema.py, table/one_hot.py) for
// plain cells: None, and exact floats, ints, bools and text. A row with any other cell, and every
// row that is refused, goes to the Python function `slow`, which returns its numbers or raises.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "simd/kernels.h"

namespace geomix {

class RowReader {
  public:
    // code_of : dict from level to code, null for a number;  unseen : code of any other level
    struct Column {
        nanobind::object name, code_of;
        double unseen;
        enum Levels { text, numbers, both } levels;
    };
    // One number for the model: a cell, or whether the cell is this level or missing.
    struct Output {
        Index column, shows;
        bool of_category, knows_missing;
    };
    static constexpr Index NUMBER = -2, MISSING = -1;  // values of `shows`, as in table/one_hot.py

    // No outputs: the cells themselves.
    RowReader(std::vector<Column> columns, std::vector<Output> outputs, nanobind::object slow);

    Index n_cells() const { return static_cast<Index>(columns_.size()); }
    Index n_outputs() const
    {
        return outputs_.empty() ? n_cells() : static_cast<Index>(outputs_.size());
    }
    // Doubles that `read` needs; a multiple of a cache line.
    Index room() const { return padded(n_outputs(), DOUBLES) + padded(n_cells(), DOUBLES); }

    // The numbers of the row, in `room`; null with a Python error set.
    const double* read(PyObject* row, double* room) const;

    // Whether every cell is plain; `to` then holds numbers, codes, and NaN where missing.
    bool encode(PyObject* row, double* to) const;

  private:
    bool encode_dict(PyObject* row, double* to) const;
    bool encode_sequence(PyObject* row, double* to) const;
    bool encode_array(PyObject* row, double* to) const;
    const double* read_slowly(PyObject* row, double* room) const;

    std::vector<Column> columns_;
    std::vector<Output> outputs_;
    nanobind::object slow_;
    bool has_categories_ = false;
};

}  // namespace geomix
