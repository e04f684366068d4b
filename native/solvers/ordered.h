// Planes whose weights keep an order, as numbers with bounds: see core/ordered_weights.py.
//
//   above   v = t + e;   below  v = t - e;   lowest  v = (t - g) - e;   middle  v = t - g e
//
// The numbers are the flat planes with e in place of the ordered weights, then t and g, (K,) each.
// No sum is fused, so that t + e >= t to the last bit.
#pragma once

#include <cstdint>

#include "simd/vectors.h"

namespace geomix {

struct Ordered {
    enum Side : std::uint8_t { above, below, lowest, middle };
    Index n_planes, n_inputs;
    std::vector<Index> features;     // (K,)
    std::vector<std::uint8_t> side;  // (n_planes, K)

    Index n_features() const { return static_cast<Index>(features.size()); }
    Index n_flat() const { return n_planes * (n_inputs + 1); }
    Index n_numbers() const { return n_flat() + 2 * n_features(); }

    void planes_at(const Vector& numbers, Vector& flat) const
    {
        std::copy(numbers.begin(), numbers.begin() + n_flat(), flat.begin());
        for (Index p = 0; p < n_planes; ++p)
            for (Index k = 0; k < n_features(); ++k) {
                const double t = numbers[n_flat() + k], g = numbers[n_flat() + n_features() + k];
                double& v = flat[p * n_inputs + features[k]];
                const double e = v;
                switch (side[p * n_features() + k]) {
                case above: v = t + e; break;
                case below: v = t - e; break;
                case lowest: v = (t - g) - e; break;
                default: v = t - g * e;
                }
            }
    }

    // The gradient over the numbers, from that over the flat planes.
    void gradient(const Vector& numbers, const Vector& of_planes, Vector& out) const
    {
        std::copy(of_planes.begin(), of_planes.end(), out.begin());
        std::fill(out.begin() + n_flat(), out.end(), 0.0);
        for (Index p = 0; p < n_planes; ++p)
            for (Index k = 0; k < n_features(); ++k) {
                const Index at = p * n_inputs + features[k];
                const double v = of_planes[at], g = numbers[n_flat() + n_features() + k];
                double &by_t = out[n_flat() + k], &by_g = out[n_flat() + n_features() + k];
                by_t += v;
                switch (side[p * n_features() + k]) {
                case above: break;
                case below: out[at] = -v; break;
                case lowest:
                    out[at] = -v;
                    by_g -= v;
                    break;
                default:
                    by_g -= numbers[at] * v;
                    out[at] = -g * v;
                }
            }
    }
};

}  // namespace geomix
