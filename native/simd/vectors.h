// Flat arrays of doubles on top of the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "simd/kernels.h"

namespace geomix {

using Vector = std::vector<double>;

inline double dot(const double* a, const double* b, Index n) { return kernels().dot(a, b, n); }

inline double dot(const Vector& a, const Vector& b)
{
    return dot(a.data(), b.data(), static_cast<Index>(a.size()));
}

// a += t d
inline void add_scaled(Vector& a, double t, const Vector& d)
{
    kernels().add_scaled(a.data(), t, d.data(), static_cast<Index>(a.size()));
}

inline double largest_entry(const Vector& a)
{
    double largest = 0.0;
    for (double value : a) largest = std::fabs(value) > largest ? std::fabs(value) : largest;
    return largest;
}

}  // namespace geomix
