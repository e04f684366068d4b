// The penalised objective on one flat vector (weights, then biases), as in objective.py:
//
//   value = loss / W + sum_p lambda_p ||w_p||^2,   W = sum of the row weights
#pragma once

#include "rows.h"
#include "vectors.h"

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

}  // namespace geomix
