// Flat arrays of doubles on top of the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "simd/aligned.h"

namespace geomix {

using Vector = Aligned<double>;

inline double dot(const double* a, const double* b, Index n) { return kernels().dot(a, b, n); }

inline double dot(const Vector& a, const Vector& b)
{
    return dot(a.data(), b.data(), static_cast<Index>(a.size()));
}

// NaN counts as nothing. Eight numbers at a time: each comparison waits for the one before.
inline double largest_entry(const double* a, Index size)
{
    constexpr Index n = 8;
    double largest[n] = {};
    const auto look = [&](double value, double& at) {
        at = std::fabs(value) > at ? std::fabs(value) : at;
    };
    Index i = 0;
    for (; i + n <= size; i += n)
        for (Index k = 0; k < n; ++k) look(a[i + k], largest[k]);
    for (; i < size; ++i) look(a[i], largest[0]);
    for (Index k = 1; k < n; ++k) look(largest[k], largest[0]);
    return largest[0];
}

}  // namespace geomix
