// Rows of a CSR matrix from a caller: checked here, trusted from then on.
//
// Column numbers may come in any order and more than once in a row, where their values add up.
// Arrays that the kernels can read (doubles, 32-bit columns that rise) are borrowed unless they
// are to be kept; others are copied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "simd/kernels.h"

namespace geomix {

class SparseTable {
  public:
    // values, columns : (n_entries,);  start : (n_rows + 1,). std::invalid_argument if they are
    // not the rows of a matrix with n_columns columns.
    template <class Value, class Column>
    SparseTable(const Value* values, const Column* columns, Index n_entries, const Index* start,
                Index n_rows, Index n_columns, bool keep)
        : n_columns_(n_columns)
    {
        check(n_columns <= std::numeric_limits<std::int32_t>::max(), "X has too many columns.");
        check_start(start, n_rows, n_entries);
        const bool rising = check_columns(columns, start, n_rows);
        view_ = {nullptr, nullptr, start, nullptr, n_rows};
        if constexpr (std::is_same_v<Value, double> && std::is_same_v<Column, std::int32_t>)
            view_.values = values, view_.columns = columns;
        if (keep || !rising || view_.values == nullptr) copy(values, columns, rising);
    }
    SparseTable(SparseTable&&) = default;  // vectors keep their place when moved
    SparseTable(const SparseTable&) = delete;

    const Sparse& view() const { return view_; }
    Index n_rows() const { return view_.n_rows; }
    Index n_columns() const { return n_columns_; }
    Index n_entries() const { return view_.start[view_.n_rows]; }

  private:
    static void check(bool fine, const char* what)
    {
        if (!fine) throw std::invalid_argument(what);
    }

    static void check_start(const Index* start, Index n_rows, Index n_entries)
    {
        check(start[0] == 0, "indptr must begin with 0.");
        for (Index i = 0; i < n_rows; ++i) check(start[i] <= start[i + 1], "indptr must not fall.");
        check(start[n_rows] <= n_entries, "indptr goes beyond the entries.");
    }

    // Whether the columns of every row rise.
    template <class Column>
    bool check_columns(const Column* columns, const Index* start, Index n_rows) const
    {
        bool within = true, rising = true;
        for (Index i = 0; i < n_rows; ++i)
            for (Index k = start[i]; k < start[i + 1]; ++k) {
                within &= columns[k] >= 0 && columns[k] < n_columns_;
                rising &= k == start[i] || columns[k - 1] < columns[k];
            }
        check(within, "indices holds a column that X does not have.");
        return rising;
    }

    template <class Value, class Column>
    void copy(const Value* values, const Column* columns, bool rising)
    {
        const Index n_rows = view_.n_rows, n_entries = view_.start[n_rows];
        start_.assign(view_.start, view_.start + n_rows + 1);
        values_.assign(values, values + n_entries);
        columns_.assign(columns, columns + n_entries);
        if (!rising) sort_and_merge();
        view_ = {values_.data(), columns_.data(), start_.data(), nullptr, n_rows};
    }

    void sort_and_merge()
    {
        struct Entry {
            std::int32_t column;
            double value;
        };
        std::vector<Entry> row;
        Index to = 0, first = 0;
        for (std::size_t i = 0; i + 1 < start_.size(); ++i) {
            row.clear();
            for (Index k = first; k < start_[i + 1]; ++k) row.push_back({columns_[k], values_[k]});
            std::stable_sort(row.begin(), row.end(),
                             [](const Entry& a, const Entry& b) { return a.column < b.column; });
            first = start_[i + 1];
            for (const Entry& entry : row) {
                if (to > start_[i] && columns_[to - 1] == entry.column) {
                    values_[to - 1] += entry.value;
                } else {
                    columns_[to] = entry.column;
                    values_[to++] = entry.value;
                }
            }
            start_[i + 1] = to;
        }
    }

    Index n_columns_;
    std::vector<double> values_;
    std::vector<std::int32_t> columns_;
    std::vector<Index> start_;
    Sparse view_;
};

}  // namespace geomix
