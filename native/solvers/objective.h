// The penalised objective on one flat vector (weights, then biases), as in core/objective.py:
//
//   value = loss / W + sum_p lambda_p ||w_p||^2 - shrink_to_mean sum_c Lambda_c ||mu_c||^2
//
// with W the sum of the row weights, mu_c the mean of class c's planes weighted by lambda, and
// Lambda_c the sum of those: the penalty of mu_c is reduced by the share shrink_to_mean.
#pragma once

#include "rows/rows.h"
#include "simd/vectors.h"

namespace geomix {

// Value from sums of rows; the gradient over the flat vector goes to `gradient`.
inline double penalised(const OwnedSums& terms, const double* vector, const double* coefficients,
                        Index n_planes, Index n_inputs, double* gradient)
{
    const double share = 1.0 / terms.sums.row_weight;
    double value = terms.sums.loss * share;
    for (Index p = 0; p < n_planes; ++p) {
        const double* w = vector + p * n_inputs;
        const double* g = terms.sums.weights_gradient + p * n_inputs;
        const double twice = 2.0 * coefficients[p];
        value += coefficients[p] * dot(w, w, n_inputs);
        for (Index j = 0; j < n_inputs; ++j)
            gradient[p * n_inputs + j] = g[j] * share + twice * w[j];
    }
    for (Index p = 0; p < n_planes; ++p)
        gradient[n_planes * n_inputs + p] = terms.sums.biases_gradient[p] * share;
    return value;
}

// The term of shrink_to_mean in the value; its gradient is added to `gradient`.
inline double shrinkage_term(double shrink_to_mean, const double* vector,
                             const double* coefficients,
                             const std::vector<std::int32_t>& class_start, Index n_inputs,
                             double* gradient)
{
    if (shrink_to_mean == 0.0) return 0.0;
    double value = 0.0;
    Vector mean(static_cast<std::size_t>(n_inputs));
    for (std::size_t c = 0; c + 1 < class_start.size(); ++c) {
        double total = 0.0;
        std::fill(mean.begin(), mean.end(), 0.0);
        for (Index p = class_start[c]; p < class_start[c + 1]; ++p) {
            total += coefficients[p];
            kernels().add_scaled(mean.data(), coefficients[p], vector + p * n_inputs, n_inputs);
        }
        if (!(total > 0.0)) continue;
        for (double& m : mean) m /= total;
        value -= shrink_to_mean * total * dot(mean, mean);
        for (Index p = class_start[c]; p < class_start[c + 1]; ++p)
            kernels().add_scaled(gradient + p * n_inputs, -2.0 * shrink_to_mean * coefficients[p],
                                 mean.data(), n_inputs);
    }
    return value;
}

}  // namespace geomix
