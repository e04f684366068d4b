// Sparse rows times planes, and slopes times sparse rows.
//
//   z_ip = sum_k x_k W[p, j_k] + constants[p];   gradient[p, j_k] += g_ip x_k
//
// over the entries k of row i, x_k in column j_k. Weights lie by columns, so that an entry works
// on all planes at once, a pack of them in each register. Scores are summed over the columns of a
// row in order, gradients over the rows in order, whatever the number of threads.
#pragma once

#include "predict/predict.h"
#include "simd/tiles.h"
#include "solvers/loss_terms.h"

namespace geomix {
namespace GEOMIX_LEVEL {

GEOMIX_INLINE Index strip_width(Index width, Index first)
{
    return width - first < COLUMN_STRIP ? width - first : COLUMN_STRIP;
}

GEOMIX_INLINE Index row_of(const Sparse& X, Index i) { return X.order ? X.order[i] : i; }

// Entries as they are.
struct AsGiven {
    inline __attribute__((always_inline)) bool read(const Sparse& X, Index k, Index& column,
                                                    double& value) const
    {
        column = X.columns[k];
        value = X.values[k];
        return true;
    }
};

// Entries of raw rows: the model's columns alone, divided by their scale and clipped.
struct Scaled {
    const Model& m;
    inline __attribute__((always_inline)) bool read(const Sparse& X, Index k, Index& column,
                                                    double& value) const
    {
        column = m.place[X.columns[k]];
        if (column < 0) return false;
        const double u = X.values[k] * m.inverse_scale[column];
        const double low = u < -LARGEST_STANDARDIZED ? -LARGEST_STANDARDIZED : u;
        value = LARGEST_STANDARDIZED < low ? LARGEST_STANDARDIZED : low;
        return true;
    }
};

template <bool Halved, int N, class Entries>
GEOMIX_INLINE void scores_tile(const Sparse& X, Index row, const Entries& entries,
                               const double* columns, Index step, const double* constants,
                               double* out)
{
    constexpr int n = DOUBLES;
    Pack<double> sum[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) sum[i] = splat(0.0);
    for (Index k = X.start[row]; k < X.start[row + 1]; ++k) {
        Index column;
        double value;
        if (!entries.read(X, k, column, value)) continue;
        const double* weights = columns + column * step;
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i)
            sum[i] = sum[i] + column_pack<double, Halved>(weights, i) * splat(value);
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) store(out + i * n, sum[i] + load(constants + i * n));
}

// Scores of one row, padded to the width of the columns.
template <bool Halved, class Entries>
GEOMIX_INLINE void row_scores(const Sparse& X, Index row, const Entries& entries,
                              const Columns& columns, Index n_inputs, const double* constants,
                              double* out)
{
    constexpr int share = Halved ? 2 : 1;
    for (Index first = 0; first < columns.width; first += COLUMN_STRIP) {
        const Index width = strip_width(columns.width, first);
        const Index step = padded(width, share * DOUBLES) / share;
        const double* strip = columns.numbers + first * n_inputs / share;
        by_tiles(width, [&](Index at, auto packs) __attribute__((always_inline)) {
            scores_tile<Halved, decltype(packs)::n>(X, row, entries, strip + at / share, step,
                                                    constants + first + at, out + first + at);
        });
    }
}

// z [group][plane][lane] of all rows; `room` holds a padded row of scores for every lane.
template <bool Halved, class Entries>
static void panel_scores(const Sparse& X, const Entries& entries, const Columns& columns,
                         Index n_inputs, Index n_planes, const double* constants, double* room,
                         double* z)
{
    constexpr int n = DOUBLES;
    const double* row[n];
    for (int i = 0; i < n; ++i) row[i] = room + i * columns.width;
    for (Index start = 0; start < X.n_rows; start += n) {
        const Index left = X.n_rows - start < n ? X.n_rows - start : n;
        for (Index i = 0; i < left; ++i)
            row_scores<Halved>(X, row_of(X, start + i), entries, columns, n_inputs, constants,
                               room + i * columns.width);
        pack_group<double>(row, left, 1, n_planes, z + start * n_planes);
    }
}

// --- training ---

// Plane scores at the beginning of the scratch, with the room for rows behind everything else.
static void training_scores(const SparsePlanes& planes, const Sparse& X, double* scratch)
{
    const Problem<double>& problem = planes.problem;
    double* room = scratch + terms_scratch(problem, ROWS_PER_BLOCK / DOUBLES);
    panel_scores<false>(X, AsGiven(), planes.columns, problem.n_inputs, problem.n_planes,
                        planes.constants, room, scratch);
}

static void sparse_terms(const SparsePlanes& planes, const Sparse& X,
                         const PanelRows<double>& labels, Sums& sums, double* slopes,
                         double* scratch)
{
    constexpr int n = DOUBLES;
    const Index n_planes = planes.problem.n_planes;
    training_scores(planes, X, scratch);
    terms_of_scores<double>(planes.problem, labels, sums, scratch);
    for (Index i = 0; i < X.n_rows; ++i) {
        const double* lane = scratch + i / n * n * n_planes + i % n;
        for (Index p = 0; p < n_planes; ++p) slopes[i * planes.columns.width + p] = lane[p * n];
    }
}

static double sparse_cross_entropy(const SparsePlanes& planes, const Sparse& X,
                                   const PanelRows<double>& labels, double* scratch)
{
    training_scores(planes, X, scratch);
    return cross_entropy_of_scores<double>(planes.problem, labels, scratch);
}

static void sparse_class_scores(const SparsePlanes& planes, const Sparse& X, double* out,
                                double* scratch)
{
    training_scores(planes, X, scratch);
    class_scores_of_scores<double>(planes.problem, padded(X.n_rows, DOUBLES) / DOUBLES, X.n_rows,
                                   out, scratch);
}

// The first of the entries [k, end) that is in column `low` or beyond.
GEOMIX_INLINE Index first_from(const int32_t* columns, Index k, Index end, Index low)
{
    while (k < end) {
        const Index middle = k + (end - k) / 2;
        if (columns[middle] < low)
            k = middle + 1;
        else
            end = middle;
    }
    return k;
}

template <int N>
GEOMIX_INLINE void add_row(const Sparse& X, Index k, Index end, Index high, const double* slopes,
                           Index step, double* gradient)
{
    constexpr int n = DOUBLES;
    Pack<double> slope[N];
#pragma GCC unroll 4
    for (int i = 0; i < N; ++i) slope[i] = load(slopes + i * n);
    for (; k < end && X.columns[k] < high; ++k) {
        const Pack<double> value = splat(X.values[k]);
        double* to = gradient + X.columns[k] * step;
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) store(to + i * n, load(to + i * n) + slope[i] * value);
    }
}

static void sparse_gradient(const Sparse& X, const double* slopes, Index width, Index n_inputs,
                            Index low, Index high, double* gradient)
{
    for (Index i = 0; i < X.n_rows; ++i) {
        const Index row = row_of(X, i), end = X.start[row + 1];
        const Index k = low > 0 ? first_from(X.columns, X.start[row], end, low) : X.start[row];
        for (Index first = 0; first < width; first += COLUMN_STRIP) {
            const Index strip = strip_width(width, first);
            by_tiles(strip, [&](Index at, auto packs) __attribute__((always_inline)) {
                add_row<decltype(packs)::n>(X, k, end, high, slopes + i * width + first + at, strip,
                                            gradient + first * n_inputs + at);
            });
        }
    }
}

// --- prediction ---

static void sparse_answer(const Model& m, const Sparse& X, const Answers& out, double* scratch)
{
    const ScoreScratch at(m, scratch);
    double* room = at.a;  // the responsibilities are written only after the scores
    const auto scores =
        m.weight_columns.halved ? panel_scores<true, Scaled> : panel_scores<false, Scaled>;
    scores(X, {m}, m.weight_columns, m.n_lifted, m.n_planes, m.sparse_constants, room, at.z);
    answer_scores(m, X.n_rows, out, at);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
