// Curves without small changes of direction: core/calm.py, number for number.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "simd/vectors.h"

namespace geomix {

// Isotonic regression by pooling adjacent violators: the monotone sequence that is nearest to
// ``values`` in weighted squares.
inline void isotonic(const double* values, const double* mass, Index n, bool rising, double* out)
{
    struct Block {
        double sum, mass, level;
        Index end;
    };
    std::vector<Block> blocks;
    const double sign = rising ? 1.0 : -1.0;
    for (Index i = 0; i < n; ++i) {
        const double value = sign * values[i];
        Block block{mass[i] * value, mass[i], value, i + 1};
        while (!blocks.empty() && blocks.back().level >= block.level) {
            block.sum = blocks.back().sum + block.sum;
            block.mass = blocks.back().mass + block.mass;
            block.level = block.sum / block.mass;
            blocks.pop_back();
        }
        blocks.push_back(block);
    }
    Index i = 0;
    for (const Block& block : blocks)
        for (; i < block.end; ++i) out[i] = sign * block.level;
}

// Knots where a curve turns and then retreats by more than the tolerance.
inline std::vector<Index> turning_points(const double* values, Index n, double tolerance)
{
    std::vector<Index> turns;
    Index high = 0, low = 0;
    int direction = 0;
    for (Index k = 0; k < n; ++k) {
        if (values[k] > values[high]) high = k;
        if (values[k] < values[low]) low = k;
        if (direction >= 0 && values[high] - values[k] > tolerance) {
            if (direction > 0 || high > 0) turns.push_back(high);
            direction = -1, high = low = k;
        } else if (direction <= 0 && values[k] - values[low] > tolerance) {
            if (direction < 0 || low > 0) turns.push_back(low);
            direction = 1, high = low = k;
        }
    }
    return turns;
}

// One curve of n >= 1 knots, in place; mass > 0.
inline void calm(double* values, const double* mass, Index n, double tolerance)
{
    const auto [least, most] = std::minmax_element(values, values + n);
    if (*most - *least <= tolerance) {
        double sum = 0.0, total = 0.0;
        for (Index k = 0; k < n; ++k) sum += mass[k] * values[k], total += mass[k];
        std::fill(values, values + n, sum / total);
        return;
    }
    std::vector<Index> ends = turning_points(values, n, tolerance);
    ends.push_back(n - 1);
    std::vector<double> calmed(static_cast<std::size_t>(n));
    Index begin = 0, from = 0;
    for (const Index end : ends) {
        const bool rising = values[end] >= values[from];
        isotonic(values + begin, mass + begin, end + 1 - begin, rising, calmed.data() + begin);
        begin = end + 1, from = end;
    }
    std::copy(calmed.begin(), calmed.end(), values);
}

// The steps between the knots of one curve, in place.
inline void calm_curve(double* steps, const double* mass, Index n_knots, double tolerance,
                       Vector& values)
{
    values.resize(static_cast<std::size_t>(n_knots));
    values[0] = 0.0;
    for (Index k = 1; k < n_knots; ++k) values[k] = values[k - 1] + steps[k - 1];
    calm(values.data(), mass, n_knots, tolerance);
    for (Index k = 1; k < n_knots; ++k) steps[k - 1] = values[k] - values[k - 1];
}

}  // namespace geomix
