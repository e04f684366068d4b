// Cells of a table into codes of a spline lift: see `codes` of the parts in core/spline_parts.py.
//
//   number   how many edges are not above it        level   itself
//
// A part's code is the sum over its sides (one, or two for a pair) of factor * cell.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "simd/threads.h"
#include "simd/vectors.h"

namespace geomix {

struct CodedSide {
    Index part, column, factor;
    Vector edges;    // of a number, ascending, filled up with NaN to one less than a power of two
    Index n_levels;  // of a category; -1: a number
    Index missing, unknown, largest;
};

class SplineCoder {
  public:
    void add_number(Index part, Index column, Vector edges, Index missing, Index factor)
    {
        const auto n_edges = static_cast<Index>(edges.size());
        Index room = 1;
        while (room - 1 < n_edges) room *= 2;
        edges.resize(static_cast<std::size_t>(room - 1), std::numeric_limits<double>::quiet_NaN());
        add({part, column, factor, std::move(edges), -1, missing, 0, std::max(n_edges, missing)});
    }
    void add_category(Index part, Index column, Index n_levels, Index missing, Index unknown,
                      Index factor)
    {
        const Index largest = std::max({n_levels - 1, missing, unknown});
        add({part, column, factor, {}, n_levels, missing, unknown, largest});
    }

    Index n_parts() const { return static_cast<Index>(largest_.size()); }
    Index n_columns() const { return n_columns_; }
    Index largest() const
    {
        return largest_.empty() ? 0 : *std::max_element(largest_.begin(), largest_.end());
    }

    // codes : (n_rows, n_parts), row-major
    template <class T, class Code>
    void code(Strided<T> X, Index n_rows, Code* codes) const
    {
        const Index n_blocks = padded(n_rows, ROWS) / ROWS;
        const int n_threads = threads_for(n_rows * n_parts() * 8, n_blocks);
        std::vector<Code> room(static_cast<std::size_t>(n_threads * n_parts() * ROWS));
        in_parallel(n_threads, [&](int t, int n_started) {
            Code* by_part = room.data() + t * n_parts() * ROWS;
            for (Index k = t; k < n_blocks; k += n_started) {
                const Index first = k * ROWS, n = std::min(ROWS, n_rows - first);
                code_block(X, first, n, by_part);
                Code* to = codes + first * n_parts();
                for (Index i = 0; i < n; ++i)
                    for (Index j = 0; j < n_parts(); ++j)
                        to[i * n_parts() + j] = by_part[j * ROWS + i];
            }
        });
    }

  private:
    static constexpr Index ROWS = 256;

    void add(CodedSide side)
    {
        if (side.part >= n_parts()) largest_.resize(static_cast<std::size_t>(side.part) + 1);
        largest_[side.part] += side.factor * side.largest;
        n_columns_ = std::max(n_columns_, side.column + 1);
        sides_.push_back(std::move(side));
    }

    template <class T, class Code>
    void code_block(Strided<T> X, Index first, Index n, Code* by_part) const
    {
        double x[ROWS];
        std::int32_t cell[ROWS];
        std::fill(by_part, by_part + n_parts() * ROWS, Code(0));
        for (const CodedSide& side : sides_) {
            const T* from = X.data + first * X.row_step + side.column * X.column_step;
            for (Index i = 0; i < n; ++i) x[i] = static_cast<double>(from[i * X.row_step]);
            if (side.n_levels < 0)
                find_bins(side, x, n, cell);
            else
                find_levels(side, x, n, cell);
            Code* to = by_part + side.part * ROWS;
            for (Index i = 0; i < n; ++i) to[i] = static_cast<Code>(to[i] + side.factor * cell[i]);
        }
    }

    // Binary search without a branch, all rows a step at a time.
    static void find_bins(const CodedSide& side, const double* x, Index n, std::int32_t* cell)
    {
        const double* edges = side.edges.data();
        std::fill(cell, cell + n, 0);
        for (auto half = static_cast<std::int32_t>((side.edges.size() + 1) / 2); half > 0;
             half /= 2)
            for (Index i = 0; i < n; ++i) cell[i] += edges[cell[i] + half - 1] <= x[i] ? half : 0;
        const auto missing = static_cast<std::int32_t>(side.missing);
        for (Index i = 0; i < n; ++i) cell[i] = x[i] != x[i] ? missing : cell[i];
    }

    static void find_levels(const CodedSide& side, const double* x, Index n, std::int32_t* cell)
    {
        const auto n_levels = static_cast<double>(side.n_levels);
        for (Index i = 0; i < n; ++i) {
            const bool known = x[i] >= 0.0 && x[i] < n_levels;
            const Index otherwise = x[i] != x[i] ? side.missing : side.unknown;
            cell[i] = static_cast<std::int32_t>(known ? static_cast<Index>(x[i]) : otherwise);
        }
    }

    std::vector<CodedSide> sides_;
    std::vector<Index> largest_;  // code of each part
    Index n_columns_ = 0;
};

}  // namespace geomix
