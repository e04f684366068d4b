// Rows of codes times planes, and slopes times rows of codes.
//
//   z_ip = b_p + sum_j table_j[code_ij][p];   gradient_j[code_ij][p] += g_ip
//
// A bin holds a pack of planes, so that a cell works on all of them at once. Rows go in blocks, a
// few parts at a time: their tables stay in the nearest cache, and neighbouring rows of one code
// do not wait for each other's sums. Scores are summed over the parts of a row in a fixed tree,
// gradients over the rows in order.
#pragma once

#include "terms.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <class Code>
GEOMIX_INLINE const Code* codes_of(const CodedRows& rows, Index part)
{
    return static_cast<const Code*>(rows.codes) + part * rows.stride;
}

// What N parts add to the scores of a tile of planes: z [row][lane].
template <class Code, int N>
static void add_parts(const CodedRows& rows, const SplineTables& tables, const double* numbers,
                      Index part, double* z)
{
    constexpr int n = DOUBLES;
    const Code* code[N];
    const double* table[N];
    for (int k = 0; k < N; ++k) {
        code[k] = codes_of<Code>(rows, part + k);
        table[k] = numbers + tables.first_bin[part + k] * n;
    }
    for (Index i = 0; i < rows.n_rows; ++i) {
        Pack<double> sum = load(table[0] + code[0][i] * n);
#pragma GCC unroll 4
        for (int k = 1; k < N; ++k) sum = sum + load(table[k] + code[k][i] * n);
        store(z + i * n, load(z + i * n) + sum);
    }
}

template <class Code, int N>
static void scatter_parts(const CodedRows& rows, const SplineTables& tables, const double* slopes,
                          Index part, double* numbers)
{
    constexpr int n = DOUBLES;
    const Code* code[N];
    double* table[N];
    for (int k = 0; k < N; ++k) {
        code[k] = codes_of<Code>(rows, part + k);
        table[k] = numbers + tables.first_bin[part + k] * n;
    }
    for (Index i = 0; i < rows.n_rows; ++i) {
        const Pack<double> slope = load(slopes + i * n);
#pragma GCC unroll 4
        for (int k = 0; k < N; ++k) {
            double* to = table[k] + code[k][i] * n;
            store(to, load(to) + slope);
        }
    }
}

#ifndef NF
#define NF 4
#define NB 4
#endif
template <class Code>
GEOMIX_INLINE void tile_scores(const CodedRows& rows, const SplineTables& tables,
                               const double* numbers, double* z)
{
    Index part = 0;
    for (; part + NF <= tables.n_parts; part += NF)
        add_parts<Code, NF>(rows, tables, numbers, part, z);
    for (; part < tables.n_parts; ++part) add_parts<Code, 1>(rows, tables, numbers, part, z);
}

template <class Code>
GEOMIX_INLINE void tile_gradient(const CodedRows& rows, const SplineTables& tables,
                                 const double* slopes, double* numbers)
{
    Index part = 0;
    for (; part + NB <= tables.n_parts; part += NB)
        scatter_parts<Code, NB>(rows, tables, slopes, part, numbers);
    for (; part < tables.n_parts; ++part)
        scatter_parts<Code, 1>(rows, tables, slopes, part, numbers);
}

GEOMIX_INLINE Index planes_in_tile(Index n_planes, Index first)
{
    return n_planes - first < DOUBLES ? n_planes - first : DOUBLES;
}

// z [group][plane][lane] at the beginning of the scratch, with the room for a tile behind
// everything else.
static void coded_scores(const Problem<double>& problem, const SplineTables& tables,
                         const CodedRows& rows, double* scratch)
{
    constexpr int n = DOUBLES;
    const Index n_planes = problem.n_planes, n_groups = padded(rows.n_rows, n) / n;
    double* tile = scratch + terms_scratch(problem, n_groups);
    for (Index first = 0; first < n_planes; first += n) {
        const Index used = planes_in_tile(n_planes, first);
        double bias[n] = {};
        for (Index p = 0; p < used; ++p) bias[p] = problem.biases[first + p];
        const Pack<double> start = load(bias);
        for (Index i = 0; i < n_groups * n; ++i) store(tile + i * n, start);
        const double* numbers = tables.numbers + first * tables.n_bins;
        if (rows.wide)
            tile_scores<uint16_t>(rows, tables, numbers, tile);
        else
            tile_scores<uint8_t>(rows, tables, numbers, tile);
        for (Index g = 0; g < n_groups; ++g) {
            const double* row[n];
            for (int i = 0; i < n; ++i) row[i] = tile + (g * n + i) * n;
            pack_group<double>(row, n, 1, used, scratch + (g * n_planes + first) * n);
        }
    }
}

static void coded_terms(const Problem<double>& problem, const SplineTables& tables,
                        const CodedRows& rows, const PanelRows<double>& labels, Sums& sums,
                        double* gradient, double* scratch)
{
    constexpr int n = DOUBLES;
    const Index n_planes = problem.n_planes;
    coded_scores(problem, tables, rows, scratch);
    terms_of_scores<double>(problem, labels, sums, scratch);
    double* tile = scratch + terms_scratch(problem, labels.n_groups);
    for (Index first = 0; first < n_planes; first += n) {
        const Index used = planes_in_tile(n_planes, first);
        for (Index g = 0; g < labels.n_groups; ++g) {
            const double* plane[n] = {};
            for (Index p = 0; p < used; ++p)
                plane[p] = scratch + (g * n_planes + first + p) * n;
            pack_group<double>(plane, used, 1, n, tile + g * n * n);
        }
        double* numbers = gradient + first * tables.n_bins;
        if (rows.wide)
            tile_gradient<uint16_t>(rows, tables, tile, numbers);
        else
            tile_gradient<uint8_t>(rows, tables, tile, numbers);
    }
}

static double coded_cross_entropy(const Problem<double>& problem, const SplineTables& tables,
                                  const CodedRows& rows, const PanelRows<double>& labels,
                                  double* scratch)
{
    coded_scores(problem, tables, rows, scratch);
    return cross_entropy_of_scores<double>(problem, labels, scratch);
}

static void coded_class_scores(const Problem<double>& problem, const SplineTables& tables,
                               const CodedRows& rows, double* out, double* scratch)
{
    coded_scores(problem, tables, rows, scratch);
    class_scores_of_scores<double>(problem, padded(rows.n_rows, DOUBLES) / DOUBLES, rows.n_rows,
                                   out, scratch);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
