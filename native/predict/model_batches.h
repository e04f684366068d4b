// A model that owns its numbers, and predictions for whole tables in blocks and threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "predict/spline_model.h"
#include "rows/sparse_table.h"
#include "simd/aligned.h"
#include "simd/threads.h"
#include "simd/vectors.h"

namespace geomix {

// Matrices as given: rotation (n_rotated, n_kept) or empty, frequencies (n_rotated,
// n_frequencies) or empty, weights (n_planes, n_lifted).
struct ModelNumbers {
    std::vector<Index> kept;
    Vector mean, scale, rotation, frequencies, weights, biases;
    std::vector<std::int32_t> class_start;
    Index n_columns, n_rotated, n_frequencies;
    double sharpness, temperature;
    Index n_members = 1;
    bool single = false;  // Fourier features in float32
};

// float32 has room for sums of products of such numbers.
constexpr double LARGEST_SINGLE = 1e30;

// The numbers behind a `Columns`.
class OwnedColumns {
  public:
    OwnedColumns() = default;
    OwnedColumns(const Vector& matrix, Index n_outputs, Index n_inputs, Index segment = SEGMENT)
        : width_(padded(n_outputs, DOUBLES)), segment_(segment), halved_(true)
    {
        for (double value : matrix) halved_ &= (bits(value) & LOWER_HALF) == 0;
        const Index share = halved_ ? 2 : 1;
        std::vector<std::uint64_t> held(
            static_cast<std::size_t>(n_inputs * padded(width_, share * DOUBLES) / share));
        for (Index i = 0; i < n_outputs; ++i) {
            const Index first = i / COLUMN_STRIP * COLUMN_STRIP, at = i - first;
            const Index strip = padded(std::min(COLUMN_STRIP, width_ - first), share * DOUBLES);
            const Index pack = at / DOUBLES / share * DOUBLES + at % DOUBLES;
            const bool second = at / DOUBLES % share == 1;
            for (Index j = 0; j < n_inputs; ++j) {
                const std::uint64_t value = bits(matrix[i * n_inputs + j]);
                held[(first * n_inputs + j * strip) / share + pack] |= second ? value >> 32 : value;
            }
        }
        numbers_.resize(held.size());
        if (held.empty()) return;  // a spline lift has no such matrix
        std::memcpy(numbers_.data(), held.data(), held.size() * sizeof(double));
    }
    Columns view() const { return {numbers_.data(), width_, segment_, halved_}; }

  private:
    static constexpr std::uint64_t LOWER_HALF = 0xffffffff;

    static std::uint64_t bits(double value)
    {
        std::uint64_t out;
        std::memcpy(&out, &value, sizeof out);
        return out;
    }

    Index width_ = 0, segment_ = SEGMENT;
    bool halved_ = false;
    Aligned<double> numbers_;
};

// The same for floats.
class OwnedColumns32 {
  public:
    OwnedColumns32() = default;
    OwnedColumns32(const std::vector<float>& matrix, Index n_outputs, Index n_inputs,
                   Index segment = SEGMENT)
        : width_(padded(n_outputs, rows_in_group<float>)), segment_(segment)
    {
        numbers_.resize(static_cast<std::size_t>(n_inputs * width_));
        for (Index i = 0; i < n_outputs; ++i) {
            const Index first = i / COLUMN_STRIP * COLUMN_STRIP;
            const Index strip = std::min(COLUMN_STRIP, width_ - first);
            for (Index j = 0; j < n_inputs; ++j)
                numbers_[first * n_inputs + j * strip + i - first] = matrix[i * n_inputs + j];
        }
    }
    ColumnsOf<float> view() const { return {numbers_.data(), width_, segment_, false}; }

  private:
    Index width_ = 0, segment_ = SEGMENT;
    Aligned<float> numbers_;
};

class OwnedModel {
  public:
    // With a spline lift the weights are over its steps, and no columns are kept.
    explicit OwnedModel(ModelNumbers numbers, const SplineLift* lift = nullptr)
        : own_(std::move(numbers))
    {
        if (lift) {
            spline_ = std::make_unique<OwnedSpline>(*lift, own_.weights, own_.biases);
            own_.weights.clear();
        }
        if (own_.n_frequencies == 0) fold_rotation();
        const Index n_kept = size(own_.kept), n_rotated = own_.n_rotated;
        const Index n_frequencies = own_.n_frequencies, n_planes = size(own_.biases);
        const Index n_lifted = n_frequencies ? 2 * n_frequencies : n_rotated;
        for (double& scale : own_.scale) scale = 1.0 / scale;
        if (!own_.frequencies.empty())
            own_.frequencies = transposed(own_.frequencies, n_rotated, n_frequencies);
        if (!own_.rotation.empty())
            rotation_columns_ = OwnedColumns(own_.rotation, n_rotated, n_kept);
        if (n_frequencies)
            frequency_columns_ = OwnedColumns(own_.frequencies, n_frequencies, n_rotated);
        weight_columns_ = OwnedColumns(own_.weights, n_planes, n_lifted, short_segment(n_lifted));
        bool keeps_all = n_kept == own_.n_columns;
        for (Index j = 0; j < n_kept; ++j) keeps_all &= own_.kept[j] == j;
        view_ = {own_.kept.data(),
                 own_.mean.data(),
                 own_.scale.data(),
                 given(own_.rotation),
                 n_frequencies ? own_.frequencies.data() : nullptr,
                 own_.weights.data(),
                 own_.biases.data(),
                 rotation_columns_.view(),
                 frequency_columns_.view(),
                 weight_columns_.view(),
                 own_.class_start.data(),
                 own_.n_columns,
                 n_kept,
                 n_rotated,
                 n_frequencies,
                 n_lifted,
                 n_planes,
                 size(own_.class_start) - 1,
                 keeps_all,
                 own_.sharpness,
                 1.0 / own_.sharpness,
                 1.0 / own_.temperature,
                 n_frequencies ? std::sqrt(1.0 / double(n_frequencies)) : 1.0,
                 nullptr,
                 nullptr,
                 own_.class_start.data(),
                 own_.n_members,
                 size(own_.class_start) - 1,
                 lift ? spline_->view() : nullptr,
                 nullptr,
                 nullptr,
                 {},
                 {},
                 0.0};
        if (own_.n_members > 1) part_by_members();
        if (n_frequencies == 0 && !lift) prepare_for_sparse();
        if (n_frequencies && own_.single) prepare_single();
    }
    OwnedModel(const OwnedModel&) = delete;

    const Model& view() const { return view_; }

    // Multiply-adds of one row, which decide the number of threads.
    Index cost() const
    {
        const Model& m = view_;
        if (m.spline)
            return 32 * (m.spline->n_curves + m.spline->n_cells) +
                   m.n_planes * (2 * m.spline->n_curves + m.spline->n_cells + 16);
        return m.n_kept + (m.rotation ? m.n_rotated * m.n_kept : 0) +
               m.n_frequencies * (m.n_rotated + 16) + m.n_planes * (m.n_lifted + 16);
    }

    // Runs block(first_row, n_rows, scratch) over all rows; `room` numbers of scratch. Stops early
    // if interrupted.
    template <class Block>
    static void by_blocks(Index n_rows, Index multiply_adds, Index room, Interrupt& interrupt,
                          Block block)
    {
        const Index n_blocks = padded(n_rows, ROWS_PER_BLOCK) / ROWS_PER_BLOCK;
        const int n_threads = threads_for(multiply_adds, n_blocks);
        Aligned<double> scratch(static_cast<std::size_t>(room * n_threads));
        in_parallel(n_threads, [&](int t, int n) {
            for (Index b = n_blocks * t / n; b < n_blocks * (t + 1) / n; ++b) {
                if (t == 0 ? interrupt.check() : interrupt.asked()) return;
                const Index first = b * ROWS_PER_BLOCK;
                block(first, std::min(ROWS_PER_BLOCK, n_rows - first), scratch.data() + t * room);
            }
        });
    }

    // out : row-major arrays of all rows, null where not wanted.
    void answer(Strided<double> X, Index n_rows, const Answers& out, Interrupt& interrupt) const
    {
        const Model& m = view_;
        const auto block = [&](Index first, Index n, double* scratch) {
            const Strided<double> rows{X.data + first * X.row_step, X.row_step, X.column_step};
            kernels().answer(m, rows, n, from_row(out, first), scratch);
        };
        by_blocks(n_rows, n_rows * cost(), answer_scratch(m), interrupt, block);
    }

    // The same for sparse rows; only for models without frequencies.
    void answer(const SparseTable& X, const Answers& out, Interrupt& interrupt) const
    {
        const Model& m = view_;
        const Sparse& all = X.view();
        const auto block = [&](Index first, Index n, double* scratch) {
            const Sparse rows{all.values, all.columns, all.start + first, nullptr, n};
            kernels().sparse.answer(m, rows, from_row(out, first), scratch);
        };
        const Index multiply_adds = m.n_planes * (X.n_entries() + 16 * X.n_rows());
        by_blocks(X.n_rows(), multiply_adds, score_scratch(m), interrupt, block);
    }

  private:
    template <class V>
    static Index size(const V& v)
    {
        return static_cast<Index>(v.size());
    }
    static const double* given(const Vector& v) { return v.empty() ? nullptr : v.data(); }

    Answers from_row(const Answers& out, Index first) const
    {
        const auto at = [&](double* all, Index width) {
            return all ? all + first * width : nullptr;
        };
        return {at(out.plane_scores, view_.n_planes), at(out.responsibilities, view_.n_planes),
                at(out.class_scores, view_.n_classes), at(out.probabilities, view_.n_classes)};
    }

    // Each member has the same number of planes of a class.
    void part_by_members()
    {
        const Index n_classes = size(own_.class_start) - 1, n_members = own_.n_members;
        for (Index c = 0; c < n_classes; ++c)
            for (Index i = 0; i < n_members; ++i)
                pool_start_.push_back(static_cast<std::int32_t>(
                    own_.class_start[c] +
                    (own_.class_start[c + 1] - own_.class_start[c]) / n_members * i));
        pool_start_.push_back(own_.class_start.back());
        view_.pool_start = pool_start_.data();
        view_.n_pools = n_classes * n_members;
    }

    void prepare_for_sparse()
    {
        const Index n_kept = size(own_.kept), n_planes = size(own_.biases);
        place_.assign(static_cast<std::size_t>(own_.n_columns), -1);
        Vector shift(own_.kept.size());
        for (Index j = 0; j < n_kept; ++j) {
            place_[own_.kept[j]] = static_cast<std::int32_t>(j);
            shift[j] = own_.mean[j] * own_.scale[j];  // own_.scale holds 1 / scale here
        }
        sparse_constants_.resize(static_cast<std::size_t>(padded(n_planes, DOUBLES)));
        for (Index p = 0; p < n_planes; ++p)
            sparse_constants_[p] =
                own_.biases[p] - dot(own_.weights.data() + p * n_kept, shift.data(), n_kept);
        view_.place = place_.data();
        view_.sparse_constants = sparse_constants_.data();
    }

    static bool fits_single(const Vector& numbers)
    {
        return std::all_of(numbers.begin(), numbers.end(),
                           [](double v) { return std::fabs(v) <= LARGEST_SINGLE; });
    }

    // Angles of rows within the reach are at most SINGLE_ANGLE: |v . o| <= max |v| sum |o|.
    void prepare_single()
    {
        if (!fits_single(own_.frequencies) || !fits_single(own_.weights)) return;
        const Index n_rotated = view_.n_rotated, n_frequencies = view_.n_frequencies;
        double largest = 0.0;
        for (Index f = 0; f < n_frequencies; ++f) {
            double sum = 0.0;
            for (Index r = 0; r < n_rotated; ++r)
                sum += std::fabs(own_.frequencies[f * n_rotated + r]);
            largest = std::max(largest, sum);
        }
        view_.reach = SINGLE_ANGLE / std::max(largest, 1.0);
        frequencies32_.assign(own_.frequencies.begin(), own_.frequencies.end());
        weights32_.assign(own_.weights.begin(), own_.weights.end());
        const Index n_lifted = view_.n_lifted;
        frequency_columns32_ = OwnedColumns32(frequencies32_, n_frequencies, n_rotated);
        weight_columns32_ =
            OwnedColumns32(weights32_, view_.n_planes, n_lifted, short_segment(n_lifted));
        view_.frequencies32 = frequencies32_.data(), view_.weights32 = weights32_.data();
        view_.frequency_columns32 = frequency_columns32_.view();
        view_.weight_columns32 = weight_columns32_.view();
    }

    // Planes over rotated columns are planes over the columns: W (R u) = (W R) u.
    void fold_rotation()
    {
        if (own_.rotation.empty()) return;
        const Index n_kept = size(own_.kept), n_planes = size(own_.biases);
        Vector folded(static_cast<std::size_t>(n_planes * n_kept));
        for (Index p = 0; p < n_planes; ++p)
            for (Index r = 0; r < own_.n_rotated; ++r)
                for (Index j = 0; j < n_kept; ++j)
                    folded[p * n_kept + j] +=
                        own_.weights[p * own_.n_rotated + r] * own_.rotation[r * n_kept + j];
        own_.weights.swap(folded);
        own_.rotation.clear();
        own_.n_rotated = n_kept;
    }

    static Vector transposed(const Vector& matrix, Index rows, Index columns)
    {
        Vector out(matrix.size());
        for (Index i = 0; i < rows; ++i)
            for (Index j = 0; j < columns; ++j) out[j * rows + i] = matrix[i * columns + j];
        return out;
    }

    ModelNumbers own_;
    OwnedColumns rotation_columns_, frequency_columns_, weight_columns_;
    std::vector<float> frequencies32_, weights32_;
    OwnedColumns32 frequency_columns32_, weight_columns32_;
    std::unique_ptr<const OwnedSpline> spline_;
    std::vector<std::int32_t> place_, pool_start_;
    Vector sparse_constants_;
    Model view_;
};

}  // namespace geomix
