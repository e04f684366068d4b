// Training rows that are sparse: the matrix `X - shift`, never made dense.
//
//   z = W x + (b - W shift);   dloss/dW = sum_i g_i x_i' - (sum_i g_i) shift'
//
// so the shift costs once per pass. A pass takes the rows in blocks: first their slopes, threads
// sharing the rows, then the gradient, threads sharing the columns. Every number of the gradient
// is added up by one thread over the rows in order, and the few other sums in chunks of a fixed
// size that are added in order: any number of threads gives the same bits. All in float64.
#pragma once

#include <algorithm>
#include <vector>

#include "rows/rows.h"
#include "rows/sparse_table.h"
#include "simd/vectors.h"

namespace geomix {

// Buffers of a pass: planes by columns, their gradient, and the slopes of a block of rows.
struct SparsePass {
    Index n_inputs, width;
    Aligned<double> weights, gradient, slopes, y, weight;
    Vector constants;
    std::vector<OwnedSums> chunks;

    explicit SparsePass(const Planes<double>& planes)
        : n_inputs(planes.n_inputs), width(padded(size(planes.biases), DOUBLES)),
          weights(static_cast<std::size_t>(n_inputs * width)),
          constants(static_cast<std::size_t>(width))
    {
    }

    template <class V>
    static Index size(const V& v)
    {
        return static_cast<Index>(v.size());
    }

    // f(place by columns, plane, column) over all weights.
    template <class F>
    void each_weight(Index n_planes, F f) const
    {
        for (Index first = 0; first < n_planes; first += COLUMN_STRIP) {
            const Index strip = std::min(COLUMN_STRIP, width - first);
            const Index end = std::min(n_planes, first + COLUMN_STRIP);
            for (Index j = 0; j < n_inputs; ++j)
                for (Index p = first; p < end; ++p)
                    f(first * n_inputs + j * strip + p - first, p, j);
        }
    }

    SparsePlanes assign(const Planes<double>& planes, const Vector& shift)
    {
        const Index n_planes = size(planes.biases);
        const double* from = planes.weights.data();
        each_weight(n_planes,
                    [&](Index at, Index p, Index j) { weights[at] = from[p * n_inputs + j]; });
        for (Index p = 0; p < n_planes; ++p)
            constants[p] = planes.biases[p] - dot(from + p * n_inputs, shift.data(), n_inputs);
        return {planes.problem(), {weights.data(), width, false}, constants.data()};
    }
};

class SparseRows {
  public:
    using Number = double;

    SparseRows(SparseTable X, Vector shift, const Index* y, const double* weight)
        : X_(std::move(X)), shift_(std::move(shift)), y_(padded(X_.n_rows(), ROWS_PER_BLOCK)),
          weight_(y_.size()), entries_before_(static_cast<std::size_t>(X_.n_columns()) + 1)
    {
        std::copy(y, y + X_.n_rows(), y_.begin());
        std::copy(weight, weight + X_.n_rows(), weight_.begin());
        for (Index k = 0; k < X_.n_entries(); ++k) ++entries_before_[X_.view().columns[k] + 1];
        for (std::size_t j = 1; j < entries_before_.size(); ++j)
            entries_before_[j] += entries_before_[j - 1];
    }

    Index n_rows() const { return X_.n_rows(); }
    Index n_columns() const { return X_.n_columns(); }

    struct Workspace {};  // a pass is long enough to make its own

    // Loss, gradients and usage of all rows; false if interrupted.
    bool terms(const Planes<double>& planes, OwnedSums& total, Interrupt& interrupt, Team&,
               Workspace&) const
    {
        SparsePass pass(planes);
        return terms(planes, nullptr, n_rows(), total, interrupt, pass);
    }

    // The same of the rows order[0..n_rows).
    bool terms(const Planes<double>& planes, const Index* order, Index n_rows, OwnedSums& total,
               Interrupt& interrupt, SparsePass& pass) const
    {
        const SparsePlanes by_columns = pass.assign(planes, shift_);
        total.clear();
        pass.gradient.assign(pass.weights.size(), 0.0);
        const Sparse all{X_.view().values, X_.view().columns, X_.view().start, order, n_rows};
        for (Index first = 0, n = 0; first < n_rows && !interrupt.check(); first += n) {
            n = rows_in_block(all, first);
            const Sparse block = part(all, first, n);
            const int n_threads = threads_for(n_entries(block) * by_columns.problem.n_planes,
                                              padded(n, ROWS_PER_BLOCK) / ROWS_PER_BLOCK);
            add_slopes(by_columns, block, labels(block, first, pass), n_threads, total, pass);
            in_parallel(n_threads, [&](int t, int n_started) {
                kernels().sparse.gradient(block, pass.slopes.data(), pass.width, pass.n_inputs,
                                          first_column(t, n_started),
                                          first_column(t + 1, n_started), pass.gradient.data());
            });
        }
        const double* slopes = total.sums.biases_gradient;
        pass.each_weight(by_columns.problem.n_planes, [&](Index at, Index p, Index j) {
            total.sums.weights_gradient[p * pass.n_inputs + j] =
                pass.gradient[at] - slopes[p] * shift_[j];
        });
        return !interrupt.asked();
    }

    // Weighted sum of -log p of the true class.
    double cross_entropy(const Planes<double>& planes) const
    {
        double loss = 0.0;
        by_chunks(planes, [&](const SparsePlanes& found, Index first, Index n, double* scratch) {
            loss += kernels().sparse.cross_entropy(
                found, part(X_.view(), first, n),
                {nullptr, y_.data() + first, weight_.data() + first, padded(n, DOUBLES) / DOUBLES},
                scratch);
        });
        return loss;
    }

    // (n_rows, n_classes), row-major.
    void class_scores(const Planes<double>& planes, double* out) const
    {
        by_chunks(planes, [&](const SparsePlanes& found, Index first, Index n, double* scratch) {
            kernels().sparse.class_scores(found, part(X_.view(), first, n),
                                          out + first * found.problem.n_classes, scratch);
        });
    }

  private:
    // Rows whose slopes are held at a time, and entries after which Ctrl-C is checked for.
    static constexpr Index MOST_ROWS = 4096, MANY_ENTRIES = Index(1) << 20;

    static Sparse part(const Sparse& X, Index first, Index n)
    {
        if (X.order) return {X.values, X.columns, X.start, X.order + first, n};
        return {X.values, X.columns, X.start + first, nullptr, n};
    }

    static Index entries_of(const Sparse& X, Index i)
    {
        const Index row = X.order ? X.order[i] : i;
        return X.start[row + 1] - X.start[row];
    }

    static Index n_entries(const Sparse& X)
    {
        Index n = 0;
        for (Index i = 0; i < X.n_rows; ++i) n += entries_of(X, i);
        return n;
    }

    // Whole chunks until there are many rows or many entries.
    static Index rows_in_block(const Sparse& X, Index first)
    {
        const Index most = std::min(MOST_ROWS, X.n_rows - first);
        Index n = 0;
        for (Index entries = 0; n < most && (n % ROWS_PER_BLOCK || entries < MANY_ENTRIES); ++n)
            entries += entries_of(X, first + n);
        return n;
    }

    // Where thread t's columns begin: each has about as many entries.
    Index first_column(int t, int n_threads) const
    {
        if (t == n_threads) return n_columns();
        const Index share = X_.n_entries() / n_threads * t;
        return std::lower_bound(entries_before_.begin(), entries_before_.end(), share) -
               entries_before_.begin();
    }

    PanelRows<double> labels(const Sparse& block, Index first, SparsePass& pass) const
    {
        const Index n_groups = padded(block.n_rows, DOUBLES) / DOUBLES;
        if (!block.order) return {nullptr, y_.data() + first, weight_.data() + first, n_groups};
        pass.y.assign(static_cast<std::size_t>(n_groups * DOUBLES), 0.0);
        pass.weight.assign(pass.y.size(), 0.0);
        for (Index i = 0; i < block.n_rows; ++i) {
            pass.y[i] = y_[block.order[i]];
            pass.weight[i] = weight_[block.order[i]];
        }
        return {nullptr, pass.y.data(), pass.weight.data(), n_groups};
    }

    // Slopes of a block into the pass; loss, bias gradients and usage into the total.
    void add_slopes(const SparsePlanes& planes, const Sparse& block, PanelRows<double> labels,
                    int n_threads, OwnedSums& total, SparsePass& pass) const
    {
        const Index n_planes = planes.problem.n_planes, room = sparse_scratch(planes.problem);
        const Index n_chunks = padded(block.n_rows, ROWS_PER_BLOCK) / ROWS_PER_BLOCK;
        while (SparsePass::size(pass.chunks) < n_chunks) pass.chunks.emplace_back(n_planes, 0);
        if (SparsePass::size(pass.slopes) < block.n_rows * pass.width)
            pass.slopes.resize(block.n_rows * pass.width);
        Aligned<double> scratch(static_cast<std::size_t>(room * n_threads));
        in_parallel(n_threads, [&](int t, int n_started) {
            for (Index k = t; k < n_chunks; k += n_started) {
                const Index first = k * ROWS_PER_BLOCK;
                const Index n = std::min(ROWS_PER_BLOCK, block.n_rows - first);
                pass.chunks[k].clear();
                kernels().sparse.terms(planes, part(block, first, n),
                                       {nullptr, labels.y + first, labels.weight + first,
                                        padded(n, DOUBLES) / DOUBLES},
                                       pass.chunks[k].sums, pass.slopes.data() + first * pass.width,
                                       scratch.data() + t * room);
            }
        });
        for (Index k = 0; k < n_chunks; ++k) {
            const Sums& chunk = pass.chunks[k].sums;
            total.sums.loss += chunk.loss;
            total.sums.row_weight += chunk.row_weight;
            for (Index p = 0; p < n_planes; ++p) {
                total.sums.biases_gradient[p] += chunk.biases_gradient[p];
                total.sums.usage[p] += chunk.usage[p];
            }
        }
    }

    // f(planes, first row, number of rows, scratch) over all rows in order.
    template <class F>
    void by_chunks(const Planes<double>& planes, F f) const
    {
        SparsePass pass(planes);
        const SparsePlanes by_columns = pass.assign(planes, shift_);
        Aligned<double> scratch(sparse_scratch(by_columns.problem));
        for (Index first = 0; first < n_rows(); first += ROWS_PER_BLOCK)
            f(by_columns, first, std::min(ROWS_PER_BLOCK, n_rows() - first), scratch.data());
    }

    SparseTable X_;
    Vector shift_;
    Aligned<double> y_, weight_;
    std::vector<Index> entries_before_;  // (n_columns + 1,): in the columns before this one
};

}  // namespace geomix
