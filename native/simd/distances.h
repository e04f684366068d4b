// Squared Euclidean distances: out[c][row] = sum_j (x_j - centre_cj)^2, j in order.
#pragma once

#include "simd/kernels.h"
#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <int G>
GEOMIX_INLINE void distance_tile(const double* panel, const double* centre, Index n_columns,
                                 double* out)
{
    constexpr int n = DOUBLES;
    Pack<double> sum[G];
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) sum[g] = splat(0.0);
    for (Index j = 0; j < n_columns; ++j) {
        const Pack<double> c = splat(centre[j]);
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g) {
            const Pack<double> difference = load(panel + (g * n_columns + j) * n) - c;
            sum[g] = sum[g] + difference * difference;
        }
    }
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) store(out + g * n, sum[g]);
}

static void squared_distances(const double* panel, Index n_groups, const double* centres,
                              Index n_centres, Index n_columns, double* out)
{
    constexpr int n = DOUBLES, tile = GEOMIX_BYTES == 64 ? 8 : 2;
    for (Index start = 0; start < n_groups; start += tile) {
        const double* rows = panel + start * n_columns * n;
        for (Index c = 0; c < n_centres; ++c) {
            const double* centre = centres + c * n_columns;
            double* to = out + (c * n_groups + start) * n;
            if (start + tile <= n_groups) {
                distance_tile<tile>(rows, centre, n_columns, to);
                continue;
            }
            for (Index g = 0; g < n_groups - start; ++g)
                distance_tile<1>(rows + g * n_columns * n, centre, n_columns, to + g * n);
        }
    }
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
