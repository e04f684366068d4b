// A model that owns its numbers, and answers over whole tables in blocks and threads.
#pragma once

#include <algorithm>
#include <vector>

#include "threads.h"
#include "vectors.h"

namespace geomix {

// Matrices as given: rotation (n_rotated, n_kept) or empty, frequencies (n_rotated,
// n_frequencies) or empty, weights (n_planes, n_lifted).
struct ModelNumbers {
    std::vector<Index> kept;
    Vector mean, scale, rotation, frequencies, weights, biases;
    std::vector<std::int32_t> class_start;
    Index n_columns, n_rotated, n_frequencies;
    double sharpness, temperature;
};

class OwnedModel {
  public:
    explicit OwnedModel(ModelNumbers numbers) : own_(std::move(numbers))
    {
        const Index n_kept = size(own_.kept), n_rotated = own_.n_rotated;
        const Index n_frequencies = own_.n_frequencies, n_planes = size(own_.biases);
        const Index n_lifted = n_frequencies ? 2 * n_frequencies : n_rotated;
        for (double& scale : own_.scale) scale = 1.0 / scale;
        if (!own_.frequencies.empty())
            own_.frequencies = transposed(own_.frequencies, n_rotated, n_frequencies,
                                          n_rotated);
        rotation_columns_ = transposed(own_.rotation, n_rotated, n_kept, whole(n_rotated));
        frequency_columns_ =
            transposed(own_.frequencies, n_frequencies, n_rotated, whole(n_frequencies));
        weight_columns_ = transposed(own_.weights, n_planes, n_lifted, whole(n_planes));
        bool keeps_all = n_kept == own_.n_columns;
        for (Index j = 0; j < n_kept; ++j) keeps_all &= own_.kept[j] == j;
        view_ = {own_.kept.data(), own_.mean.data(), own_.scale.data(), given(own_.rotation),
                 n_frequencies ? own_.frequencies.data() : nullptr, own_.weights.data(),
                 own_.biases.data(), rotation_columns_.data(), frequency_columns_.data(),
                 weight_columns_.data(), own_.class_start.data(), own_.n_columns, n_kept,
                 n_rotated, n_frequencies, n_lifted, n_planes, size(own_.class_start) - 1,
                 keeps_all, own_.sharpness, own_.temperature,
                 n_frequencies ? std::sqrt(1.0 / double(n_frequencies)) : 0.0};
    }
    OwnedModel(const OwnedModel&) = delete;

    const Model& view() const { return view_; }

    // Multiply-adds of one row, to decide about threads.
    Index cost() const
    {
        const Model& m = view_;
        return m.n_kept + (m.rotation ? m.n_rotated * m.n_kept : 0) +
               m.n_frequencies * (m.n_rotated + 16) + m.n_planes * (m.n_lifted + 16);
    }

    // Runs block(first_row, n_rows, scratch) over all rows.
    template <class Block>
    void by_blocks(Index n_rows, Block block) const
    {
        const Index n_blocks = padded(n_rows, ROWS_PER_BLOCK) / ROWS_PER_BLOCK;
        const int n_threads = threads_for(n_rows * cost(), n_blocks);
        const Index room = answer_scratch(view_);
        std::vector<double> scratch(static_cast<std::size_t>(room * n_threads));
        in_parallel(n_threads, [&](int t) {
            for (Index b = n_blocks * t / n_threads; b < n_blocks * (t + 1) / n_threads; ++b) {
                const Index first = b * ROWS_PER_BLOCK;
                block(first, std::min(ROWS_PER_BLOCK, n_rows - first), scratch.data() + t * room);
            }
        });
    }

    // out : row-major arrays of all rows, null where not wanted.
    void answer(Strided<double> X, Index n_rows, const Answers& out) const
    {
        const Model& m = view_;
        by_blocks(n_rows, [&](Index first, Index n, double* scratch) {
            const auto at = [&](double* all, Index width) {
                return all ? all + first * width : nullptr;
            };
            kernels().answer(m, {X.data + first * X.row_step, X.row_step, X.column_step}, n,
                             {at(out.plane_scores, m.n_planes), at(out.responsibilities, m.n_planes),
                              at(out.class_scores, m.n_classes), at(out.probabilities, m.n_classes)},
                             scratch);
        });
    }

  private:
    template <class V>
    static Index size(const V& v) { return static_cast<Index>(v.size()); }
    static Index whole(Index n) { return padded(n, DOUBLES); }
    static const double* given(const Vector& v) { return v.empty() ? nullptr : v.data(); }

    // (rows, columns) -> (columns, width) with zeros in the padding
    static Vector transposed(const Vector& matrix, Index rows, Index columns, Index width)
    {
        if (matrix.empty()) return {};
        Vector out(static_cast<std::size_t>(columns * width));
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < columns; ++j) out[j * width + i] = matrix[i * columns + j];
        return out;
    }

    ModelNumbers own_;
    Vector rotation_columns_, frequency_columns_, weight_columns_;
    Model view_;
};

}  // namespace geomix
