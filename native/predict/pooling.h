// One group of rows: plane scores -> class scores and responsibilities -> probabilities.
//
//   s_c = t + log( sum_m exp(k (z_cm - t)) ) / k,  t = max_m z_cm;   a_cm = exp(...) / sum
//   p_c = exp(s_c - max s) / sum
//
// The maximum is subtracted before the product with k, so nothing overflows. The score of a class
// with one plane is that plane's score, exactly.
#pragma once

#include "simd/elementary.h"
#include "simd/kernels.h"

namespace geomix {
namespace GEOMIX_LEVEL {

// z, a : [plane][lane];  s : [class][lane]. `a` is scratch unless `WithShares`.
template <class T, bool WithShares = true>
GEOMIX_INLINE void pool_group(const T* z, const int32_t* class_start, Index n_classes, T sharpness,
                              T* s, T* a)
{
    constexpr int n = lanes<T>;
    const Pack<T> k = splat<T>(sharpness), one = splat<T>(T(1));
    const Pack<T> inverse_k = splat<T>(T(1) / sharpness);
    for (Index c = 0; c < n_classes; ++c) {
        const Index first = class_start[c], end = class_start[c + 1];
        Pack<T> top = load(z + first * n);
        if (end - first == 1) {
            store(s + c * n, top);
            store(a + first * n, one);
            continue;
        }
        for (Index p = first + 1; p < end; ++p) top = larger(top, load(z + p * n));
        Pack<T> total = splat<T>(T(0));
        for (Index p = first; p < end; ++p) {
            const Pack<T> e = exponential<T>((load(z + p * n) - top) * k);
            total = total + e;
            store(a + p * n, e);
        }
        if (WithShares) {
            const Pack<T> inverse = one / total;
            for (Index p = first; p < end; ++p) store(a + p * n, load(a + p * n) * inverse);
        }
        store(s + c * n, fused(logarithm<T>(total), inverse_k, top));
    }
}

// s becomes exp(s - max s); returns the sum, and its log plus the maximum if wanted.
template <class T>
struct Normaliser {
    Pack<T> top, total;
};
template <class T>
GEOMIX_INLINE Normaliser<T> exponentiate_group(const T* s, Index n_classes, T* e)
{
    constexpr int n = lanes<T>;
    Pack<T> top = load(s);
    for (Index c = 1; c < n_classes; ++c) top = larger(top, load(s + c * n));
    Pack<T> total = splat<T>(T(0));
    for (Index c = 0; c < n_classes; ++c) {
        const Pack<T> value = exponential<T>(load(s + c * n) - top);
        total = total + value;
        store(e + c * n, value);
    }
    return {top, total};
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
