// An orthonormal basis of (nearly) all that a set of rows spans, and rows in its coordinates.
//
// Weights under an L2 penalty lie in the span of the rows they are learnt from. Where that span
// has far fewer dimensions than the rows have columns (smooth kernels, few rows), training in
// its coordinates is the same problem, only smaller.
#pragma once

#include <algorithm>
#include <vector>

#include "rows/rows.h"
#include "simd/vectors.h"

namespace geomix {

// What is left falls about geometrically with the rank, so an early rank predicts
// whether `most` is enough. A third more than that is still worth trying.
inline bool hopeless(Index rank, Index most, double left, double tol)
{
    if (rank < 16 || rank % 16 != 0) return false;
    return double(rank) * std::log(tol) / std::log(left) > 1.33 * double(most);
}

// Rows of the basis, (rank, n_columns); empty if `most` directions do not reach `tol`, the
// squared length that may be left of any sampled row. Pivoted Gram-Schmidt, done twice over.
inline Vector row_basis(const Strided<float>& X, Index n_rows, Index n_columns, Index n_sample,
                        Index most, double tol)
{
    const Index n = std::min(n_rows, n_sample);
    Vector sample(static_cast<std::size_t>(n * n_columns)), left(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
        const float* row = X.data + (i * n_rows / n) * X.row_step;
        for (Index j = 0; j < n_columns; ++j) sample[i * n_columns + j] = row[j * X.column_step];
        left[i] = dot(&sample[i * n_columns], &sample[i * n_columns], n_columns);
    }
    Vector basis;
    for (Index rank = 0;;) {
        const Index pivot = std::max_element(left.begin(), left.end()) - left.begin();
        if (n == 0 || left[pivot] <= tol) return basis;
        if (rank == most || (n > most && hopeless(rank, most, left[pivot], tol))) return {};
        const double* row = &sample[pivot * n_columns];
        Vector next(row, row + n_columns);
        for (int pass = 0; pass < 2; ++pass)
            for (Index k = 0; k < rank; ++k) {
                const double* q = basis.data() + k * n_columns;
                kernels().add_scaled(next.data(), -dot(q, next.data(), n_columns), q, n_columns);
            }
        const double length = std::sqrt(dot(next, next));
        left[pivot] = 0.0;
        if (!(length * length > 0.01 * tol)) continue;
        for (double& value : next) value /= length;
        basis.insert(basis.end(), next.begin(), next.end());
        ++rank;
        for (Index i = 0; i < n; ++i) {
            const double along = dot(&sample[i * n_columns], next.data(), n_columns);
            left[i] -= along * along;
        }
    }
}

// out (n_rows, rank) = X basis', in single precision.
inline void project(const Strided<float>& X, Index n_rows, Index n_columns,
                    const std::vector<float>& basis, Index rank, float* out)
{
    constexpr Index block = 64, n = rows_in_group<float>;
    std::vector<float> panel(static_cast<std::size_t>(block * n_columns));
    std::vector<float> projected(static_cast<std::size_t>(block * rank));
    for (Index first = 0; first < n_rows; first += block) {
        const Index rows = std::min(block, n_rows - first);
        kernels().f32.pack({X.data + first * X.row_step, X.row_step, X.column_step}, nullptr, rows,
                           n_columns, panel.data());
        kernels().f32.multiply(basis.data(), nullptr, rank, n_columns, panel.data(),
                               padded(rows, n) / n, projected.data());
        for (Index i = 0; i < rows; ++i)
            for (Index k = 0; k < rank; ++k)
                out[(first + i) * rank + k] = projected[(i / n * rank + k) * n + i % n];
    }
}

}  // namespace geomix
