// Adam's steps from the sums over batches, for rows of any kind.
#pragma once

#include "solvers/objective.h"

namespace geomix {

struct AdamSettings {
    Index batch_size;
    double learning_rate, l2, usage_beta, usage_delta;
    double usage_decay;                 // 0: usage of the batch alone
    double clip_norm, max_weight_norm;  // 0: no limit
    double shrink_to_mean;
    double mean_decay = 0.9, square_decay = 0.999, epsilon = 1e-8;
};

// What an epoch changes, all owned by the caller.
struct AdamState {
    double *vector, *mean, *square, *usage;
    Index n_steps;
};

class AdamSteps {
  public:
    AdamSteps(std::vector<std::int32_t> class_start, Index n_inputs, const AdamSettings& settings,
              AdamState& state)
        : class_start_(std::move(class_start)), n_planes_(class_start_.back()), n_inputs_(n_inputs),
          settings_(settings), state_(state),
          gradient_(static_cast<std::size_t>(n_planes_ * (n_inputs + 1))),
          coefficients_(static_cast<std::size_t>(n_planes_))
    {
    }

    const double* vector() const { return state_.vector; }

    Index n_batches(Index n_rows) const
    {
        const double n = std::nearbyint(double(n_rows) / double(settings_.batch_size));
        return std::max<Index>(static_cast<Index>(n), 1);
    }

    // Sums -> usage penalty -> clipped gradient -> step; returns the batch's objective.
    double take(const OwnedSums& total)
    {
        const double share = 1.0 / total.sums.row_weight;
        for (Index p = 0; p < n_planes_; ++p) {
            const double now = total.sums.usage[p] * share, keep = settings_.usage_decay;
            state_.usage[p] = keep * state_.usage[p] + (1.0 - keep) * now;
            coefficients_[p] = settings_.l2 * (1.0 + settings_.usage_beta /
                                                         (state_.usage[p] + settings_.usage_delta));
        }
        double value = penalised(total, state_.vector, coefficients_.data(), n_planes_, n_inputs_,
                                 gradient_.data(), alone_);
        value += shrinkage_term(settings_.shrink_to_mean, state_.vector, coefficients_.data(),
                                class_start_, n_inputs_, gradient_.data(), alone_);
        clip();
        step();
        cap_norms();
        return value;
    }

  private:
    void clip()
    {
        if (settings_.clip_norm <= 0.0) return;
        const double norm = std::sqrt(dot(gradient_, gradient_));
        if (!(norm > settings_.clip_norm)) return;
        const double factor = settings_.clip_norm / norm;
        for (double& g : gradient_) g *= factor;
    }

    void step()
    {
        ++state_.n_steps;
        const double a = settings_.mean_decay, b = settings_.square_decay;
        const double unbias_mean = 1.0 - std::pow(a, double(state_.n_steps));
        const double unbias_square = 1.0 - std::pow(b, double(state_.n_steps));
        kernels().adam_step(
            {settings_.learning_rate, a, b, unbias_mean, unbias_square, settings_.epsilon},
            gradient_.data(), static_cast<Index>(gradient_.size()), state_.mean, state_.square,
            state_.vector);
    }

    void cap_norms()
    {
        if (settings_.max_weight_norm <= 0.0) return;
        for (Index p = 0; p < n_planes_; ++p) {
            double* w = state_.vector + p * n_inputs_;
            const double norm = std::sqrt(dot(w, w, n_inputs_));
            if (norm > settings_.max_weight_norm)
                for (Index j = 0; j < n_inputs_; ++j) w[j] *= settings_.max_weight_norm / norm;
        }
    }

    const std::vector<std::int32_t> class_start_;
    const Index n_planes_, n_inputs_;
    const AdamSettings settings_;
    AdamState& state_;
    Vector gradient_, coefficients_;
    Team alone_{1};  // a batch is too short to share
};

}  // namespace geomix
