// One row from Python: its numbers, in place or copied, and the array for its probabilities.
#pragma once

// NumPy's functions are imported once, by bind/scorer.cpp.
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL geomix_numpy_functions
#ifndef GEOMIX_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <Python.h>
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include <cstring>

#include "simd/kernels.h"

namespace geomix {

// Room for numbers: on the stack for small models, on the heap for the rest. A thread may have a
// stack of 64 KiB, of which Python takes its part, and an explanation needs two rooms.
class Room {
  public:
    explicit Room(Index n) : at_(n <= few ? stack_ : static_cast<double*>(heap(n))) {}
    ~Room()
    {
        if (at_ != stack_) PyMem_RawFree(at_);
    }
    Room(const Room&) = delete;
    double* get() const { return at_; }

  private:
    static constexpr Index few = 1024;
    static void* heap(Index n) { return PyMem_RawMalloc(static_cast<std::size_t>(n) * 8); }
    alignas(64) double stack_[few];
    double* at_;
};

inline bool wrong_length(Index got, Index expected)
{
    PyErr_Format(PyExc_ValueError, "Got a row of %zd numbers; expected %zd, one for each column.",
                 static_cast<Py_ssize_t>(got), static_cast<Py_ssize_t>(expected));
    return false;
}

inline bool read_sequence(PyObject* row, Index n, double* to)
{
    PyObject** items = PySequence_Fast_ITEMS(row);
    if (PySequence_Fast_GET_SIZE(row) != n) return wrong_length(PySequence_Fast_GET_SIZE(row), n);
    for (Index j = 0; j < n; ++j) {
        to[j] =
            PyFloat_CheckExact(items[j]) ? PyFloat_AS_DOUBLE(items[j]) : PyFloat_AsDouble(items[j]);
        if (to[j] == -1.0 && PyErr_Occurred()) return false;
        // PyFloat_AsDouble may run Python code, and that may shorten a list.
        if (PySequence_Fast_GET_SIZE(row) != n)
            return wrong_length(PySequence_Fast_GET_SIZE(row), n);
        items = PySequence_Fast_ITEMS(row);
    }
    return true;
}

inline bool read_converted(PyArrayObject* row, Index n, double* to)
{
    const char kind = PyArray_DESCR(row)->kind;
    if (std::strchr("fiub", kind) == nullptr ||
        PyObject_HasAttrString(reinterpret_cast<PyObject*>(row), "mask")) {
        PyErr_Format(PyExc_TypeError, "Got a row of %R; expected plain real numbers.",
                     PyArray_DESCR(row));
        return false;
    }
    PyObject* plain = PyArray_FromArray(row, PyArray_DescrFromType(NPY_DOUBLE),
                                        NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    if (plain == nullptr) return false;
    // A subclass may have run Python code meanwhile, and that may have resized the row.
    auto* found = reinterpret_cast<PyArrayObject*>(plain);
    const bool fits = PyArray_NDIM(found) == 1 && PyArray_DIM(found, 0) == n;
    if (fits)
        std::memcpy(to, PyArray_DATA(found), static_cast<std::size_t>(n) * sizeof(double));
    else
        wrong_length(PyArray_SIZE(found), n);
    Py_DECREF(plain);
    return fits;
}

// The row's numbers: those of the array itself, or a copy in `room`; null with an error set.
inline const double* read_row(PyObject* row, Index n, double* room)
{
    if (PyArray_Check(row)) {
        auto* array = reinterpret_cast<PyArrayObject*>(row);
        if (PyArray_NDIM(array) != 1) {
            PyErr_Format(PyExc_ValueError, "Got a row with %d dimensions; expected 1.",
                         PyArray_NDIM(array));
            return nullptr;
        }
        if (PyArray_DIM(array, 0) != n) return wrong_length(PyArray_DIM(array, 0), n), nullptr;
        if (PyArray_TYPE(array) == NPY_DOUBLE && PyArray_CheckExact(row) &&
            PyArray_ISCARRAY_RO(array))
            return static_cast<const double*>(PyArray_DATA(array));
        return read_converted(array, n, room) ? room : nullptr;
    }
    if (PyList_CheckExact(row) || PyTuple_CheckExact(row))
        return read_sequence(row, n, room) ? room : nullptr;
    PyErr_Format(PyExc_TypeError, "Got a row of type %s; expected a 1-d array, a list or a tuple.",
                 Py_TYPE(row)->tp_name);
    return nullptr;
}

// `out` if it can hold the probabilities, or a new array; either way a new reference.
inline PyObject* place_for(PyObject* out, Index n_classes)
{
    if (out == nullptr || out == Py_None) {
        npy_intp shape[1] = {static_cast<npy_intp>(n_classes)};
        return PyArray_SimpleNew(1, shape, NPY_DOUBLE);
    }
    if (!PyArray_Check(out)) {
        PyErr_Format(PyExc_TypeError, "Got out of type %s; expected a float64 array.",
                     Py_TYPE(out)->tp_name);
        return nullptr;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(out);
    if (PyArray_TYPE(array) != NPY_DOUBLE) {
        PyErr_SetString(PyExc_TypeError, "out must be an array of float64.");
        return nullptr;
    }
    if (PyArray_NDIM(array) != 1 || PyArray_DIM(array, 0) != n_classes ||
        !PyArray_ISCARRAY(array)) {
        PyErr_Format(PyExc_ValueError, "out must be a writeable, contiguous array of shape (%zd,).",
                     static_cast<Py_ssize_t>(n_classes));
        return nullptr;
    }
    Py_INCREF(out);
    return out;
}

}  // namespace geomix
