// Flat arrays of doubles: products in eight partial sums, added up in a fixed tree.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace geomix {

using Vector = std::vector<double>;

inline double dot(const double* a, const double* b, std::size_t n)
{
    double sum[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) sum[k] += a[i + k] * b[i + k];
    for (int k = 0; i < n; ++i, ++k) sum[k] += a[i] * b[i];
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

inline double dot(const Vector& a, const Vector& b) { return dot(a.data(), b.data(), a.size()); }

inline double largest_entry(const Vector& a)
{
    double largest = 0.0;
    for (double value : a) largest = std::fabs(value) > largest ? std::fabs(value) : largest;
    return largest;
}

// a + t d into out
inline void step_along(const Vector& a, double t, const Vector& d, Vector& out)
{
    for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] + t * d[i];
}

}  // namespace geomix
