// Panels times a matrix: out[g][p] = sum_j weights[p, j] * panel[g][j] (+ biases[p]).
//
// Every sum runs over j in order, in segments of columns that are added up in order.
// The tiles below only choose how many independent sums are in flight, so they differ between
// CPU levels while the bits do not; one row times columns (`row_times_columns`) gives the same
// bits again, with several segments in flight.
#pragma once

#include "simd/kernels.h"
#include "simd/lanes.h"

namespace geomix {
namespace GEOMIX_LEVEL {

// Accumulators that fit the registers, in packs: 32 registers of one pack each on AVX-512,
// 16 of half a pack on AVX2, 16 of a quarter on SSE2.
constexpr int FULL = GEOMIX_BYTES == 64 ? 16 : (GEOMIX_BYTES == 32 ? 4 : 2);

template <class T, int P, int G>
GEOMIX_INLINE void multiply_tile(const T* weights, const T* biases, Index n_inputs, Index segment,
                                 const T* panel, T* out, Index out_width)
{
    constexpr int n = lanes<T>;
    for (Index first = 0; first == 0 || first < n_inputs; first += segment) {
        const Index end = n_inputs - first < segment ? n_inputs : first + segment;
        Pack<T> sum[P][G];
#pragma GCC unroll 16
        for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
            for (int g = 0; g < G; ++g) sum[p][g] = splat<T>(T(0));
        for (Index j = first; j < end; ++j) {
            Pack<T> x[G];
#pragma GCC unroll 16
            for (int g = 0; g < G; ++g) x[g] = load(panel + (g * n_inputs + j) * n);
#pragma GCC unroll 16
            for (int p = 0; p < P; ++p) {
                const Pack<T> w = splat<T>(weights[p * n_inputs + j]);
#pragma GCC unroll 16
                for (int g = 0; g < G; ++g) sum[p][g] = fused(w, x[g], sum[p][g]);
            }
        }
#pragma GCC unroll 16
        for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
            for (int g = 0; g < G; ++g) {
                T* to = out + (g * out_width + p) * n;
                store(to, first == 0 ? sum[p][g] : load(to) + sum[p][g]);
            }
    }
    if (!biases) return;
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
        for (int g = 0; g < G; ++g) {
            T* to = out + (g * out_width + p) * n;
            store(to, load(to) + splat<T>(biases[p]));
        }
}

template <class T, int P>
GEOMIX_INLINE void multiply_rows(const T* weights, const T* biases, Index n_inputs, Index segment,
                                 const T* panel, Index n_groups, T* out, Index out_width)
{
    constexpr int n = lanes<T>, G = FULL / P > 0 ? FULL / P : 1;
    Index g = 0;
    for (; g + G <= n_groups; g += G)
        multiply_tile<T, P, G>(weights, biases, n_inputs, segment, panel + g * n_inputs * n,
                               out + g * out_width * n, out_width);
    for (; g < n_groups; ++g)
        multiply_tile<T, P, 1>(weights, biases, n_inputs, segment, panel + g * n_inputs * n,
                               out + g * out_width * n, out_width);
}

template <class T>
static void multiply_by_segments(Index segment, const T* weights, const T* biases, Index n_outputs,
                                 Index n_inputs, const T* panel, Index n_groups, T* out)
{
    constexpr int n = lanes<T>, widest = FULL >= 8 ? 8 : FULL;
    Index p = 0;
    const auto at = [&](Index k) { return biases ? biases + k : nullptr; };
    for (; p + widest <= n_outputs; p += widest)
        multiply_rows<T, widest>(weights + p * n_inputs, at(p), n_inputs, segment, panel, n_groups,
                                 out + p * n, n_outputs);
    if constexpr (widest > 4)
        for (; p + 4 <= n_outputs; p += 4)
            multiply_rows<T, 4>(weights + p * n_inputs, at(p), n_inputs, segment, panel, n_groups,
                                out + p * n, n_outputs);
    if constexpr (widest > 2)
        for (; p + 2 <= n_outputs; p += 2)
            multiply_rows<T, 2>(weights + p * n_inputs, at(p), n_inputs, segment, panel, n_groups,
                                out + p * n, n_outputs);
    for (; p < n_outputs; ++p)
        multiply_rows<T, 1>(weights + p * n_inputs, at(p), n_inputs, segment, panel, n_groups,
                            out + p * n, n_outputs);
}

template <class T>
static void multiply(const T* weights, const T* biases, Index n_outputs, Index n_inputs,
                     const T* panel, Index n_groups, T* out)
{
    multiply_by_segments<T>(SEGMENT, weights, biases, n_outputs, n_inputs, panel, n_groups, out);
}

// --- gradient: out[p, j] += sum over rows of G[p] * X[j] ---
//
// Lane by lane over the groups in order, then over the lanes in the fixed tree.

template <class T, int P, int J>
GEOMIX_INLINE void gradient_tile(const T* G, Index n_planes, const T* X, Index n_inputs,
                                 Index n_groups, double* out)
{
    constexpr int n = lanes<T>;
    Pack<T> sum[P][J];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 16
        for (int j = 0; j < J; ++j) sum[p][j] = splat<T>(T(0));
    for (Index g = 0; g < n_groups; ++g) {
        Pack<T> x[J];
#pragma GCC unroll 16
        for (int j = 0; j < J; ++j) x[j] = load(X + (g * n_inputs + j) * n);
#pragma GCC unroll 16
        for (int p = 0; p < P; ++p) {
            const Pack<T> slope = load(G + (g * n_planes + p) * n);
#pragma GCC unroll 16
            for (int j = 0; j < J; ++j) sum[p][j] = fused(slope, x[j], sum[p][j]);
        }
    }
    const auto at = [&](int q) -> const Pack<T>& { return sum[q / J][q % J]; };
    const auto to = [=](int q) { return out + q / J * n_inputs + q % J; };
    if constexpr (P * J % 4 == 0) {
#pragma GCC unroll 4
        for (int q = 0; q < P * J; q += 4) {
            const auto four = sums_of_lanes<T>(at(q), at(q + 1), at(q + 2), at(q + 3));
            for (int k = 0; k < 4; ++k) *to(q + k) += static_cast<double>(four[k]);
        }
    } else {
#pragma GCC unroll 16
        for (int q = 0; q < P * J; ++q) *to(q) += static_cast<double>(sum_of_lanes<T>(at(q)));
    }
}

template <class T, int P>
GEOMIX_INLINE void gradient_rows(const T* G, Index n_planes, const T* X, Index n_inputs,
                                 Index n_groups, double* out)
{
    constexpr int n = lanes<T>, J = FULL / P > 0 ? FULL / P : 1;
    Index j = 0;
    for (; j + J <= n_inputs; j += J)
        gradient_tile<T, P, J>(G, n_planes, X + j * n, n_inputs, n_groups, out + j);
    for (; j < n_inputs; ++j)
        gradient_tile<T, P, 1>(G, n_planes, X + j * n, n_inputs, n_groups, out + j);
}

template <class T>
static void add_gradient(const T* G, Index n_planes, const T* X, Index n_inputs, Index n_groups,
                         double* out)
{
    // Both factors come from memory here, so square tiles read least.
    constexpr int n = lanes<T>, widest = FULL >= 16 ? 4 : 2;
    Index p = 0;
    for (; p + widest <= n_planes; p += widest)
        gradient_rows<T, widest>(G + p * n, n_planes, X, n_inputs, n_groups, out + p * n_inputs);
    if constexpr (widest > 2)
        for (; p + 2 <= n_planes; p += 2)
            gradient_rows<T, 2>(G + p * n, n_planes, X, n_inputs, n_groups, out + p * n_inputs);
    for (; p < n_planes; ++p)
        gradient_rows<T, 1>(G + p * n, n_planes, X, n_inputs, n_groups, out + p * n_inputs);
}

// --- one row times a matrix stored by columns (see `Columns` in simd/kernels.h) ---

template <class T, bool Halved>
GEOMIX_INLINE Pack<T> column_pack(const T* column, int i)
{
    if constexpr (Halved) {
        const Pack<double> both = load(column + i / 2 * DOUBLES);
        return i % 2 == 0 ? first_of_two(both) : second_of_two(both);
    } else {
        return load(column + i * lanes<T>);
    }
}

// N packs of outputs, S segments of `length` from `first` on: sums, then added up in order.
template <class T, bool Halved, int N, int S>
GEOMIX_INLINE void columns_tile(const T* x, Index first, Index length, const T* columns, Index step,
                                T* out)
{
    constexpr int n = lanes<T>;
    Pack<T> sum[S][N];
#pragma GCC unroll 8
    for (int s = 0; s < S; ++s)
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i) sum[s][i] = splat<T>(T(0));
    for (Index j = first; j < first + length; ++j) {
#pragma GCC unroll 8
        for (int s = 0; s < S; ++s) {
            const Pack<T> xj = splat<T>(x[j + s * length]);
            const T* column = columns + (j + s * length) * step;
            // Columns are too short for the hardware's own prefetcher.
#pragma GCC unroll 8
            for (int i = 0; i < (Halved ? N / 2 : N); ++i)
                __builtin_prefetch(column + 6 * step + i * n);
#pragma GCC unroll 8
            for (int i = 0; i < N; ++i)
                sum[s][i] = fused(column_pack<T, Halved>(column, i), xj, sum[s][i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
        Pack<T> total = first == 0 ? sum[0][i] : load(out + i * n) + sum[0][i];
#pragma GCC unroll 8
        for (int s = 1; s < S; ++s) total = total + sum[s][i];
        store(out + i * n, total);
    }
}

template <class T, bool Halved, int N>
GEOMIX_INLINE void columns_tiles(const T* x, Index n_inputs, Index segment, const T* columns,
                                 Index step, T* out)
{
    constexpr int S = FULL / N >= 4 ? 4 : (FULL / N >= 2 ? 2 : 1);
    Index first = 0;
    for (; first + S * segment <= n_inputs; first += S * segment)
        columns_tile<T, Halved, N, S>(x, first, segment, columns, step, out);
    for (; first == 0 || first < n_inputs; first += segment) {
        const Index left = n_inputs - first < segment ? n_inputs - first : segment;
        columns_tile<T, Halved, N, 1>(x, first, left, columns, step, out);
    }
}

// One strip of `width` outputs, at most COLUMN_STRIP. Only the last tile may have an odd number
// of packs, so none begins within a pair.
template <class T, bool Halved>
GEOMIX_INLINE void row_times_strip(const T* x, Index n_inputs, Index segment, const T* columns,
                                   Index width, T* out)
{
    constexpr int n = lanes<T>, widest = FULL >= 8 ? 8 : FULL, share = Halved ? 2 : 1;
    const Index step = padded(width, share * n) / share;
    Index at = 0;
    for (; at + widest * n <= width; at += widest * n)
        columns_tiles<T, Halved, widest>(x, n_inputs, segment, columns + at / share, step,
                                         out + at);
    if constexpr (widest > 4)
        for (; at + 4 * n <= width; at += 4 * n)
            columns_tiles<T, Halved, 4>(x, n_inputs, segment, columns + at / share, step, out + at);
    if constexpr (widest > 2)
        for (; at + 2 * n <= width; at += 2 * n)
            columns_tiles<T, Halved, 2>(x, n_inputs, segment, columns + at / share, step, out + at);
    for (; at < width; at += n)
        columns_tiles<T, Halved, 1>(x, n_inputs, segment, columns + at / share, step, out + at);
}

template <class T, bool Halved>
static void row_times_strips(const T* x, Index n_inputs, const ColumnsOf<T>& columns, T* out)
{
    for (Index at = 0; at < columns.width; at += COLUMN_STRIP)
        row_times_strip<T, Halved>(
            x, n_inputs, columns.segment, columns.numbers + at / (Halved ? 2 : 1) * n_inputs,
            columns.width - at < COLUMN_STRIP ? columns.width - at : COLUMN_STRIP, out + at);
}

// out (padded to whole packs) = matrix times x
template <class T>
static void row_times_columns(const T* x, Index n_inputs, const ColumnsOf<T>& columns, T* out)
{
    if constexpr (sizeof(T) == sizeof(double))
        if (columns.halved) return row_times_strips<T, true>(x, n_inputs, columns, out);
    row_times_strips<T, false>(x, n_inputs, columns, out);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
