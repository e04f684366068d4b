// The value of a plane in each bin of a spline lift, from the steps that are its weights, and back.
//
//   curve   table[b] = sum of the steps below the bin's interval + fraction * the interval's step
//   levels  table[b] = step b
//   pair    table[a, b] = sum of the steps up to a (or step a alone) and up to b (or b alone)
//
// minus sum_k mean_k w_k, except in bins of missing cells and of levels that were never seen.
// Gradients over bins become gradients over steps by the transposed matrix. Sums are in double.
#pragma once

#include "simd/kernels.h"
#include "simd/tile.h"

namespace geomix {
namespace GEOMIX_LEVEL {

// f(Tile<W>, first plane, how many) for the tile that begins with this plane.
template <class F>
GEOMIX_INLINE void with_tile(Index n_planes, Index first, F f)
{
    const Index left = n_planes - first, used = left < WIDEST_TILE ? left : WIDEST_TILE;
    const Index width = width_of_tile(used);
    if (width == 2) f(Tile<2>(), first, used);
    if (width == 4) f(Tile<4>(), first, used);
    if (width == 8) f(Tile<8>(), first, used);
    if (width == 16) f(Tile<16>(), first, used);
}

// The same for each tile of planes.
template <class F>
GEOMIX_INLINE void each_tile(Index n_planes, F f)
{
    for (Index first = 0; first < n_planes; first += WIDEST_TILE) with_tile(n_planes, first, f);
}

// f(Tile<W>, first plane, how many, first part, end of the parts) for each tile of planes that
// `cells` has parts of.
template <class F>
GEOMIX_INLINE void each_tile_of(Index n_planes, Index n_parts, Cells cells, F f)
{
    for (Index at = cells.first; at < cells.end;) {
        const Index tile = at / n_parts, part = at % n_parts;
        const Index next = (tile + 1) * n_parts < cells.end ? (tile + 1) * n_parts : cells.end;
        const Index end = part + next - at;
        with_tile(n_planes, tile * WIDEST_TILE,
                  [&](auto width, Index first, Index used)
                      __attribute__((always_inline)) { f(width, first, used, part, end); });
        at = next;
    }
}

template <int W>
struct PartTables {
    using T = Tile<W>;
    using Double = typename T::Double;

    // steps : (n_steps,)  ->  bins : (n_bins,);  room for n_steps more
    GEOMIX_INLINE void expand(const PartOfSpline& part, const double* steps, float* bins,
                              double* room)
    {
        Double centre = {};
        for (Index k = 0; k < part.n_steps; ++k)
            centre = centre + T::times(part.mean[k], T::load(steps, k));
        if (part.kind == PartOfSpline::curve) expand_curve(part, steps, centre, bins, room);
        if (part.kind == PartOfSpline::levels)
            for (Index b = 0; b < part.n_bins; ++b) {
                Double level = {};
                if (b < part.n_steps) level = T::load(steps, b) - centre;
                T::store(bins, b, level);
            }
        if (part.kind == PartOfSpline::pair) expand_pair(part, steps, centre, bins, room);
    }

    // bins  ->  steps, by the transposed matrix
    GEOMIX_INLINE void collect(const PartOfSpline& part, const float* bins, double* steps,
                               double* room)
    {
        Double total = {};
        if (part.kind == PartOfSpline::curve) total = collect_curve(part, bins, steps, room);
        if (part.kind == PartOfSpline::levels)
            for (Index b = 0; b < part.n_steps; ++b) {
                const Double level = T::load(bins, b);
                T::store(steps, b, level);
                total = total + level;
            }
        if (part.kind == PartOfSpline::pair) total = collect_pair(part, bins, steps);
        for (Index k = 0; k < part.n_steps; ++k)
            T::store(steps, k, T::load(steps, k) - T::times(part.mean[k], total));
        if (part.kind == PartOfSpline::curve && part.has_missing) {
            const Index last = part.n_steps - 1;
            T::store(steps, last, T::load(steps, last) + T::load(bins, part.n_bins - 1));
        }
    }

  private:
    GEOMIX_INLINE Index n_intervals(const PartOfSpline& part)
    {
        return part.n_steps - part.has_missing;
    }

    GEOMIX_INLINE void expand_curve(const PartOfSpline& part, const double* steps,
                                    const Double& centre, float* bins, double* room)
    {
        Double left = {};  // the curve at the left end of each interval
        T::store(room, 0, left);
        for (Index k = 1; k < n_intervals(part); ++k) {
            left = left + T::load(steps, k - 1);
            T::store(room, k, left);
        }
        for (Index b = 0; b < part.n_bins - 1; ++b) {
            const Index k = part.interval[b];
            const Double within = T::times(part.fraction[b], T::load(steps, k));
            T::store(bins, b, T::load(room, k) + within - centre);
        }
        Double missing = {};
        if (part.has_missing) missing = T::load(steps, part.n_steps - 1);
        T::store(bins, part.n_bins - 1, missing);
    }

    GEOMIX_INLINE Double collect_curve(const PartOfSpline& part, const float* bins, double* steps,
                                       double* room)
    {
        for (Index k = 0; k < n_intervals(part); ++k) T::store(room, k, Double{});
        for (Index k = 0; k < part.n_steps; ++k) T::store(steps, k, Double{});
        // Neighbouring bins lie in one interval: its sums stay in registers until it changes.
        Index now = 0;
        Double inside = {}, share = {};
        for (Index b = 0; b < part.n_bins - 1; ++b) {
            const Index k = part.interval[b];
            if (k != now) {
                T::store(room, now, inside);
                T::store(steps, now, share);
                now = k;
                inside = T::load(room, k);
                share = T::load(steps, k);
            }
            const Double bin = T::load(bins, b);
            inside = inside + bin;
            share = share + T::times(part.fraction[b], bin);
        }
        T::store(room, now, inside);
        T::store(steps, now, share);
        Double beyond = {};
        for (Index k = n_intervals(part); k-- > 0;) {
            T::store(steps, k, T::load(steps, k) + beyond);
            beyond = beyond + T::load(room, k);
        }
        return beyond;
    }

    // n numbers after each other become sums up to each ...
    GEOMIX_INLINE void sum_up(double* first, Index n)
    {
        Double sum = T::load(first, 0);
        for (Index i = 1; i < n; ++i) {
            sum = T::load(first, i) + sum;
            T::store(first, i, sum);
        }
    }
    // ... or sums from each on.
    GEOMIX_INLINE void sum_down(double* first, Index n)
    {
        Double sum = T::load(first, n - 1);
        for (Index i = n - 1; i-- > 0;) {
            sum = T::load(first, i) + sum;
            T::store(first, i, sum);
        }
    }
    // n numbers plus n others.
    GEOMIX_INLINE void add(double* to, const double* other, Index n)
    {
        for (Index i = 0; i < n; ++i) T::store(to, i, T::load(to, i) + T::load(other, i));
    }

    GEOMIX_INLINE void expand_pair(const PartOfSpline& part, const double* steps,
                                   const Double& centre, float* bins, double* room)
    {
        const Index rows = part.n_first - 1, columns = part.n_second - 1, row = columns * W;
        for (Index k = 0; k < part.n_steps; ++k) T::store(room, k, T::load(steps, k));
        if (part.first_ordered)
            for (Index a = 1; a < rows; ++a) add(room + a * row, room + (a - 1) * row, columns);
        if (part.second_ordered)
            for (Index a = 0; a < rows; ++a) sum_up(room + a * row, columns);
        for (Index b = 0; b < part.n_bins; ++b) T::store(bins, b, Double{});
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                T::store(bins, a * part.n_second + b, T::load(room, a * columns + b) - centre);
    }

    GEOMIX_INLINE Double collect_pair(const PartOfSpline& part, const float* bins, double* steps)
    {
        const Index rows = part.n_first - 1, columns = part.n_second - 1, row = columns * W;
        Double total = {};
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b) {
                const Double cell = T::load(bins, a * part.n_second + b);
                T::store(steps, a * columns + b, cell);
                total = total + cell;
            }
        if (part.first_ordered)
            for (Index a = rows - 1; a-- > 0;) add(steps + a * row, steps + (a + 1) * row, columns);
        if (part.second_ordered)
            for (Index a = 0; a < rows; ++a) sum_down(steps + a * row, columns);
        return total;
    }
};

// Bins of some parts from the weights of a tile of planes; room for 2 W numbers a step.
template <int W>
static void expand_tile(const PartsOfSpline& lift, const float* weights, Index used, Index part,
                        Index end, float* tables, double* room)
{
    double *steps = room, *rest = room + W * lift.n_steps;
    for (; part < end; ++part) {
        const PartOfSpline& one = lift.parts[part];
        const Index begin = one.first_step;
        for (Index k = 0; k < one.n_steps; ++k)
            for (Index p = 0; p < W; ++p)
                steps[k * W + p] =
                    p < used ? lift.unit[begin + k] * weights[p * lift.n_steps + begin + k] : 0.0;
        PartTables<W>::expand(one, steps, tables + one.first_bin * W, rest);
    }
}

// Sums over the bins of some parts to the weights of a tile of planes; the bins become zero.
template <int W>
static void collect_tile(const PartsOfSpline& lift, float* tables, Index used, Index part,
                         Index end, double* weights, double* room)
{
    double *steps = room, *rest = room + W * lift.n_steps;
    for (; part < end; ++part) {
        const PartOfSpline& one = lift.parts[part];
        float* bins = tables + one.first_bin * W;
        PartTables<W>::collect(one, bins, steps, rest);
        for (Index b = 0; b < one.n_bins; ++b) Tile<W>::at(bins, b) = typename Tile<W>::Single{};
        for (Index p = 0; p < used; ++p) {
            double* to = weights + p * lift.n_steps + one.first_step;
            for (Index k = 0; k < one.n_steps; ++k)
                to[k] += lift.unit[one.first_step + k] * steps[k * W + p];
        }
    }
}

static void expand_tables(const PartsOfSpline& lift, const float* weights, Index n_planes,
                          Cells cells, float* tables, double* room)
{
    each_tile_of(n_planes, lift.n_parts, cells,
                 [&](auto width, Index first, Index used, Index part, Index end) {
                     expand_tile<decltype(width)::n>(lift, weights + first * lift.n_steps, used,
                                                     part, end, tables + first * lift.n_bins, room);
                 });
}

static void collect_tables(const PartsOfSpline& lift, float* tables, Index n_planes, Cells cells,
                           double* weights, double* room)
{
    each_tile_of(n_planes, lift.n_parts, cells,
                 [&](auto width, Index first, Index used, Index part, Index end) {
                     collect_tile<decltype(width)::n>(lift, tables + first * lift.n_bins, used,
                                                      part, end, weights + first * lift.n_steps,
                                                      room);
                 });
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
