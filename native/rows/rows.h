// Training rows in panels, and sums over them in chunks of a fixed size.
//
// A chunk's rows depend on the number of columns alone, and chunks are added up in order
// whichever thread computed them: any number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <vector>

#include "simd/aligned.h"
#include "simd/team.h"
#include "simd/vectors.h"

namespace geomix {

template <class T>
const TypedKernels<T>& typed_kernels();
template <>
inline const TypedKernels<double>& typed_kernels<double>()
{
    return kernels().f64;
}
template <>
inline const TypedKernels<float>& typed_kernels<float>()
{
    return kernels().f32;
}

// Half of a second-level cache for the panels of one chunk, between 64 and 1024 rows.
template <class T>
Index rows_per_chunk(Index n_columns)
{
    const Index fitting = (Index(1) << 19) / (std::max<Index>(n_columns, 1) * Index(sizeof(T)));
    return std::clamp<Index>(fitting / 64 * 64, 64, 1024);
}

// The numbers of a set of planes as type T, with the loss they are trained on.
template <class T>
struct Planes {
    std::vector<T> weights, biases;
    std::vector<std::int32_t> class_start;
    Index n_inputs;
    T sharpness, label_smoothing;

    void assign(const double* vector)
    {
        std::copy(vector, vector + weights.size(), weights.begin());
        std::copy(vector + weights.size(), vector + weights.size() + biases.size(), biases.begin());
    }
    Problem<T> problem() const
    {
        return {weights.data(),     biases.data(),
                class_start.data(), static_cast<Index>(biases.size()),
                n_inputs,           static_cast<Index>(class_start.size()) - 1,
                sharpness,          label_smoothing};
    }
};

// Owned sums: one flat array with the weights' gradient, the biases' gradient, and usage.
struct OwnedSums {
    Vector numbers;
    Sums sums;

    OwnedSums(Index n_planes, Index n_inputs)
        : numbers(static_cast<std::size_t>(n_planes * (n_inputs + 2)))
    {
        double* biases = numbers.data() + n_planes * n_inputs;
        sums = {numbers.data(), biases, biases + n_planes, 0.0, 0.0};
    }
    void clear()
    {
        std::fill(numbers.begin(), numbers.end(), 0.0);
        sums.loss = sums.row_weight = 0.0;
    }
    void add(const OwnedSums& other)
    {
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
        sums.loss += other.sums.loss;
        sums.row_weight += other.sums.row_weight;
    }
    // other : of the same planes without inputs
    void add_all_but_weights(const OwnedSums& other)
    {
        for (std::size_t i = 0; i < other.numbers.size(); ++i)
            sums.biases_gradient[i] += other.numbers[i];
        sums.loss += other.sums.loss;
        sums.row_weight += other.sums.row_weight;
    }
};

template <class T>
class Rows {
  public:
    using Number = T;

    Rows(Strided<T> X, const Index* y, const double* weight, Index n_rows, Index n_columns)
        : Rows(y, weight, n_rows, n_columns)
    {
        fill(X, 0, n_rows);
    }

    // Rows of zeros, for ``fill``.
    Rows(const Index* y, const double* weight, Index n_rows, Index n_columns)
        : n_rows_(n_rows), n_columns_(n_columns), n_groups_(padded(n_rows, group) / group),
          X_(n_groups_ * group * n_columns), y_(n_groups_ * group), weight_(n_groups_ * group)
    {
        for (Index i = 0; i < n_rows; ++i) {
            y_[i] = static_cast<T>(y[i]);
            weight_[i] = static_cast<T>(weight[i]);
        }
    }

    // Packs a block of rows from row ``first`` on, which begins a group.
    void fill(Strided<T> X, Index first, Index n_rows)
    {
        typed_kernels<T>().pack(X, nullptr, n_rows, n_columns_, X_.data() + first * n_columns_);
    }

    Index n_rows() const { return n_rows_; }
    Index n_columns() const { return n_columns_; }
    Index n_chunks() const { return padded(n_groups_, chunk_groups()) / chunk_groups(); }

    // What passes with the same number of planes use again.
    struct Workspace {
        Aligned<T> scratch;
        std::vector<OwnedSums> chunks;
    };

    // Loss, gradients and usage of all rows; false if interrupted. A chunk adds to each number
    // once, so one thread can add straight into the total with the same bits.
    bool terms(const Planes<T>& planes, OwnedSums& total, Interrupt& interrupt, Team& team,
               Workspace& at) const
    {
        const Problem<T> problem = planes.problem();
        const int n_threads =
            team_threads_for(n_rows_ * n_columns_ * problem.n_planes / 2, n_chunks());
        const Index room = terms_scratch(problem, chunk_groups());
        at.scratch.resize(static_cast<std::size_t>(room * n_threads));
        total.clear();
        if (n_threads > 1) return terms(problem, total, n_threads, interrupt, team, at);
        for (Index k = 0; k < n_chunks(); ++k) {
            if (interrupt.check()) return false;
            typed_kernels<T>().terms(problem, chunk(k), total.sums, at.scratch.data());
        }
        return true;
    }

    // Weighted sum of -log p of the true class.
    double cross_entropy(const Planes<T>& planes) const
    {
        const Problem<T> problem = planes.problem();
        Aligned<T> scratch(terms_scratch(problem, chunk_groups()));
        double loss = 0.0;
        for (Index k = 0; k < n_chunks(); ++k)
            loss += typed_kernels<T>().cross_entropy(problem, chunk(k), scratch.data());
        return loss;
    }

    // (n_rows, n_classes), row-major.
    void class_scores(const Planes<T>& planes, double* out) const
    {
        const Problem<T> problem = planes.problem();
        Aligned<T> scratch(terms_scratch(problem, chunk_groups()));
        for (Index k = 0; k < n_chunks(); ++k) {
            const Index first = k * chunk_groups() * group;
            typed_kernels<T>().class_scores(problem, chunk(k), n_rows_ - first,
                                            out + first * problem.n_classes, scratch.data());
        }
    }

    const Aligned<T>& codes() const { return y_; }
    const Aligned<T>& weights() const { return weight_; }

  private:
    static constexpr int group = rows_in_group<T>;

    Index chunk_groups() const { return rows_per_chunk<T>(n_columns_) / group; }

    PanelRows<T> chunk(Index k) const
    {
        const Index first = k * chunk_groups();
        return {X_.data() + first * group * n_columns_, y_.data() + first * group,
                weight_.data() + first * group, std::min(chunk_groups(), n_groups_ - first)};
    }

    // The same with threads: sums of a few chunks at a time, added up in order.
    bool terms(const Problem<T>& problem, OwnedSums& total, int n_threads, Interrupt& interrupt,
               Team& team, Workspace& at) const
    {
        const Index room = terms_scratch(problem, chunk_groups()), n_at_once = 4 * n_threads;
        while (static_cast<Index>(at.chunks.size()) < n_at_once)
            at.chunks.emplace_back(problem.n_planes, problem.n_inputs);
        for (Index first = 0; first < n_chunks(); first += n_at_once) {
            if (interrupt.check()) return false;
            const Index n = std::min(n_at_once, n_chunks() - first);
            team.each(n_threads, n, [&](Index i, int t) {
                at.chunks[i].clear();
                typed_kernels<T>().terms(problem, chunk(first + i), at.chunks[i].sums,
                                         at.scratch.data() + t * room);
            });
            for (Index i = 0; i < n; ++i) total.add(at.chunks[i]);
        }
        return true;
    }

    Index n_rows_, n_columns_, n_groups_;
    Aligned<T> X_, y_, weight_;
};

}  // namespace geomix
