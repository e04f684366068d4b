// Raw cells of one row as numbers, and the reader from the columns of a schema and an Expand.
#include "bind/row_reader.h"

#include <nanobind/stl/shared_ptr.h>

#include <limits>

#include "bind/arrays.h"
#include "bind/module.h"
#include "bind/one_row.h"

namespace geomix {
namespace {

using Column = RowReader::Column;
using Output = RowReader::Output;

constexpr double NOTHING = std::numeric_limits<double>::quiet_NaN();
constexpr long long LARGEST_EXACT = 1LL << 53;  // beyond it Python warns that digits are lost

bool whole_number(long long whole, double& to)
{
    to = static_cast<double>(whole);
    return -LARGEST_EXACT <= whole && whole <= LARGEST_EXACT;
}

// NumPy's float64, int64 and bool, of which the rows of a pandas frame are made.
bool encode_scalar(PyObject* cell, double& to)
{
    if (Py_TYPE(cell) == &PyDoubleArrType_Type) return to = PyArrayScalar_VAL(cell, Double), true;
    if (Py_TYPE(cell) == &PyBoolArrType_Type) return to = PyArrayScalar_VAL(cell, Bool), true;
    if (Py_TYPE(cell) != &PyInt64ArrType_Type) return false;
    return whole_number(PyArrayScalar_VAL(cell, Int64), to);
}

bool encode_number(PyObject* cell, double& to)
{
    if (PyFloat_CheckExact(cell)) return to = PyFloat_AS_DOUBLE(cell), true;
    if (!PyLong_CheckExact(cell) && !PyBool_Check(cell)) return encode_scalar(cell, to);
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(cell, &overflow);
    return overflow == 0 && whole_number(whole, to);
}

bool encode_level(const Column& column, PyObject* cell, double& to)
{
    const bool is_text = PyUnicode_CheckExact(cell), is_float = PyFloat_CheckExact(cell);
    if (!is_text && !is_float && !PyLong_CheckExact(cell) && !PyBool_Check(cell)) return false;
    if (is_float && PyFloat_AS_DOUBLE(cell) != PyFloat_AS_DOUBLE(cell)) return to = NOTHING, true;
    PyObject* code = PyDict_GetItemWithError(column.code_of.ptr(), cell);
    if (code != nullptr) return to = PyFloat_AS_DOUBLE(code), true;
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    to = column.unseen;
    return column.levels == Column::both || (column.levels == Column::text) == is_text;
}

// No Python code runs in here: the types are exact, and so are those of the levels.
bool encode_cell(const Column& column, PyObject* cell, double& to)
{
    if (cell == Py_None) return to = NOTHING, true;
    return column.code_of.is_valid() ? encode_level(column, cell, to) : encode_number(cell, to);
}

double number_for(const Output& output, const double* cells)
{
    const double cell = cells[output.column];
    if (output.shows == RowReader::NUMBER) return cell;
    const bool missing = cell != cell;
    if ((missing && !output.knows_missing) || (output.of_category && cell < 0.0)) return NOTHING;
    return output.shows == RowReader::MISSING ? missing : cell == static_cast<double>(output.shows);
}

}  // namespace

RowReader::RowReader(std::vector<Column> columns, std::vector<Output> outputs, nb::object slow)
    : columns_(std::move(columns)), outputs_(std::move(outputs)), slow_(std::move(slow))
{
    for (const Column& column : columns_) has_categories_ |= column.code_of.is_valid();
}

const double* RowReader::read(PyObject* row, double* room) const
{
    double* cells = outputs_.empty() ? room : room + padded(n_outputs(), DOUBLES);
    if (!encode(row, cells)) return read_slowly(row, room);
    double* to = room;
    for (const Output& output : outputs_) *to++ = number_for(output, cells);
    return room;
}

bool RowReader::encode(PyObject* row, double* to) const
{
    if (PyDict_CheckExact(row)) return encode_dict(row, to);
    if (PyList_CheckExact(row) || PyTuple_CheckExact(row)) return encode_sequence(row, to);
    return PyArray_CheckExact(row) && !has_categories_ && encode_array(row, to);
}

bool RowReader::encode_dict(PyObject* row, double* to) const
{
    if (PyDict_GET_SIZE(row) != n_cells()) return false;
    for (const Column& column : columns_) {
        PyObject* cell = PyDict_GetItemWithError(row, column.name.ptr());
        if (cell == nullptr) return PyErr_Clear(), false;
        if (!encode_cell(column, cell, *to++)) return false;
    }
    return true;
}

bool RowReader::encode_sequence(PyObject* row, double* to) const
{
    if (PySequence_Fast_GET_SIZE(row) != n_cells()) return false;
    PyObject** cells = PySequence_Fast_ITEMS(row);
    for (const Column& column : columns_)
        if (!encode_cell(column, *cells++, *to++)) return false;
    return true;
}

bool RowReader::encode_array(PyObject* row, double* to) const
{
    auto* array = reinterpret_cast<PyArrayObject*>(row);
    if (PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array) ||
        PyArray_NDIM(array) != 1 || PyArray_DIM(array, 0) != n_cells())
        return false;
    std::memcpy(to, PyArray_DATA(array), columns_.size() * sizeof(double));
    return true;
}

const double* RowReader::read_slowly(PyObject* row, double* room) const
{
    PyObject* numbers = PyObject_CallFunctionObjArgs(slow_.ptr(), row, nullptr);
    if (numbers == nullptr) return nullptr;
    const double* found = read_row(numbers, n_outputs(), room);
    if (found != nullptr && found != room)
        std::memcpy(room, found, static_cast<std::size_t>(n_outputs()) * sizeof(double));
    Py_DECREF(numbers);
    return found == nullptr ? nullptr : room;
}

namespace {

Column::Levels kind_of_levels(const nb::dict& code_of)
{
    bool text = false, numbers = false;
    for (const auto& [level, code] : code_of) {
        const bool is_text = PyUnicode_CheckExact(level.ptr());
        need(is_text || PyFloat_CheckExact(level.ptr()) || PyLong_CheckExact(level.ptr()) ||
                 PyBool_Check(level.ptr()),
             "Levels must be text or numbers.");
        need(PyFloat_CheckExact(code.ptr()), "Codes must be floats.");
        (is_text ? text : numbers) = true;
    }
    if (text == numbers) return Column::both;
    return text ? Column::text : Column::numbers;
}

std::vector<Column> columns_from(const nb::tuple& names, const nb::tuple& codes,
                                 const In1<double>& unseen)
{
    const std::size_t n = names.size();
    need(codes.size() == n && unseen.size() == n, "names, codes and unseen differ in length.");
    std::vector<Column> columns;
    for (std::size_t j = 0; j < n; ++j) {
        need(PyUnicode_CheckExact(names[j].ptr()), "Names must be text.");
        Column column{names[j], {}, unseen.data()[j], Column::both};
        if (!codes[j].is_none()) {
            const auto levels = nb::cast<nb::dict>(codes[j]);
            column.code_of = nb::steal(PyDict_Copy(levels.ptr()));  // which nobody else changes
            column.levels = kind_of_levels(nb::borrow<nb::dict>(column.code_of));
        }
        columns.push_back(std::move(column));
    }
    return columns;
}

std::vector<Output> outputs_from(const In1<Index>& column_of, const In1<Index>& shows,
                                 Index n_cells)
{
    need(column_of.size() == shows.size(), "column_of and shows differ in length.");
    std::vector<bool> is_number(static_cast<std::size_t>(n_cells)), knows_missing(is_number);
    for (Index k = 0; k < length(shows); ++k) {
        const Index j = column_of.data()[k];
        need(0 <= j && j < n_cells, "column_of names a column beyond the row.");
        if (shows.data()[k] == RowReader::NUMBER) is_number[static_cast<std::size_t>(j)] = true;
        if (shows.data()[k] == RowReader::MISSING) knows_missing[static_cast<std::size_t>(j)] = true;
    }
    std::vector<Output> outputs;
    for (Index k = 0; k < length(shows); ++k) {
        const auto j = static_cast<std::size_t>(column_of.data()[k]);
        outputs.push_back({column_of.data()[k], shows.data()[k], !is_number[j], knows_missing[j]});
    }
    return outputs;
}

}  // namespace

void bind_row_reader(nb::module_& m)
{
    nb::class_<RowReader>(m, "RowReader")
        .def("__init__",
             [](RowReader* self, nb::tuple names, nb::tuple codes, In1<double> unseen,
                In1<Index> column_of, In1<Index> shows, nb::object slow) {
                 std::vector<Column> columns = columns_from(names, codes, unseen);
                 const auto n_cells = static_cast<Index>(columns.size());
                 new (self) RowReader(std::move(columns), outputs_from(column_of, shows, n_cells),
                                      std::move(slow));
             })
        .def(
            "encode",
            [](const RowReader& self, nb::handle row, InOut to) {
                need(length(to) == self.n_cells(), "`to` needs one number for each cell.");
                return self.encode(row.ptr(), to.data());
            },
            nb::arg("row"), nb::arg("to").noconvert());
}

}  // namespace geomix
