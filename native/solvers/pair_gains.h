// What a table over each pair of columns would add: see training/interactions.py.
//
//   gain = sum over cells and classes of (G^2 - V) / (H + 1),   G, H, V sums of the cell's rows
#pragma once

#include <vector>

#include "simd/threads.h"
#include "simd/vectors.h"

namespace geomix {

// bins : (n_columns, n_rows) below n_bins;  terms : (n_rows, 3, n_classes), the addends of G, H
// and V;  gains : (n_columns, n_columns), the upper triangle is written, a column alone on the
// diagonal.
inline void pair_gains(const std::uint8_t* bins, const double* terms, Index n_columns, Index n_rows,
                       Index n_classes, Index n_bins, double* gains)
{
    const Index n_numbers = 3 * n_classes, n_cells = n_bins * n_bins;
    const int n_threads = threads_for(n_columns * n_columns * n_rows * n_numbers / 2, n_columns);
    in_parallel(n_threads, [&](int thread, int n_started) {
        Vector cells(static_cast<std::size_t>(n_cells * n_numbers));
        for (Index j = thread; j < n_columns; j += n_started)
            for (Index k = j; k < n_columns; ++k) {
                std::fill(cells.begin(), cells.end(), 0.0);
                const std::uint8_t *first = bins + j * n_rows, *second = bins + k * n_rows;
                for (Index i = 0; i < n_rows; ++i) {
                    double* cell = cells.data() + (first[i] * n_bins + second[i]) * n_numbers;
                    const double* row = terms + i * n_numbers;
                    for (Index m = 0; m < n_numbers; ++m) cell[m] += row[m];
                }
                double total = 0.0;
                for (Index b = 0; b < n_cells; ++b) {
                    const double* G = cells.data() + b * n_numbers;
                    const double *H = G + n_classes, *V = H + n_classes;
                    for (Index c = 0; c < n_classes; ++c)
                        total += (G[c] * G[c] - V[c]) / (H[c] + 1.0);
                }
                gains[j * n_columns + k] = total;
            }
    });
}

}  // namespace geomix
