// Types of array arguments and results of the bindings, and the checks that several of them share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <vector>

#include "rows/rows.h"
#include "rows/sparse_table.h"
#include "simd/vectors.h"

namespace geomix {

namespace nb = nanobind;

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any strides
using InOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array1 = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using Array2 = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

inline void need(bool fine, const char* what)
{
    if (!fine) throw nb::value_error(what);
}

template <class T>
Index length(const T& array)
{
    return static_cast<Index>(array.shape(0));
}
template <class T>
Index width(const T& array)
{
    return static_cast<Index>(array.shape(1));
}

template <class A, class Numbers>
A owned(Numbers numbers, std::initializer_list<std::size_t> shape)
{
    auto* kept = new Numbers(std::move(numbers));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Numbers*>(p); });
    return A(kept->data(), shape, owner);
}

template <class T>
Strided<T> strided(const Table<T>& X)
{
    return {X.data(), X.stride(0), X.stride(1)};
}

// Arrays of a CSR matrix whose numbers may be of either width.
using AnyArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Value, class Column>
SparseTable sparse_table(const AnyArray& values, const AnyArray& columns, const In1<Index>& start,
                         Index n_columns, bool keep)
{
    need(length(start) >= 1, "indptr must begin with 0.");
    need(values.size() == columns.size(), "data and indices differ in length.");
    return SparseTable(static_cast<const Value*>(values.data()),
                       static_cast<const Column*>(columns.data()), length(values), start.data(),
                       length(start) - 1, n_columns, keep);
}

// values, columns : float64 or float32, int32 or int64;  `keep` if the arrays may change later.
inline SparseTable sparse_table(const AnyArray& values, const AnyArray& columns,
                                const In1<Index>& start, Index n_columns, bool keep)
{
    const bool doubles = values.dtype() == nb::dtype<double>();
    const bool narrow = columns.dtype() == nb::dtype<std::int32_t>();
    if (!doubles && values.dtype() != nb::dtype<float>())
        throw nb::type_error("data must be float64 or float32.");
    if (!narrow && columns.dtype() != nb::dtype<std::int64_t>())
        throw nb::type_error("indices must be int32 or int64.");
    const auto make =
        doubles ? (narrow ? sparse_table<double, std::int32_t> : sparse_table<double, std::int64_t>)
                : (narrow ? sparse_table<float, std::int32_t> : sparse_table<float, std::int64_t>);
    return make(values, columns, start, n_columns, keep);
}

inline bool python_was_interrupted()
{
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// Planes from Python's arrays, checked: class_start rises from 0 to the number of planes.
template <class T>
Planes<T> planes_from(const In2<double>& weights, const In1<double>& biases,
                      const In1<Index>& class_start, double sharpness, double label_smoothing)
{
    need(length(weights) == length(biases), "weights and biases differ in the number of planes.");
    need(length(class_start) >= 2 && class_start.data()[0] == 0 &&
             class_start.data()[length(class_start) - 1] == length(biases),
         "class_start must run from 0 to the number of planes.");
    Planes<T> planes;
    for (Index c = 0; c < length(class_start); ++c) {
        need(c == 0 || class_start.data()[c] > class_start.data()[c - 1],
             "class_start must rise: every class needs a plane.");
        planes.class_start.push_back(static_cast<std::int32_t>(class_start.data()[c]));
    }
    planes.weights.assign(weights.data(), weights.data() + weights.size());
    planes.biases.assign(biases.data(), biases.data() + biases.size());
    planes.n_inputs = width(weights);
    planes.sharpness = static_cast<T>(sharpness);
    planes.label_smoothing = static_cast<T>(label_smoothing);
    return planes;
}

inline void check_labels(const In1<Index>& y, const In1<double>& weight, Index n_rows,
                         Index n_classes)
{
    need(length(y) == n_rows && length(weight) == n_rows, "X, y and weight differ in length.");
    for (Index i = 0; i < n_rows; ++i)
        need(y.data()[i] >= 0 && y.data()[i] < n_classes, "y holds a code that is not of a class.");
}

}  // namespace geomix
