// Training rows of a spline lift, as codes: a byte or two per cell.
//
// Rows lie in blocks, part by part. A chunk of a fixed number of blocks adds up tables in float32,
// which become gradients over steps in float64. Threads share blocks for the scores and slopes, and
// parts and planes for the tables. Each number is then added up by one thread in the order of the
// rows, so any number of threads gives the same bits.
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
        for (const PartOfSpline& part : views_)
            bins_before_.push_back(bins_before_.back() + part.n_bins + part.n_steps);
        for (Index i = 0; i < n_rows; ++i) {
            y_[i] = static_cast<float>(y[i]);
            weight_[i] = static_cast<float>(weight[i]);
        }
        for (Index k = 0; k < n_blocks(); ++k) {
            const CodedRows rows = block(k);
            auto* to = static_cast<Code*>(const_cast<void*>(rows.codes));
            for (Index i = 0; i < rows.n_rows; ++i)
                for (Index j = 0; j < parts_.n_parts(); ++j)
                    to[j * rows.stride + i] =
                        codes.data[(first_row(k) + i) * codes.row_step + j * codes.column_step];
        }
    }

    Index n_rows() const { return n_rows_; }
    Index n_columns() const { return parts_.n_steps(); }

    BinnedRows(const BinnedRows&) = delete;  // the views point into the parts
    BinnedRows& operator=(const BinnedRows&) = delete;

    // Slopes of a block, with its sums of loss, biases and usage.
    struct Slopes {
        Aligned<float> scratch;
        OwnedSums sums;

        explicit Slopes(const Problem<float>& problem)
            : scratch(static_cast<std::size_t>(coded_scratch(problem))), sums(problem.n_planes, 0)
        {
        }
    };

    // What a thread works in.
    struct Room {
        Aligned<double> steps;
        Aligned<float> tile;

        Room(const Problem<float>& problem, const PartsOfSpline& lift)
            : steps(static_cast<std::size_t>(expand_room(lift, problem.n_planes))),
              tile(static_cast<std::size_t>(ROWS_PER_CODED_BLOCK * width_of_tile(problem.n_planes)))
        {
        }
    };

    // What passes with the same number of planes use again.
    struct Workspace {
        Aligned<float> tables, gradient;  // over bins; the gradient is zero between passes
        std::vector<Slopes> blocks;
        std::vector<Room> rooms;
    };

    // Loss, gradients and usage of all rows; false if interrupted.
    bool terms(const Planes<float>& planes, OwnedSums& total, Interrupt& interrupt, Team& team,
               Workspace& at) const
    {
        const Problem<float> problem = planes.problem();
        const int n_threads = team_threads_for(work(problem), n_cells(problem));
        make_room(problem, n_threads, at);
        const SplineTables tables = expanded(problem, n_threads, team, at);
        total.clear();
        const Index n_at_once = static_cast<Index>(at.blocks.size());
        for (Index first = 0; first < n_blocks(); first += n_at_once) {
            if (interrupt.check()) {
                at.gradient.clear();
                return false;
            }
            const Index n = std::min(n_at_once, n_blocks() - first);
            team.each(n_threads, n, [&](Index i, int) {
                at.blocks[i].sums.clear();
                kernels().coded.slopes(problem, tables, block(first + i), labels(first + i),
                                       at.blocks[i].sums.sums, at.blocks[i].scratch.data());
            });
            each_share(problem, n_threads, n_rows_, team, [&](Cells cells, int t) {
                for (Index i = 0; i < n; ++i)
                    add_block(problem.n_planes, first + i, at.blocks[i], cells, at.gradient,
                              at.rooms[t], total);
            });
            for (Index i = 0; i < n; ++i) total.add_all_but_weights(at.blocks[i].sums);
        }
        return true;
    }

    // Weighted sum of -log p of the true class.
    double cross_entropy(const Planes<float>& planes) const
    {
        Vector losses(static_cast<std::size_t>(n_blocks()));
        each_block(planes, [&](const Problem<float>& problem, const SplineTables& tables, Index k,
                               float* scratch) {
            losses[k] =
                kernels().coded.cross_entropy(problem, tables, block(k), labels(k), scratch);
        });
        double loss = 0.0;
        for (double of_block : losses) loss += of_block;
        return loss;
    }

    // (n_rows, n_classes), row-major.
    void class_scores(const Planes<float>& planes, double* out) const
    {
        each_block(planes, [&](const Problem<float>& problem, const SplineTables& tables, Index k,
                               float* scratch) {
            kernels().coded.class_scores(problem, tables, block(k),
                                         out + first_row(k) * problem.n_classes, scratch);
        });
    }

  private:
    static constexpr Index BLOCKS_PER_CHUNK = 8, LANES = rows_in_group<float>;

    Index n_blocks() const { return padded(n_rows_, ROWS_PER_CODED_BLOCK) / ROWS_PER_CODED_BLOCK; }
    static Index first_row(Index block) { return block * ROWS_PER_CODED_BLOCK; }
    Index n_rows_of(Index block) const
    {
        return std::min(ROWS_PER_CODED_BLOCK, n_rows_ - first_row(block));
    }

    CodedRows block(Index k) const
    {
        const Index n = n_rows_of(k), code_bytes = wide_ ? 2 : 1;
        return {codes_.data() + first_row(k) * parts_.n_parts() * code_bytes, padded(n, LANES), n,
                wide_};
    }

    PanelRows<float> labels(Index k) const
    {
        return {nullptr, y_.data() + first_row(k), weight_.data() + first_row(k),
                padded(n_rows_of(k), LANES) / LANES};
    }

    // The exponential of pooling a plane takes as long as this many lookups.
    static constexpr Index exponential = 16;
    Index work(const Problem<float>& problem) const
    {
        return n_rows_ * (parts_.n_parts() + exponential) * problem.n_planes;
    }

    Index n_cells(const Problem<float>& problem) const
    {
        return parts_.n_parts() * n_tiles(problem.n_planes);
    }

    // f(cells, t) on all cells, a share for each thread that takes about as long as the others.
    // rows : that each part adds up, beside its bins
    template <class F>
    void each_share(const Problem<float>& problem, int n_threads, Index rows, Team& team,
                    F f) const
    {
        const Index n = n_cells(problem);
        if (n_threads == 1) return f({0, n}, 0);
        const Index time = n / parts_.n_parts() * time_before(parts_.n_parts(), rows);
        team.each(n_threads, n_threads, [&](Index share, int t) {
            f({cell_at(share * time / n_threads, rows),
               cell_at((share + 1) * time / n_threads, rows)}, t);
        });
    }

    // How long a tile takes before a part, in rows; a bin or a step takes as long as two rows.
    Index time_before(Index part, Index rows) const
    {
        return part * rows + 2 * bins_before_[part];
    }

    // The first cell that begins at a time or later.
    Index cell_at(Index time, Index rows) const
    {
        const Index n_parts = parts_.n_parts(), of_tile = time_before(n_parts, rows);
        Index part = 0;
        while (time_before(part, rows) < time % of_tile) ++part;
        return time / of_tile * n_parts + part;
    }

    // Blocks whose slopes are held at a time: one, or with threads what half of their second-level
    // caches can hold.
    Index n_blocks_at_once(const Problem<float>& problem, int n_threads) const
    {
        if (n_threads == 1) return 1;
        const Index fitting = (Index(1) << 17) * n_threads / coded_scratch(problem);
        return std::min(std::max<Index>(fitting, 2 * n_threads), n_blocks());
    }

    void make_room(const Problem<float>& problem, int n_threads, Workspace& at) const
    {
        const auto n_blocks = static_cast<std::size_t>(n_blocks_at_once(problem, n_threads));
        while (at.blocks.size() > n_blocks) at.blocks.pop_back();
        while (at.blocks.size() < n_blocks) at.blocks.emplace_back(problem);
        const auto n_numbers = static_cast<std::size_t>(table_numbers(lift_, problem.n_planes));
        if (at.gradient.size() != n_numbers) at.gradient.assign(n_numbers, 0.0f);
    }

    // Slopes of block k to some cells of the gradient over bins; after the last block of a chunk,
    // those cells to the gradient over steps.
    void add_block(Index n_planes, Index k, const Slopes& slopes, Cells cells,
                   Aligned<float>& over_bins, Room& room, OwnedSums& total) const
    {
        kernels().coded.scatter(lift_, n_planes, block(k), slopes.scratch.data(), cells,
                                over_bins.data(), room.tile.data());
        if ((k + 1) % BLOCKS_PER_CHUNK == 0 || k + 1 == n_blocks())
            kernels().coded.collect(lift_, over_bins.data(), n_planes, cells,
                                    total.sums.weights_gradient, room.steps.data());
    }

    SplineTables expanded(const Problem<float>& problem, int n_threads, Team& team,
                          Workspace& at) const
    {
        at.tables.resize(static_cast<std::size_t>(table_numbers(lift_, problem.n_planes)));
        while (at.rooms.size() < static_cast<std::size_t>(n_threads))
            at.rooms.emplace_back(problem, lift_);
        each_share(problem, n_threads, 0, team, [&](Cells cells, int t) {
            kernels().coded.expand(lift_, problem.weights, problem.n_planes, cells,
                                   at.tables.data(), at.rooms[t].steps.data());
        });
        return {at.tables.data(), lift_};
    }

    // f(problem, tables, block, scratch) over all blocks, threads sharing them.
    template <class F>
    void each_block(const Planes<float>& planes, F f) const
    {
        const Problem<float> problem = planes.problem();
        const int n_threads = threads_for(work(problem), n_blocks());
        Team team;
        Workspace at;
        const SplineTables tables = expanded(problem, n_threads, team, at);
        const Index room = padded(coded_scratch(problem), LANES);
        Aligned<float> scratch(static_cast<std::size_t>(room * n_threads));
        team.each(n_threads, n_blocks(),
                  [&](Index k, int t) { f(problem, tables, k, scratch.data() + t * room); });
    }

    SplineParts parts_;
    std::vector<PartOfSpline> views_;
    PartsOfSpline lift_;
    std::vector<Index> bins_before_{0};  // (n_parts + 1,) bins and steps of the parts before
    Index n_rows_;
    bool wide_;
    Aligned<unsigned char> codes_;
    Aligned<float> y_, weight_;
};

}  // namespace geomix
