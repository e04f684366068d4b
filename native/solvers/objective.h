// The penalised objective on one flat vector (weights, then biases), as in core/objective.py:
//
//   value = loss / W + sum_p lambda_p ||w_p||^2 - shrink_to_mean sum_c Lambda_c ||mu_c||^2
//
// with W the sum of the row weights, mu_c the mean of class c's planes weighted by lambda, and
// Lambda_c the sum of those: the penalty of mu_c is reduced by the share shrink_to_mean.
#pragma once

#include "rows/rows.h"
#include "simd/team_vectors.h"

namespace geomix {

// Value from sums of rows; the gradient over the flat vector goes to `gradient`.
inline double penalised(const OwnedSums& terms, const double* vector, const double* coefficients,
                        Index n_planes, Index n_inputs, double* gradient, Team& team)
{
    const double share = 1.0 / terms.sums.row_weight;
    Vector penalties(static_cast<std::size_t>(n_planes));
    const int n_threads = team_threads_for(8 * n_planes * n_inputs, n_planes);
    team.each(n_threads, n_planes, [&](Index p, int) {
        const double* w = vector + p * n_inputs;
        const double* g = terms.sums.weights_gradient + p * n_inputs;
        const double twice = 2.0 * coefficients[p];
        penalties[p] = coefficients[p] * dot(w, w, n_inputs);
        for (Index j = 0; j < n_inputs; ++j)
            gradient[p * n_inputs + j] = g[j] * share + twice * w[j];
        gradient[n_planes * n_inputs + p] = terms.sums.biases_gradient[p] * share;
    });
    double value = terms.sums.loss * share;
    for (double penalty : penalties) value += penalty;
    return value;
}

// The term of one class in shrink_to_mean; its gradient is added to that of its planes.
// mean : room for n_inputs numbers
inline double shrinkage_of_class(double shrink_to_mean, const double* vector,
                                 const double* coefficients, Index first, Index end, Index n_inputs,
                                 double* gradient, double* mean)
{
    double total = 0.0;
    std::fill(mean, mean + n_inputs, 0.0);
    for (Index p = first; p < end; ++p) {
        total += coefficients[p];
        kernels().add_scaled(mean, coefficients[p], vector + p * n_inputs, n_inputs);
    }
    if (!(total > 0.0)) return 0.0;
    for (Index j = 0; j < n_inputs; ++j) mean[j] /= total;
    for (Index p = first; p < end; ++p)
        kernels().add_scaled(gradient + p * n_inputs, -2.0 * shrink_to_mean * coefficients[p], mean,
                             n_inputs);
    return shrink_to_mean * total * dot(mean, mean, n_inputs);
}

// The term of shrink_to_mean in the value; its gradient is added to `gradient`.
inline double shrinkage_term(double shrink_to_mean, const double* vector,
                             const double* coefficients,
                             const std::vector<std::int32_t>& class_start, Index n_inputs,
                             double* gradient, Team& team)
{
    if (shrink_to_mean == 0.0) return 0.0;
    const auto n_classes = static_cast<Index>(class_start.size()) - 1;
    const int n_threads = team_threads_for(8 * class_start.back() * n_inputs, n_classes);
    Vector terms(static_cast<std::size_t>(n_classes));
    Vector means(static_cast<std::size_t>(n_threads * n_inputs));
    team.each(n_threads, n_classes, [&](Index c, int t) {
        terms[c] =
            shrinkage_of_class(shrink_to_mean, vector, coefficients, class_start[c],
                               class_start[c + 1], n_inputs, gradient, means.data() + t * n_inputs);
    });
    double value = 0.0;
    for (double term : terms) value -= term;
    return value;
}

}  // namespace geomix
