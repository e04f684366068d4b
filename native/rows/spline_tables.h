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
#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <int W>
struct Tile;

// A number for each plane of a tile: single in tables, double while they are added up.
#define GEOMIX_TILE(W)                                                                            \
    template <>                                                                                   \
    struct Tile<W> {                                                                              \
        static constexpr int n = W;                                                               \
        typedef float Single __attribute__((vector_size(4 * W)));                                 \
        typedef double Double __attribute__((vector_size(8 * W)));                                \
        typedef float InTable __attribute__((vector_size(4 * W), aligned(4), may_alias));         \
        typedef double InRoom __attribute__((vector_size(8 * W), aligned(8), may_alias));         \
        GEOMIX_INLINE const InTable& at(const float* numbers, Index i)                            \
        {                                                                                         \
            return *reinterpret_cast<const InTable*>(numbers + i * W);                            \
        }                                                                                         \
        GEOMIX_INLINE InTable& at(float* numbers, Index i)                                        \
        {                                                                                         \
            return *reinterpret_cast<InTable*>(numbers + i * W);                                  \
        }                                                                                         \
        GEOMIX_INLINE const InRoom& at(const double* numbers, Index i)                            \
        {                                                                                         \
            return *reinterpret_cast<const InRoom*>(numbers + i * W);                             \
        }                                                                                         \
        GEOMIX_INLINE InRoom& at(double* numbers, Index i)                                        \
        {                                                                                         \
            return *reinterpret_cast<InRoom*>(numbers + i * W);                                   \
        }                                                                                         \
        GEOMIX_INLINE Double wide(const Single& x) { return __builtin_convertvector(x, Double); } \
        GEOMIX_INLINE Single rounded(const Double& x)                                             \
        {                                                                                         \
            return __builtin_convertvector(x, Single);                                            \
        }                                                                                         \
    };
GEOMIX_TILE(2)
GEOMIX_TILE(4)
GEOMIX_TILE(8)
#undef GEOMIX_TILE

// f(Tile<W>) with the width for this many planes.
template <class F>
GEOMIX_INLINE void by_width(Index n_planes, F f)
{
    const Index width = planes_in_tile(n_planes);
    if (width == 2) f(Tile<2>());
    if (width == 4) f(Tile<4>());
    if (width == 8) f(Tile<8>());
}

// f(first plane, how many) for each tile of planes.
template <int W, class F>
GEOMIX_INLINE void each_tile(Index n_planes, F f)
{
    for (Index first = 0; first < n_planes; first += W)
        f(first, n_planes - first < W ? n_planes - first : W);
}

// f(first plane, how many, first part, end of the parts) for each tile of planes that `cells`
// has parts of.
template <int W, class F>
GEOMIX_INLINE void each_tile_of(Index n_planes, Index n_parts, Cells cells, F f)
{
    for (Index at = cells.first; at < cells.end;) {
        const Index tile = at / n_parts, part = at % n_parts, first = tile * W;
        const Index next = (tile + 1) * n_parts < cells.end ? (tile + 1) * n_parts : cells.end;
        f(first, n_planes - first < W ? n_planes - first : W, part, part + next - at);
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
        for (Index k = 0; k < part.n_steps; ++k) centre = centre + part.mean[k] * T::at(steps, k);
        if (part.kind == PartOfSpline::curve) expand_curve(part, steps, centre, bins, room);
        if (part.kind == PartOfSpline::levels)
            for (Index b = 0; b < part.n_bins; ++b) {
                Double level = {};
                if (b < part.n_steps) level = T::at(steps, b) - centre;
                T::at(bins, b) = T::rounded(level);
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
            for (Index b = 0; b < part.n_steps; ++b)
                total = total + (T::at(steps, b) = T::wide(T::at(bins, b)));
        if (part.kind == PartOfSpline::pair) total = collect_pair(part, bins, steps);
        for (Index k = 0; k < part.n_steps; ++k)
            T::at(steps, k) = T::at(steps, k) - part.mean[k] * total;
        if (part.kind == PartOfSpline::curve && part.has_missing) {
            auto& last = T::at(steps, part.n_steps - 1);
            last = last + T::wide(T::at(bins, part.n_bins - 1));
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
        T::at(room, 0) = left;
        for (Index k = 1; k < n_intervals(part); ++k) {
            left = left + T::at(steps, k - 1);
            T::at(room, k) = left;
        }
        for (Index b = 0; b < part.n_bins - 1; ++b) {
            const Index k = part.interval[b];
            T::at(bins, b) =
                T::rounded(T::at(room, k) + part.fraction[b] * T::at(steps, k) - centre);
        }
        Double missing = {};
        if (part.has_missing) missing = T::at(steps, part.n_steps - 1);
        T::at(bins, part.n_bins - 1) = T::rounded(missing);
    }

    GEOMIX_INLINE Double collect_curve(const PartOfSpline& part, const float* bins, double* steps,
                                       double* room)
    {
        for (Index k = 0; k < n_intervals(part); ++k) T::at(room, k) = Double{};
        for (Index k = 0; k < part.n_steps; ++k) T::at(steps, k) = Double{};
        // Neighbouring bins lie in one interval: its sums stay in registers until it changes.
        Index now = 0;
        Double inside = {}, share = {};
        for (Index b = 0; b < part.n_bins - 1; ++b) {
            const Index k = part.interval[b];
            if (k != now) {
                T::at(room, now) = inside;
                T::at(steps, now) = share;
                now = k;
                inside = T::at(room, k);
                share = T::at(steps, k);
            }
            const Double bin = T::wide(T::at(bins, b));
            inside = inside + bin;
            share = share + part.fraction[b] * bin;
        }
        T::at(room, now) = inside;
        T::at(steps, now) = share;
        Double beyond = {};
        for (Index k = n_intervals(part); k-- > 0;) {
            T::at(steps, k) = T::at(steps, k) + beyond;
            beyond = beyond + T::at(room, k);
        }
        return beyond;
    }

    // Along one side of a pair: values become sums up to each, or back again by sums from each on.
    GEOMIX_INLINE void sum_up(double* first, Index n, Index step)
    {
        for (Index i = 1; i < n; ++i)
            T::at(first, i * step) = T::at(first, i * step) + T::at(first, (i - 1) * step);
    }
    GEOMIX_INLINE void sum_down(double* first, Index n, Index step)
    {
        for (Index i = n - 1; i-- > 0;)
            T::at(first, i * step) = T::at(first, i * step) + T::at(first, (i + 1) * step);
    }

    GEOMIX_INLINE void expand_pair(const PartOfSpline& part, const double* steps,
                                   const Double& centre, float* bins, double* room)
    {
        const Index rows = part.n_first - 1, columns = part.n_second - 1;
        for (Index k = 0; k < part.n_steps; ++k) T::at(room, k) = T::at(steps, k);
        if (part.first_ordered)
            for (Index b = 0; b < columns; ++b) sum_up(room + b * W, rows, columns);
        if (part.second_ordered)
            for (Index a = 0; a < rows; ++a) sum_up(room + a * columns * W, columns, 1);
        for (Index b = 0; b < part.n_bins; ++b) T::at(bins, b) = typename T::Single{};
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                T::at(bins, a * part.n_second + b) =
                    T::rounded(T::at(room, a * columns + b) - centre);
    }

    GEOMIX_INLINE Double collect_pair(const PartOfSpline& part, const float* bins, double* steps)
    {
        const Index rows = part.n_first - 1, columns = part.n_second - 1;
        Double total = {};
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                total = total + (T::at(steps, a * columns + b) =
                                     T::wide(T::at(bins, a * part.n_second + b)));
        if (part.first_ordered)
            for (Index b = 0; b < columns; ++b) sum_down(steps + b * W, rows, columns);
        if (part.second_ordered)
            for (Index a = 0; a < rows; ++a) sum_down(steps + a * columns * W, columns, 1);
        return total;
    }
};

static void expand_tables(const PartsOfSpline& lift, const float* weights, Index n_planes,
                          Cells cells, float* tables, double* room)
{
    by_width(n_planes, [&](auto width) __attribute__((always_inline)) {
        constexpr int W = decltype(width)::n;
        double *steps = room, *rest = room + W * lift.n_steps;
        each_tile_of<W>(
            n_planes, lift.n_parts, cells, [&](Index first, Index used, Index j, Index end) {
                for (; j < end; ++j) {
                    const PartOfSpline& part = lift.parts[j];
                    const Index begin = part.first_step;
                    for (Index k = 0; k < part.n_steps; ++k)
                        for (Index p = 0; p < W; ++p)
                            steps[k * W + p] =
                                p < used ? lift.unit[begin + k] *
                                               weights[(first + p) * lift.n_steps + begin + k]
                                         : 0.0;
                    PartTables<W>::expand(
                        part, steps, tables + (first * lift.n_bins + part.first_bin * W), rest);
                }
            });
    });
}

static void collect_tables(const PartsOfSpline& lift, float* tables, Index n_planes, Cells cells,
                           double* weights, double* room)
{
    by_width(n_planes, [&](auto width) __attribute__((always_inline)) {
        constexpr int W = decltype(width)::n;
        double *steps = room, *rest = room + W * lift.n_steps;
        each_tile_of<W>(
            n_planes, lift.n_parts, cells, [&](Index first, Index used, Index j, Index end) {
                for (; j < end; ++j) {
                    const PartOfSpline& part = lift.parts[j];
                    float* bins = tables + (first * lift.n_bins + part.first_bin * W);
                    PartTables<W>::collect(part, bins, steps, rest);
                    for (Index b = 0; b < part.n_bins; ++b)
                        Tile<W>::at(bins, b) = typename Tile<W>::Single{};
                    for (Index p = 0; p < used; ++p) {
                        double* to = weights + (first + p) * lift.n_steps + part.first_step;
                        for (Index k = 0; k < part.n_steps; ++k)
                            to[k] += lift.unit[part.first_step + k] * steps[k * W + p];
                    }
                }
            });
    });
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
