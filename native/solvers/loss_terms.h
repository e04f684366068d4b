// Loss, gradients and usage of a run of panels, as weighted sums over its rows.
//
//   loss = - sum_i w_i sum_c t_ic log p_ic = sum_i w_i (log sum_c exp s_ic - sum_c t_ic s_ic)
//   dloss/dz_icm = w_i (p_ic - t_ic) a_icm;   usage_cm = sum_i w_i a_icm
//
// scratch: Z [group][plane][lane] (becomes the slopes), a, bias and usage sums [plane][lane],
// s and e [class][lane].
#pragma once

#include "predict/pooling.h"
#include "rows/panel.h"
#include "simd/multiply.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <class T>
GEOMIX_INLINE double sum_as_double(const Pack<T>& value)
{
    T lane[lanes<T>];
    store<T>(lane, value);
    double wide[lanes<T>];
    for (int i = 0; i < lanes<T>; ++i) wide[i] = static_cast<double>(lane[i]);
    for (int half = lanes<T> / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) wide[i] += wide[i + half];
    return wide[0];
}

template <class T>
struct GroupScratch {
    T *a, *bias, *usage, *s, *e;
};

// One group: z becomes the slopes; returns the losses of the rows, one per lane.
template <class T>
GEOMIX_INLINE Pack<T> group_terms(const Problem<T>& problem, Pack<T> y, Pack<T> weight, T* z,
                                  const GroupScratch<T>& at)
{
    constexpr int n = lanes<T>;
    const Index n_classes = problem.n_classes;
    pool_group<T>(z, problem.class_start, n_classes, problem.sharpness, at.s, at.a);
    const Normaliser<T> sum = exponentiate_group<T>(at.s, n_classes, at.e);
    const Pack<T> zero = splat<T>(T(0)), inverse = splat<T>(T(1)) / sum.total;
    const Pack<T> spread = splat<T>(problem.label_smoothing / static_cast<T>(n_classes));
    const Pack<T> rest = splat<T>(T(1) - problem.label_smoothing);
    Pack<T> own = zero, all = zero;
    for (Index c = 0; c < n_classes; ++c) {
        const Pack<T> code = splat<T>(static_cast<T>(c));
        const Pack<T> shifted = load(at.s + c * n) - sum.top;
        own = choose_equal(y, code, shifted, own);
        all = all + shifted;
        const Pack<T> target = choose_equal(y, code, spread + rest, spread);
        const Pack<T> slope = (load(at.e + c * n) * inverse - target) * weight;
        for (Index p = problem.class_start[c]; p < problem.class_start[c + 1]; ++p) {
            const Pack<T> a = load(at.a + p * n), g = slope * a;
            store(z + p * n, g);
            store(at.bias + p * n, load(at.bias + p * n) + g);
            store(at.usage + p * n, load(at.usage + p * n) + weight * a);
        }
    }
    const Pack<T> expected = rest * own + spread * all;
    return (logarithm<T>(sum.total) - expected) * weight;
}

// Sums over rows whose plane scores are at the beginning of the scratch, where the slopes replace
// them: all but the gradient of the weights.
template <class T>
static void terms_of_scores(const Problem<T>& problem, const PanelRows<T>& rows, Sums& sums,
                            T* scratch)
{
    constexpr int n = lanes<T>;
    const Index n_planes = problem.n_planes;
    T* z = scratch;
    GroupScratch<T> at;
    at.a = z + rows.n_groups * n_planes * n;
    at.bias = at.a + n_planes * n;
    at.usage = at.bias + n_planes * n;
    at.s = at.usage + n_planes * n;
    at.e = at.s + problem.n_classes * n;
    for (Index i = 0; i < 2 * n_planes * n; ++i) at.bias[i] = T(0);
    double loss = 0.0, row_weight = 0.0;
    for (Index g = 0; g < rows.n_groups; ++g) {
        const Pack<T> weight = load(rows.weight + g * n);
        loss += sum_as_double<T>(
            group_terms<T>(problem, load(rows.y + g * n), weight, z + g * n_planes * n, at));
        row_weight += sum_as_double<T>(weight);
    }
    sums.loss += loss;
    sums.row_weight += row_weight;
    for (Index p = 0; p < n_planes; ++p) {
        sums.biases_gradient[p] += sum_as_double<T>(load(at.bias + p * n));
        sums.usage[p] += sum_as_double<T>(load(at.usage + p * n));
    }
}

template <class T>
static double cross_entropy_of_scores(const Problem<T>& problem, const PanelRows<T>& rows,
                                      T* scratch)
{
    constexpr int n = lanes<T>;
    T* a = scratch + rows.n_groups * problem.n_planes * n;
    T* s = a + 3 * problem.n_planes * n;
    T* e = s + problem.n_classes * n;
    double loss = 0.0;
    for (Index g = 0; g < rows.n_groups; ++g) {
        pool_group<T, false>(scratch + g * problem.n_planes * n, problem.class_start,
                             problem.n_classes, problem.sharpness, s, a);
        const Normaliser<T> sum = exponentiate_group<T>(s, problem.n_classes, e);
        const Pack<T> y = load(rows.y + g * n);
        Pack<T> own = splat<T>(T(0));
        for (Index c = 0; c < problem.n_classes; ++c)
            own = choose_equal(y, splat<T>(static_cast<T>(c)), load(s + c * n) - sum.top, own);
        loss += sum_as_double<T>((logarithm<T>(sum.total) - own) * load(rows.weight + g * n));
    }
    return loss;
}

template <class T>
static void class_scores_of_scores(const Problem<T>& problem, Index n_groups, Index n_rows,
                                   double* out, T* scratch)
{
    constexpr int n = lanes<T>;
    T* a = scratch + n_groups * problem.n_planes * n;
    T* s = a + 3 * problem.n_planes * n;
    for (Index g = 0; g < n_groups; ++g) {
        pool_group<T, false>(scratch + g * problem.n_planes * n, problem.class_start,
                             problem.n_classes, problem.sharpness, s, a);
        const Index left = n_rows - g * n < n ? n_rows - g * n : n;
        unpack(s, left, problem.n_classes, out + g * n * problem.n_classes);
    }
}

template <class T>
GEOMIX_INLINE void plane_scores(const Problem<T>& problem, const PanelRows<T>& rows, T* z)
{
    multiply<T>(problem.weights, problem.biases, problem.n_planes, problem.n_inputs, rows.X,
                rows.n_groups, z);
}

template <class T>
static void terms(const Problem<T>& problem, const PanelRows<T>& rows, Sums& sums, T* scratch)
{
    plane_scores(problem, rows, scratch);
    terms_of_scores(problem, rows, sums, scratch);
    add_gradient<T>(scratch, problem.n_planes, rows.X, problem.n_inputs, rows.n_groups,
                    sums.weights_gradient);
}

template <class T>
static double cross_entropy(const Problem<T>& problem, const PanelRows<T>& rows, T* scratch)
{
    plane_scores(problem, rows, scratch);
    return cross_entropy_of_scores(problem, rows, scratch);
}

template <class T>
static void class_scores(const Problem<T>& problem, const PanelRows<T>& rows, Index n_rows,
                         double* out, T* scratch)
{
    plane_scores(problem, rows, scratch);
    class_scores_of_scores(problem, rows.n_groups, n_rows, out, scratch);
}

// With p = softmax(b s): loss = sum w (log sum exp(b s) - b s_y), slope = sum w (E_p[s] - s_y),
// curvature = sum w Var_p[s].
static Likelihood likelihood(const PanelRows<double>& S, Index n_classes, double b)
{
    constexpr int n = DOUBLES;
    const Pack<double> factor = splat(b), zero = splat(0.0);
    Pack<double> loss = zero, slope = zero, curvature = zero;
    for (Index g = 0; g < S.n_groups; ++g) {
        const Pack<double> y = load(S.y + g * n), weight = load(S.weight + g * n);
        Pack<double> own = zero, total = zero, first = zero, second = zero;
        for (Index c = 0; c < n_classes; ++c) {
            const Pack<double> s = load(S.X + (g * n_classes + c) * n);
            const Pack<double> e = exponential<double>(factor * s);
            own = choose_equal(y, splat(static_cast<double>(c)), s, own);
            total = total + e;
            first = first + e * s;
            second = second + e * s * s;
        }
        const Pack<double> mean = first / total;
        loss = loss + weight * (logarithm<double>(total) - factor * own);
        slope = slope + weight * (mean - own);
        curvature = curvature + weight * (second / total - mean * mean);
    }
    return {sum_of_lanes<double>(loss), sum_of_lanes<double>(slope),
            sum_of_lanes<double>(curvature)};
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
