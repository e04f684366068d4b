// Training rows of a spline lift, as codes: a byte or two per cell.
//
// Rows lie in blocks, part by part. A chunk of a fixed number of blocks adds up tables of its own
// in float32, which become gradients over steps in float64; those are added in the order of the
// chunks, so any number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <vector>

#include "predict/spline_parts.h"
#include "rows/rows.h"

namespace geomix {

class BinnedRows {
  public:
    using Number = float;

    // codes : below the bins of their part
    template <class Code>
    BinnedRows(SplineParts parts, Strided<Code> codes, Index n_rows, const Index* y,
               const double* weight)
        : parts_(std::move(parts)), views_(parts_.views()), lift_(parts_.view(views_)),
          n_rows_(n_rows), wide_(sizeof(Code) == 2),
          codes_(static_cast<std::size_t>(padded(n_rows, LANES) * parts_.n_parts()) * sizeof(Code)),
          y_(static_cast<std::size_t>(padded(n_rows, LANES))), weight_(y_.size())
    {
        for (Index i = 0; i < n_rows; ++i) {
            y_[i] = static_cast<float>(y[i]);
            weight_[i] = static_cast<float>(weight[i]);
        }
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

    BinnedRows(const BinnedRows&) = delete;  // the views point into the parts
    BinnedRows& operator=(const BinnedRows&) = delete;

    // Buffers of one thread.
    struct Own {
        OwnedSums sums;
        Aligned<float> gradient, scratch;
        Aligned<double> room;

        Own(const Problem<float>& problem, const PartsOfSpline& lift)
            : sums(problem.n_planes, problem.n_inputs),
              gradient(static_cast<std::size_t>(table_numbers(lift, problem.n_planes))),
              scratch(static_cast<std::size_t>(coded_scratch(problem))),
              room(static_cast<std::size_t>(expand_room(lift)))
        {
        }
        void clear()
        {
            sums.clear();
            std::fill(gradient.begin(), gradient.end(), 0.0f);
        }
    };

    // What passes with the same number of planes use again.
    struct Workspace {
        Aligned<float> tables;
        std::vector<Own> own;
    };

    // Loss, gradients and usage of all rows; false if interrupted.
    bool terms(const Planes<float>& planes, OwnedSums& total, Interrupt& interrupt,
               Workspace& workspace) const
    {
        const Problem<float> problem = planes.problem();
        const Index n = n_chunks();
        const int n_threads = threads_for(work(problem), n);
        std::vector<Own>& own = workspace.own;
        while (own.size() < static_cast<std::size_t>(n_threads)) own.emplace_back(problem, lift_);
        const SplineTables tables = expanded(problem, workspace.tables, own[0].room);
        total.clear();
        std::atomic<Index> turn{0};
        in_parallel(n_threads, [&](int t, int n_started) {
            for (Index k = t; k < n; k += n_started) {
                own[t].clear();
                for (Index first = first_row(k); first < first_row(k + 1);
                     first += ROWS_PER_CODED_BLOCK) {
                    if (t == 0 ? interrupt.check() : interrupt.asked()) return;
                    kernels().coded.terms(problem, tables, block(first), labels(first),
                                          own[t].sums.sums, own[t].gradient.data(),
                                          own[t].scratch.data());
                }
                kernels().coded.collect(lift_, own[t].gradient.data(), problem.n_planes,
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
    double cross_entropy(const Planes<float>& planes) const
    {
        Vector losses(static_cast<std::size_t>(n_blocks()));
        each_block(planes, [&](const Problem<float>& problem, const SplineTables& tables,
                               Index first, float* scratch) {
            losses[first / ROWS_PER_CODED_BLOCK] = kernels().coded.cross_entropy(
                problem, tables, block(first), labels(first), scratch);
        });
        double loss = 0.0;
        for (double of_block : losses) loss += of_block;
        return loss;
    }

    // (n_rows, n_classes), row-major.
    void class_scores(const Planes<float>& planes, double* out) const
    {
        each_block(planes, [&](const Problem<float>& problem, const SplineTables& tables,
                               Index first, float* scratch) {
            kernels().coded.class_scores(problem, tables, block(first),
                                         out + first * problem.n_classes, scratch);
        });
    }

  private:
    static constexpr Index BLOCKS_PER_CHUNK = 8, LANES = rows_in_group<float>;

    Index n_blocks() const { return padded(n_rows_, ROWS_PER_CODED_BLOCK) / ROWS_PER_CODED_BLOCK; }
    Index n_chunks() const { return padded(n_blocks(), BLOCKS_PER_CHUNK) / BLOCKS_PER_CHUNK; }
    Index first_row(Index chunk) const
    {
        return std::min(n_rows_, chunk * BLOCKS_PER_CHUNK * ROWS_PER_CODED_BLOCK);
    }

    CodedRows block(Index first) const
    {
        const Index n = std::min(ROWS_PER_CODED_BLOCK, n_rows_ - first);
        const Index code_bytes = wide_ ? 2 : 1;
        return {codes_.data() + first * parts_.n_parts() * code_bytes, padded(n, LANES), n, wide_};
    }

    PanelRows<float> labels(Index first) const
    {
        const Index n = std::min(ROWS_PER_CODED_BLOCK, n_rows_ - first);
        return {nullptr, y_.data() + first, weight_.data() + first, padded(n, LANES) / LANES};
    }

    Index work(const Problem<float>& problem) const
    {
        return n_rows_ * parts_.n_parts() * problem.n_planes;
    }

    SplineTables expanded(const Problem<float>& problem, Aligned<float>& numbers,
                          Aligned<double>& room) const
    {
        numbers.resize(static_cast<std::size_t>(table_numbers(lift_, problem.n_planes)));
        kernels().coded.expand(lift_, problem.weights, problem.n_planes, numbers.data(),
                               room.data());
        return {numbers.data(), lift_};
    }

    // f(problem, tables, first row, scratch) over all blocks, threads sharing them.
    template <class F>
    void each_block(const Planes<float>& planes, F f) const
    {
        const Problem<float> problem = planes.problem();
        Aligned<float> numbers;
        Aligned<double> steps(static_cast<std::size_t>(expand_room(lift_)));
        const SplineTables tables = expanded(problem, numbers, steps);
        const int n_threads = threads_for(work(problem), n_blocks());
        const Index room = padded(coded_scratch(problem), LANES);
        Aligned<float> scratch(static_cast<std::size_t>(room * n_threads));
        in_parallel(n_threads, [&](int t, int n_started) {
            for (Index k = t; k < n_blocks(); k += n_started)
                f(problem, tables, k * ROWS_PER_CODED_BLOCK, scratch.data() + t * room);
        });
    }

    SplineParts parts_;
    std::vector<PartOfSpline> views_;
    PartsOfSpline lift_;
    Index n_rows_;
    bool wide_;
    Aligned<unsigned char> codes_;
    Aligned<float> y_, weight_;
};

}  // namespace geomix
