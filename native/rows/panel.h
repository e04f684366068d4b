// Rows into panels (see simd/kernels.h) and back.
#pragma once

#include "simd/kernels.h"
#include "simd/lanes.h"

namespace geomix {
namespace GEOMIX_LEVEL {

// Four contiguous columns of four rows, transposed in registers.
template <class T>
GEOMIX_INLINE void transpose_four(const T* const row[4], T* panel, Index step)
{
    using V = typename Four<T>::type;
    V a, b, c, d;
    __builtin_memcpy(&a, row[0], sizeof a);
    __builtin_memcpy(&b, row[1], sizeof b);
    __builtin_memcpy(&c, row[2], sizeof c);
    __builtin_memcpy(&d, row[3], sizeof d);
    transpose(a, b, c, d);
    const V out[4] = {a, b, c, d};
    for (int j = 0; j < 4; ++j) __builtin_memcpy(panel + j * step, &out[j], sizeof(V));
}

// One group: row[i] points at the first column of lane i. Lanes from n_rows on become zero.
template <class T>
GEOMIX_INLINE void pack_group(const T* const* row, Index n_rows, Index column_step, Index n_columns,
                              T* panel)
{
    constexpr int n = lanes<T>;
    Index j = 0;
    if (n_rows == n && column_step == 1)
        for (; j + 4 <= n_columns; j += 4)
            for (int i = 0; i < n; i += 4) {
                const T* const four[4] = {row[i] + j, row[i + 1] + j, row[i + 2] + j,
                                          row[i + 3] + j};
                transpose_four<T>(four, panel + j * n + i, n);
            }
    for (; j < n_columns; ++j)
        for (int i = 0; i < n; ++i) panel[j * n + i] = i < n_rows ? row[i][j * column_step] : T(0);
}

template <class T>
static void pack(Strided<T> from, const Index* order, Index n_rows, Index n_columns, T* panel)
{
    constexpr int n = lanes<T>;
    for (Index start = 0; start < n_rows; start += n) {
        const T* row[n] = {};
        const Index left = n_rows - start < n ? n_rows - start : n;
        for (Index i = 0; i < left; ++i) {
            const Index at = order ? order[start + i] : start + i;
            row[i] = from.data + at * from.row_step;
        }
        pack_group<T>(row, left, from.column_step, n_columns, panel + start * n_columns);
    }
}

// A panel of n_columns back into row-major rows.
template <class From, class To>
GEOMIX_INLINE void unpack(const From* panel, Index n_rows, Index n_columns, To* out)
{
    constexpr int n = lanes<From>;
    for (Index i = 0; i < n_rows; ++i) {
        const From* lane = panel + (i / n) * n * n_columns + i % n;
        for (Index j = 0; j < n_columns; ++j) out[i * n_columns + j] = static_cast<To>(lane[j * n]);
    }
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
