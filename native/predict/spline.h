// Plane scores of a spline lift: a sum of looked-up values, for a block of rows and for one row.
//
//   z_p = b_p + sum over curves of (value_p[k] + f * step_p[k]) + sum over cells of value_p[code]
//
// where x lies in interval k of a curve, at the fraction f of its width. Planes are in lanes, so a look-up
// works on all of them at once. Cells are found one by one, by the same operations in a block and
// in a row.
#pragma once

#include "rows/panel.h"
#include "simd/tiles.h"

namespace geomix {
namespace GEOMIX_LEVEL {

typedef Index LooseIndex __attribute__((may_alias));  // lies in a scratch of doubles

// Number of edges <= x; 0 for NaN. The edges are filled up with NaN, and x >= NaN is false, so the
// search stays within them.
template <int N>
GEOMIX_INLINE void find_edges(const double* edges, Index half, const double* x, LooseIndex* at)
{
    for (int i = 0; i < N; ++i) at[i] = 0;
    for (; half > 0; half /= 2)
        for (int i = 0; i < N; ++i) at[i] += half & -Index(edges[at[i] + half - 1] <= x[i]);
}

// The numbers of a curve's interval, and the relative position in it, 0 to 1.
template <int N>
GEOMIX_INLINE void place_on_curve(const ModelCurve& curve, Index width, const double* x,
                                  LooseIndex* at, double* fraction)
{
    Index interval[N];
    find_edges<N>(curve.edges, curve.half, x, interval);
    for (int i = 0; i < N; ++i) {
        const CurveSpan& span = curve.spans[interval[i]];
        const double high = curve.high < x[i] ? curve.high : x[i];
        const double inside = high < curve.low ? curve.low : high;
        const double f = (inside * span.unit - span.left) / span.width;
        const bool missing = x[i] != x[i];
        fraction[i] = missing ? 0.0 : f;
        at[i] = curve.first + (missing ? curve.n_intervals : interval[i]) * 2 * width;
    }
}

template <int N>
GEOMIX_INLINE void find_cells(const ModelSide& side, const double* x, LooseIndex* cell)
{
    if (side.n_levels < 0) {
        find_edges<N>(side.edges, side.half, x, cell);
        for (int i = 0; i < N; ++i) cell[i] = x[i] != x[i] ? side.missing : cell[i];
        return;
    }
    const double n_levels = static_cast<double>(side.n_levels);
    for (int i = 0; i < N; ++i) {
        const bool known = x[i] >= 0.0 && x[i] < n_levels;
        const Index otherwise = x[i] != x[i] ? side.missing : side.unknown;
        cell[i] = known ? static_cast<Index>(known ? x[i] : 0.0) : otherwise;
    }
}

// x : x(column, to) reads N numbers of a column.
template <int N, class Read>
GEOMIX_INLINE void place(const ModelSpline& s, const Read& read, LooseIndex* at, double* fraction)
{
    double x[N];
    for (Index c = 0; c < s.n_curves; ++c) {
        read(s.curves[c].column, x);
        place_on_curve<N>(s.curves[c], s.width, x, at + c * N, fraction + c * N);
    }
    at += s.n_curves * N;
    for (Index c = 0; c < s.n_cells; ++c, at += N) {
        const ModelCells& cells = s.cells[c];
        Index one[N], other[N] = {};
        read(cells.sides[0].column, x);
        find_cells<N>(cells.sides[0], x, one);
        if (cells.n_sides == 2) {
            read(cells.sides[1].column, x);
            find_cells<N>(cells.sides[1], x, other);
        }
        for (int i = 0; i < N; ++i)
            at[i] = cells.first + (one[i] * cells.factor + other[i]) * s.width;
    }
}

// Scores of one row, padded; its places are `step` apart.
GEOMIX_INLINE void add_up(const ModelSpline& s, const LooseIndex* at, const double* fraction,
                          Index step, double* out)
{
    constexpr int n = DOUBLES;
    by_tiles(s.width, [&](Index first, auto packs) __attribute__((always_inline)) {
        constexpr int N = decltype(packs)::n;
        Pack<double> sum[N];
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) sum[i] = load(s.constants + first + i * n);
        for (Index c = 0; c < s.n_curves; ++c) {
            const double* value = s.numbers + at[c * step] + first;
            const Pack<double> f = splat(fraction[c * step]);
#pragma GCC unroll 4
            for (int i = 0; i < N; ++i)
                sum[i] = sum[i] + fused(f, load(value + s.width + i * n), load(value + i * n));
        }
        for (Index c = s.n_curves; c < s.n_curves + s.n_cells; ++c) {
            const double* value = s.numbers + at[c * step] + first;
#pragma GCC unroll 4
            for (int i = 0; i < N; ++i) sum[i] = sum[i] + load(value + i * n);
        }
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) store(out + first + i * n, sum[i]);
    });
}

// z [group][plane][lane];  room : spline_scratch(m) numbers
static void spline_block(const Model& m, Strided<double> X, Index n_rows, double* room, double* z)
{
    constexpr int n = DOUBLES;
    const ModelSpline& s = *m.spline;
    auto* at = reinterpret_cast<LooseIndex*>(room);
    double* fraction = room + n * (s.n_curves + s.n_cells);
    double* scores = fraction + n * s.n_curves;
    const double* row[n];
    for (int i = 0; i < n; ++i) row[i] = scores + i * s.width;
    for (Index start = 0; start < n_rows; start += n) {
        const Index used = n_rows - start < n ? n_rows - start : n;
        const double* from = X.data + start * X.row_step;
        const auto read = [&](Index column, double* x) __attribute__((always_inline)) {
            for (int i = 0; i < n; ++i)
                x[i] = i < used ? from[i * X.row_step + column * X.column_step] : 0.0;
        };
        place<n>(s, read, at, fraction);
        for (int i = 0; i < n; ++i) add_up(s, at + i, fraction + i, n, scores + i * s.width);
        pack_group<double>(row, n, 1, m.n_planes, z + start * m.n_planes);
    }
}

// z : padded;  room as above
static void spline_row(const Model& m, const double* x, double* room, double* z)
{
    const ModelSpline& s = *m.spline;
    auto* at = reinterpret_cast<LooseIndex*>(room);
    double* fraction = room + s.n_curves + s.n_cells;
    place<1>(s, [=](Index column, double* to) { *to = x[column]; }, at, fraction);
    add_up(s, at, fraction, 1, z);
}

// What each column adds to the score of a plane; each column of a pair gets half of its value.
static void spline_contributions(const Model& m, const double* x, Index plane, double* room,
                                 double* by_column)
{
    const ModelSpline& s = *m.spline;
    auto* at = reinterpret_cast<LooseIndex*>(room);
    double* fraction = room + s.n_curves + s.n_cells;
    place<1>(s, [=](Index column, double* to) { *to = x[column]; }, at, fraction);
    for (Index j = 0; j < m.n_columns; ++j) by_column[j] = 0.0;
    for (Index c = 0; c < s.n_curves; ++c) {
        const double* value = s.numbers + at[c] + plane;
        by_column[s.curves[c].column] += fused(fraction[c], value[s.width], value[0]);
    }
    for (Index c = 0; c < s.n_cells; ++c) {
        const ModelCells& cells = s.cells[c];
        const double value = s.numbers[at[s.n_curves + c] + plane] / double(cells.n_sides);
        for (Index side = 0; side < cells.n_sides; ++side)
            by_column[cells.sides[side].column] += value;
    }
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
