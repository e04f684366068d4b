// Rows of codes times planes, and slopes times rows of codes.
//
//   z_ip = b_p + sum_j table_j[code_ij][p];   gradient_j[code_ij][p] += g_ip
//
// A bin holds a tile of planes, so that a cell works on all of them at once. Rows go in blocks, a
// few parts at a time (decision 106): their tables stay in the nearest cache, and consecutive rows
// with the same code, common in a column that is mostly zero, need not wait for each other's sums.
// Scores are summed over the parts of a row in a fixed order, gradients over the rows in order.
#pragma once

#include "rows/spline_tables.h"
#include "solvers/loss_terms.h"

namespace geomix {
namespace GEOMIX_LEVEL {

constexpr int PARTS_TO_ADD = 6, PARTS_TO_SCATTER = 8;

// Adds N parts to the scores of a tile of planes: z [row][plane].
template <class Code, int W, int N>
static void add_parts(const CodedRows& rows, const PartOfSpline* parts, Index part,
                      const float* tables, float* z)
{
    const Code* code[N];
    const float* table[N];
    for (int k = 0; k < N; ++k) {
        code[k] = static_cast<const Code*>(rows.codes) + (part + k) * rows.stride;
        table[k] = tables + parts[part + k].first_bin * W;
    }
    const Index n_rows = rows.n_rows;
    for (Index i = 0; i < n_rows; ++i) {
        typename Tile<W>::Single sum = Tile<W>::at(table[0], code[0][i]);
#pragma GCC unroll 6
        for (int k = 1; k < N; ++k) sum = sum + Tile<W>::at(table[k], code[k][i]);
        Tile<W>::at(z, i) = Tile<W>::at(z, i) + sum;
    }
}

// Slopes [row][plane] added to the bins of N parts.
template <class Code, int W, int N>
static void scatter_parts(const CodedRows& rows, const PartOfSpline* parts, Index part,
                          const float* slopes, float* tables)
{
    const Code* code[N];
    float* table[N];
    for (int k = 0; k < N; ++k) {
        code[k] = static_cast<const Code*>(rows.codes) + (part + k) * rows.stride;
        table[k] = tables + parts[part + k].first_bin * W;
    }
    const Index n_rows = rows.n_rows;
    for (Index i = 0; i < n_rows; ++i) {
        const typename Tile<W>::Single slope = Tile<W>::at(slopes, i);
#pragma GCC unroll 8
        for (int k = 0; k < N; ++k) {
            auto& to = Tile<W>::at(table[k], code[k][i]);
            to = to + slope;
        }
    }
}

template <int N>
struct Parts {
    static constexpr int n = N;
};

// f(first part, Parts<n>) over the parts from `part` to `end`, N at a time, and what is left.
template <int N, class F>
GEOMIX_INLINE void by_parts(Index part, Index end, F f)
{
    for (; part + N <= end; part += N) f(part, Parts<N>());
    if constexpr (N > 1)
        if (part < end) by_parts<N - 1>(part, end, f);
}

template <class Code, int W>
static void add_all_parts(const CodedRows& rows, const PartsOfSpline& lift, const float* numbers,
                          float* z)
{
    const auto add = [&](Index part, auto parts) __attribute__((always_inline)) {
        add_parts<Code, W, decltype(parts)::n>(rows, lift.parts, part, numbers, z);
    };
    by_parts<PARTS_TO_ADD>(0, lift.n_parts, add);
}

template <class Code, int W>
static void scatter_range(const CodedRows& rows, const PartsOfSpline& lift, Index first, Index end,
                          const float* slopes, float* numbers)
{
    const auto scatter = [&](Index part, auto parts) __attribute__((always_inline)) {
        scatter_parts<Code, W, decltype(parts)::n>(rows, lift.parts, part, slopes, numbers);
    };
    by_parts<PARTS_TO_SCATTER>(first, end, scatter);
}

// z [group][plane][lane] at the beginning of the scratch, with the room for a tile of all rows
// behind everything else.
static void coded_scores(const Problem<float>& problem, const SplineTables& tables,
                         const CodedRows& rows, float* scratch)
{
    constexpr int n = lanes<float>;
    const Index n_planes = problem.n_planes, n_groups = padded(rows.n_rows, n) / n;
    float* z = scratch + terms_scratch(problem, n_groups);
    each_tile(n_planes, [&](auto width, Index first, Index used) __attribute__((always_inline)) {
        constexpr int W = decltype(width)::n;
        float bias[W] = {};
        for (Index p = 0; p < used; ++p) bias[p] = problem.biases[first + p];
        const typename Tile<W>::Single start = Tile<W>::at(bias, 0);
        for (Index i = 0; i < n_groups * n; ++i) Tile<W>::at(z, i) = start;
        const float* numbers = tables.numbers + first * tables.lift.n_bins;
        (rows.wide ? add_all_parts<uint16_t, W> : add_all_parts<uint8_t, W>)(rows, tables.lift,
                                                                             numbers, z);
        for (Index g = 0; g < n_groups; ++g) {
            const float* row[n];
            for (int i = 0; i < n; ++i) row[i] = z + (g * n + i) * W;
            pack_group<float>(row, n, 1, used, scratch + (g * n_planes + first) * n);
        }
    });
}

// The slopes of a group, [plane][lane], as rows of a tile.
template <int W>
GEOMIX_INLINE void unpack_slopes(const float* slopes, Index used, float* tile)
{
    constexpr int n = lanes<float>;
    Index p = 0;
    for (; p + 4 <= used; p += 4)
        for (int i = 0; i < n; i += 4) {
            const float* const four[4] = {slopes + p * n + i, slopes + (p + 1) * n + i,
                                          slopes + (p + 2) * n + i, slopes + (p + 3) * n + i};
            transpose_four<float>(four, tile + i * W + p, W);
        }
    for (; p < W; ++p)
        for (int i = 0; i < n; ++i) tile[i * W + p] = p < used ? slopes[p * n + i] : 0.0f;
}

static void coded_slopes(const Problem<float>& problem, const SplineTables& tables,
                         const CodedRows& rows, const PanelRows<float>& labels, Sums& sums,
                         float* scratch)
{
    coded_scores(problem, tables, rows, scratch);
    terms_of_scores<float>(problem, labels, sums, scratch);
}

static void coded_scatter(const PartsOfSpline& lift, Index n_planes, const CodedRows& rows,
                          const float* slopes, Cells cells, float* gradient, float* room)
{
    constexpr int n = lanes<float>;
    const Index n_groups = padded(rows.n_rows, n) / n;
    const auto scatter = [&](auto width, Index first, Index used, Index part,
                             Index end) __attribute__((always_inline)) {
        constexpr int W = decltype(width)::n;
        for (Index g = 0; g < n_groups; ++g)
            unpack_slopes<W>(slopes + (g * n_planes + first) * n, used, room + g * n * W);
        (rows.wide ? scatter_range<uint16_t, W>
                   : scatter_range<uint8_t, W>)(rows, lift, part, end, room,
                                                gradient + first * lift.n_bins);
    };
    each_tile_of(n_planes, lift.n_parts, cells, scatter);
}

static double coded_cross_entropy(const Problem<float>& problem, const SplineTables& tables,
                                  const CodedRows& rows, const PanelRows<float>& labels,
                                  float* scratch)
{
    coded_scores(problem, tables, rows, scratch);
    return cross_entropy_of_scores<float>(problem, labels, scratch);
}

static void coded_class_scores(const Problem<float>& problem, const SplineTables& tables,
                               const CodedRows& rows, double* out, float* scratch)
{
    coded_scores(problem, tables, rows, scratch);
    const Index n_groups = padded(rows.n_rows, lanes<float>) / lanes<float>;
    class_scores_of_scores<float>(problem, n_groups, rows.n_rows, out, scratch);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
