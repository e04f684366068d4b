// Flat arrays of doubles: the arithmetic of a solver apart from gradients.
#pragma once

#include "simd/kernels.h"
#include "simd/tile.h"

namespace geomix {
namespace GEOMIX_LEVEL {

static double dot(const double* a, const double* b, Index n)
{
    constexpr int w = DOUBLES;
    Pack<double> s0 = splat(0.0), s1 = s0, s2 = s0, s3 = s0;
    Index i = 0;
    for (; i + 4 * w <= n; i += 4 * w) {
        s0 = s0 + load(a + i) * load(b + i);
        s1 = s1 + load(a + i + w) * load(b + i + w);
        s2 = s2 + load(a + i + 2 * w) * load(b + i + 2 * w);
        s3 = s3 + load(a + i + 3 * w) * load(b + i + 3 * w);
    }
    for (; i + w <= n; i += w) s0 = s0 + load(a + i) * load(b + i);
    double rest = 0.0;
    for (; i < n; ++i) rest += a[i] * b[i];
    return sum_of_lanes<double>((s0 + s2) + (s1 + s3)) + rest;
}

static double narrow_dot(const float* v, const double* a, Index n)
{
    using T = Tile<DOUBLES>;
    constexpr int w = DOUBLES;
    Pack<double> s0 = splat(0.0), s1 = s0;
    Index i = 0;
    for (; i + 2 * w <= n; i += 2 * w) {
        s0 = s0 + T::load(v + i, 0) * load(a + i);
        s1 = s1 + T::load(v + i, 1) * load(a + i + w);
    }
    double rest = 0.0;
    for (; i < n; ++i) rest += static_cast<double>(v[i]) * a[i];
    return sum_of_lanes<double>(s0 + s1) + rest;
}

static void narrow_dots(const float* v, const double* a, const double* b, Index n, double* out)
{
    using T = Tile<DOUBLES>;
    constexpr int w = DOUBLES;
    Pack<double> a0 = splat(0.0), a1 = a0, b0 = a0, b1 = a0;
    Index i = 0;
    for (; i + 2 * w <= n; i += 2 * w) {
        const Pack<double> v0 = T::load(v + i, 0), v1 = T::load(v + i, 1);
        a0 = a0 + v0 * load(a + i);
        a1 = a1 + v1 * load(a + i + w);
        b0 = b0 + v0 * load(b + i);
        b1 = b1 + v1 * load(b + i + w);
    }
    double rest_a = 0.0, rest_b = 0.0;
    for (; i < n; ++i) {
        rest_a += static_cast<double>(v[i]) * a[i];
        rest_b += static_cast<double>(v[i]) * b[i];
    }
    out[0] = sum_of_lanes<double>(a0 + a1) + rest_a;
    out[1] = sum_of_lanes<double>(b0 + b1) + rest_b;
}

static void add_narrow(double* a, double t, const float* d, Index n)
{
    for (Index i = 0; i < n; ++i) a[i] += t * static_cast<double>(d[i]);
}

static void add_scaled(double* a, double t, const double* d, Index n)
{
    constexpr int w = DOUBLES;
    const Pack<double> factor = splat(t);
    Index i = 0;
    for (; i + w <= n; i += w) store(a + i, load(a + i) + factor * load(d + i));
    for (; i < n; ++i) a[i] += t * d[i];
}

// One step of Adam on flat arrays. The factors that make both moments unbiased are applied at the end:
//   x -= (rate / unbias_mean) mean / (sqrt(square) / sqrt(unbias_square) + epsilon)
static void adam_step(const AdamRates& rates, const double* __restrict gradient, Index n,
                      double* __restrict mean, double* __restrict square, double* __restrict x)
{
    const double keep_mean = rates.mean_decay, keep_square = rates.square_decay;
    const double step = rates.learning_rate / rates.unbias_mean;
    const double root = 1.0 / __builtin_sqrt(rates.unbias_square);
    for (Index i = 0; i < n; ++i) {
        const double g = gradient[i];
        mean[i] = keep_mean * mean[i] + (1.0 - keep_mean) * g;
        square[i] = keep_square * square[i] + (1.0 - keep_square) * (g * g);
        x[i] -= step * mean[i] / (__builtin_sqrt(square[i]) * root + rates.epsilon);
    }
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
