// One temperature by likelihood: core/calibration.py's Newton iteration on t = -log T.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd/kernels.h"

namespace geomix {

struct Calibrated {
    double temperature, loss;
};

// S : (n_rows, n_classes) class scores;  weight : sums to one;  pull : 1 / (n_eff prior^2) or 0.
inline Calibrated calibrate(const double* S, const Index* y, const double* weight, Index n_rows,
                            Index n_classes, double pull, double low, double high)
{
    constexpr int most_steps = 50, n = DOUBLES;
    constexpr double slowest_turn = 0.75;  // as SLOWEST_TURN there
    const Index n_groups = padded(n_rows, n) / n;
    std::vector<double> shifted(static_cast<std::size_t>(n_rows * n_classes));
    for (Index i = 0; i < n_rows; ++i) {
        const double* row = S + i * n_classes;
        const double top = *std::max_element(row, row + n_classes);
        for (Index c = 0; c < n_classes; ++c) shifted[i * n_classes + c] = row[c] - top;
    }
    std::vector<double> panel(static_cast<std::size_t>(n_groups * n * n_classes));
    std::vector<double> codes(static_cast<std::size_t>(n_groups * n)), weights(codes.size());
    kernels().f64.pack({shifted.data(), n_classes, 1}, nullptr, n_rows, n_classes, panel.data());
    for (Index i = 0; i < n_rows; ++i) codes[i] = double(y[i]), weights[i] = weight[i];
    const PanelRows<double> rows{panel.data(), codes.data(), weights.data(), n_groups};
    struct At {
        double loss, slope, curvature;
    };
    const auto at = [&](double t) {
        const double b = std::exp(t);
        const Likelihood sums = kernels().likelihood(rows, n_classes, b);
        return At{sums.loss, b * sums.slope + pull * t, b * b * sums.curvature + pull};
    };
    double t = 0.0;
    At now = at(t);
    double best_t = 0.0, best_loss = now.loss, best = now.loss;
    double below = low, above = high;  // the minimum lies between them
    double last = 0.0;
    for (int i = 0; i < most_steps; ++i) {
        (now.slope < 0.0 ? below : above) = t;
        const double step = std::clamp(-now.slope / std::max(now.curvature, 1e-12), -1.0, 1.0);
        double moved = std::clamp(t + step, low, high);
        const bool turns_slowly =
            step * last < 0.0 && std::fabs(moved - t) > slowest_turn * std::fabs(last);
        if (turns_slowly || moved < below || moved > above) moved = (below + above) / 2.0;
        if (std::fabs(moved - t) < 1e-10) break;
        last = moved - t;
        t = moved;
        now = at(t);
        // An equal value counts as better: near the minimum the slope is more exact than the value.
        if (now.loss + 0.5 * pull * t * t <= best + 1e-12)
            best_t = t, best_loss = now.loss, best = now.loss + 0.5 * pull * t * t;
    }
    return {std::exp(-best_t), best_loss};
}

}  // namespace geomix
