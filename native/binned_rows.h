// Training rows of a spline lift, as codes: a byte or two per cell.
//
// Rows lie in blocks, part by part. At most MOST_CHUNKS chunks of whole blocks, cut by the number
// of rows alone, add up tables of their own, which become gradients over steps and are added in
// order: any number of threads gives the same bits. All in float64.
#pragma once

#include <algorithm>
#include <vector>

#include "rows.h"
#include "spline_parts.h"

namespace geomix {

class BinnedRows {
  public:
    using Number = double;

    // codes : below the bins of their part
    template <class Code>
    BinnedRows(SplineParts parts, Strided<Code> codes, Index n_rows, const Index* y,
               const double* weight)
        : parts_(std::move(parts)), n_rows_(n_rows), wide_(sizeof(Code) == 2),
          codes_(static_cast<std::size_t>(padded(n_rows, DOUBLES) * parts_.n_parts()) *
                 sizeof(Code)),
          y_(static_cast<std::size_t>(padded(n_rows, DOUBLES))), weight_(y_.size())
    {
        std::copy(y, y + n_rows, y_.begin());
        std::copy(weight, weight + n_rows, weight_.begin());
        for (Index first = 0; first < n_rows; first += ROWS_PER_CODED_BLOCK) {
            const CodedRows rows = block(first);
            auto* to = static_cast<Code*>(const_cast<void*>(rows.codes));
            for (Index i = 0; i < rows.n_rows; ++i)
                for (Index j = 0; j < parts_.n_parts(); ++j)
                    to[j * rows.stride + i] =
                        codes.data[(first + i) * codes.row_step + j * codes.column_step];
        }
    }

    Index n_rows() const { return n_rows_; }
    Index n_columns() const { return parts_.n_steps(); }

    // Loss, gradients and usage of all rows; false if interrupted.
    bool terms(const Planes<double>& planes, OwnedSums& total, Interrupt& interrupt) const
    {
        const Problem<double> problem = planes.problem();
        Aligned<double> numbers;
        const SplineTables tables = expanded(problem, numbers);
        const Index n = n_chunks();
        const int n_threads = threads_for(work(problem), n);
        std::vector<Own> own;
        for (int t = 0; t < n_threads; ++t) own.emplace_back(problem, numbers.size());
        total.clear();
        std::atomic<Index> turn{0};
        in_parallel(n_threads, [&](int t) {
            for (Index k = t; k < n; k += n_threads) {
                own[t].clear();
                for (Index first = first_row(k); first < first_row(k + 1);
                     first += ROWS_PER_CODED_BLOCK) {
                    if (t == 0 ? interrupt.check() : interrupt.asked()) return;
                    kernels().coded.terms(problem, tables, block(first), labels(first),
                                          own[t].sums.sums, own[t].gradient.data(),
                                          own[t].scratch.data());
                }
                parts_.collect(own[t].gradient, problem.n_planes,
                               own[t].sums.sums.weights_gradient, own[t].room.data());
                while (turn.load(std::memory_order_acquire) != k && !interrupt.asked())
                    std::this_thread::yield();
                if (t == 0 ? interrupt.check() : interrupt.asked()) return;
                total.add(own[t].sums);
                turn.store(k + 1, std::memory_order_release);
            }
        });
        return !interrupt.asked();
    }

    // Weighted sum of -log p of the true class.
    double cross_entropy(const Planes<double>& planes) const
    {
        Vector losses(static_cast<std::size_t>(n_blocks()));
        each_block(planes, [&](const Problem<double>& problem, const SplineTables& tables,
                               Index first, double* scratch) {
            losses[first / ROWS_PER_CODED_BLOCK] = kernels().coded.cross_entropy(
                problem, tables, block(first), labels(first), scratch);
        });
        double loss = 0.0;
        for (double of_block : losses) loss += of_block;
        return loss;
    }

    // (n_rows, n_classes), row-major.
    void class_scores(const Planes<double>& planes, double* out) const
    {
        each_block(planes, [&](const Problem<double>& problem, const SplineTables& tables,
                               Index first, double* scratch) {
            kernels().coded.class_scores(problem, tables, block(first),
                                         out + first * problem.n_classes, scratch);
        });
    }

  private:
    static constexpr Index MOST_CHUNKS = 16, FEWEST_BLOCKS = 4;

    // What a thread works on.
    struct Own {
        OwnedSums sums;
        Aligned<double> gradient, scratch;
        std::vector<Lanes> room;

        Own(const Problem<double>& problem, std::size_t n_numbers)
            : sums(problem.n_planes, problem.n_inputs), gradient(n_numbers),
              scratch(static_cast<std::size_t>(coded_scratch(problem))),
              room(static_cast<std::size_t>(2 * problem.n_inputs))
        {
        }
        void clear()
        {
            sums.clear();
            std::fill(gradient.begin(), gradient.end(), 0.0);
        }
    };

    Index n_blocks() const { return padded(n_rows_, ROWS_PER_CODED_BLOCK) / ROWS_PER_CODED_BLOCK; }
    Index n_chunks() const
    {
        return std::min(MOST_CHUNKS, padded(n_blocks(), FEWEST_BLOCKS) / FEWEST_BLOCKS);
    }
    // Of chunk k: chunks differ by one block at most.
    Index first_row(Index k) const
    {
        return std::min(n_rows_, n_blocks() * k / n_chunks() * ROWS_PER_CODED_BLOCK);
    }

    CodedRows block(Index first) const
    {
        const Index n = std::min(ROWS_PER_CODED_BLOCK, n_rows_ - first);
        const Index code_bytes = wide_ ? 2 : 1;
        return {codes_.data() + first * parts_.n_parts() * code_bytes, padded(n, DOUBLES), n,
                wide_};
    }

    PanelRows<double> labels(Index first) const
    {
        const Index n = std::min(ROWS_PER_CODED_BLOCK, n_rows_ - first);
        return {nullptr, y_.data() + first, weight_.data() + first, padded(n, DOUBLES) / DOUBLES};
    }

    Index work(const Problem<double>& problem) const
    {
        return n_rows_ * parts_.n_parts() * problem.n_planes;
    }

    SplineTables expanded(const Problem<double>& problem, Aligned<double>& numbers) const
    {
        parts_.expand(problem.weights, problem.n_planes, numbers);
        return {numbers.data(), parts_.first_bin(), parts_.n_parts(), parts_.n_bins()};
    }

    // f(problem, tables, first row, scratch) over all blocks, threads sharing them.
    template <class F>
    void each_block(const Planes<double>& planes, F f) const
    {
        const Problem<double> problem = planes.problem();
        Aligned<double> numbers;
        const SplineTables tables = expanded(problem, numbers);
        const int n_threads = threads_for(work(problem), n_blocks());
        const Index room = padded(coded_scratch(problem), DOUBLES);
        Aligned<double> scratch(static_cast<std::size_t>(room * n_threads));
        in_parallel(n_threads, [&](int t) {
            for (Index k = t; k < n_blocks(); k += n_threads)
                f(problem, tables, k * ROWS_PER_CODED_BLOCK, scratch.data() + t * room);
        });
    }

    SplineParts parts_;
    Index n_rows_;
    bool wide_;
    Aligned<unsigned char> codes_;
    Aligned<double> y_, weight_;
};

}  // namespace geomix
