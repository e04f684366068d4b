// One epoch of Adam over rows in a given order (training/adam_epochs.py has the same loop in NumPy).
//
// A batch is cut into chunks of at most 128 rows, whose sums are added in order. Threads share the
// chunks of a batch, and any number of threads gives the same bits.
#pragma once

#include "solvers/adam_steps.h"

namespace geomix {

constexpr Index ROWS_PER_ADAM_CHUNK = 128;

template <class T>
class AdamEpoch {
  public:
    AdamEpoch(Planes<T> planes, Strided<T> X, const Index* y, const double* weight, Index n_rows,
              const AdamSettings& settings, AdamState& state)
        : planes_(std::move(planes)), n_planes_(static_cast<Index>(planes_.biases.size())),
          n_inputs_(planes_.n_inputs), X_(X), total_(n_planes_, n_inputs_),
          steps_(planes_.class_start, n_inputs_, settings, state)
    {
        labels_.reserve(static_cast<std::size_t>(n_rows));
        for (Index i = 0; i < n_rows; ++i)
            labels_.push_back({static_cast<T>(y[i]), static_cast<T>(weight[i])});
    }

    // Mean objective over the epoch; NaN passes through. Stops early if interrupted.
    double run(const Index* order, Index n_rows, Interrupt& interrupt)
    {
        const Index n_batches = steps_.n_batches(n_rows);
        const Index most = n_rows / n_batches + 1;
        order_end_ = order + n_rows;
        const Index chunks = padded(most, ROWS_PER_ADAM_CHUNK) / ROWS_PER_ADAM_CHUNK;
        // A batch is short, so threads pay off only if the work in it is large: times 4.
        const int n_threads = threads_for(4 * most * n_planes_ * n_inputs_, chunks);
        Team team(*this, n_threads, chunks);
        double loss = 0.0;
        if (n_threads == 1) {
            for (Index b = 0, at = 0; b < n_batches && !interrupt.check(); ++b) {
                const Index size = n_rows / n_batches + (b < n_rows % n_batches ? 1 : 0);
                team.open(order + at, size);
                loss += finish_batch(team) * double(size) / double(n_rows);
                at += size;
            }
            return loss;
        }
        in_parallel(n_threads, [&](int t, int n_started) {
            if (t > 0) return team.follow(t, n_started);
            team.lead(n_started);
            for (Index b = 0, at = 0; b < n_batches && !interrupt.check(); ++b) {
                const Index size = n_rows / n_batches + (b < n_rows % n_batches ? 1 : 0);
                team.open(order + at, size);
                loss += finish_batch(team) * double(size) / double(n_rows);
                at += size;
            }
            team.dismiss();
        });
        return loss;
    }

  private:
    struct Label {
        T code, weight;
    };

    // The threads of an epoch. They wait at atomic counters instead of locks, because a batch takes
    // tens of microseconds, less than it takes to wake a sleeping thread.
    class Team {
      public:
        // Allocates everything, so that no thread can run out of memory later.
        Team(AdamEpoch& epoch, int n_threads, Index most_chunks)
            : epoch_(epoch), n_threads_(n_threads)
        {
            constexpr Index n = ROWS_PER_ADAM_CHUNK;
            const Problem<T> problem = epoch.planes_.problem();
            for (int t = 0; t < n_threads; ++t) {
                buffers_.emplace_back();
                buffers_.back().X.resize(n * epoch.n_inputs_);
                buffers_.back().y.resize(n);
                buffers_.back().weight.resize(n);
                buffers_.back().scratch.resize(terms_scratch(problem, n / rows_in_group<T>));
            }
            while (n_threads > 1 && static_cast<Index>(sums_.size()) < most_chunks)
                sums_.emplace_back(epoch_.n_planes_, epoch_.n_inputs_);
        }

        // How many threads were started; called before the first batch is opened.
        void lead(int n_threads) { n_threads_ = n_threads; }

        void open(const Index* order, Index size)
        {
            order_ = order, size_ = size;
            n_chunks_ = padded(size, ROWS_PER_ADAM_CHUNK) / ROWS_PER_ADAM_CHUNK;
            n_done_.store(0, std::memory_order_relaxed);
            round_.fetch_add(1, std::memory_order_release);
        }

        // Sums of the open batch, computed by all threads; called by thread 0.
        void sum(OwnedSums& total)
        {
            if (sums_.empty()) {
                for (Index k = 0; k < n_chunks_; ++k) compute(k, total, buffers_[0]);
                return;
            }
            work(0, n_threads_);
            wait([&] { return n_done_.load(std::memory_order_acquire) == n_threads_; });
            for (Index k = 0; k < n_chunks_; ++k) total.add(sums_[k]);
        }

        void follow(int t, int n_threads)
        {
            Index seen = 0;
            for (;;) {
                wait([&] { return round_.load(std::memory_order_acquire) != seen; });
                ++seen;
                if (dismissed_.load(std::memory_order_relaxed)) return;
                work(t, n_threads);
            }
        }

        void dismiss()
        {
            dismissed_.store(true, std::memory_order_relaxed);
            round_.fetch_add(1, std::memory_order_release);
        }

      private:
        struct Buffers {
            Aligned<T> X, y, weight, scratch;
        };

        // The others need a microsecond, or have no core: spin, then yield.
        template <class Done>
        static void wait(Done done)
        {
            for (int looks = 1; !done(); ++looks) {
#if defined(__x86_64__)
                __builtin_ia32_pause();
#endif
                if (looks % 256 == 0) std::this_thread::yield();
            }
        }

        void work(int t, int n_threads)
        {
            for (Index k = t; k < n_chunks_; k += n_threads) {
                sums_[k].clear();
                compute(k, sums_[k], buffers_[t]);
            }
            n_done_.fetch_add(1, std::memory_order_acq_rel);
        }

        void compute(Index k, OwnedSums& into, Buffers& at)
        {
            constexpr Index n = rows_in_group<T>;
            const Index first = k * ROWS_PER_ADAM_CHUNK;
            const Index n_rows = std::min(ROWS_PER_ADAM_CHUNK, size_ - first);
            const Index* rows = order_ + first;
            typed_kernels<T>().pack(epoch_.X_, rows, n_rows, epoch_.n_inputs_, at.X.data());
            for (Index i = 0; i < padded(n_rows, n); ++i) {
                const auto known = i < n_rows ? epoch_.labels_[rows[i]] : Label{T(0), T(0)};
                at.y[i] = known.code;
                at.weight[i] = known.weight;
            }
            ask_for(rows + n_threads_ * ROWS_PER_ADAM_CHUNK);
            typed_kernels<T>().terms(
                epoch_.planes_.problem(),
                {at.X.data(), at.y.data(), at.weight.data(), padded(n_rows, n) / n}, into.sums,
                at.scratch.data());
        }

        // Rows in random order are not in the cache: prefetch those of the next chunk.
        void ask_for(const Index* rows) const
        {
            const Index left = std::min<Index>(epoch_.order_end_ - rows, ROWS_PER_ADAM_CHUNK);
            const Index n_bytes = epoch_.n_inputs_ * Index(sizeof(T));
            for (Index i = 0; i < left; ++i) {
                const char* row =
                    reinterpret_cast<const char*>(epoch_.X_.data + rows[i] * epoch_.X_.row_step);
                for (Index byte = 0; byte < n_bytes; byte += 64)
                    __builtin_prefetch(row + byte, 0, 2);
                __builtin_prefetch(&epoch_.labels_[rows[i]], 0, 2);
            }
        }

        AdamEpoch& epoch_;
        int n_threads_;
        std::vector<Buffers> buffers_;
        std::vector<OwnedSums> sums_;
        const Index* order_ = nullptr;
        Index size_ = 0, n_chunks_ = 0;
        std::atomic<Index> round_{0};
        std::atomic<int> n_done_{0};
        std::atomic<bool> dismissed_{false};
    };

    // Sums -> step; returns the batch's objective.
    double finish_batch(Team& team)
    {
        total_.clear();
        team.sum(total_);
        const double value = steps_.take(total_);
        planes_.assign(steps_.vector());  // before the next batch opens: the team reads them
        return value;
    }

    Planes<T> planes_;
    const Index n_planes_, n_inputs_;
    Strided<T> X_;
    std::vector<Label> labels_;  // code and weight together: one cache miss per row, not two
    const Index* order_end_ = nullptr;
    OwnedSums total_;
    AdamSteps steps_;
};

}  // namespace geomix
