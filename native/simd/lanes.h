// Across the lanes of packs: transposing four by four, and sums over lanes four at a time.
#pragma once

#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

typedef double Four64 __attribute__((vector_size(32)));
typedef float Four32 __attribute__((vector_size(16)));
template <class T>
struct Four;
template <>
struct Four<double> {
    using type = Four64;
};
template <>
struct Four<float> {
    using type = Four32;
};

// Rows become columns.
template <class V>
GEOMIX_INLINE void transpose(V& a, V& b, V& c, V& d)
{
    const V ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    const V ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const V cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);
    const V cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    a = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);
    c = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);
    d = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);
}

// The first steps of the tree in `sum_of_lanes`: lane i takes lane i + half, down to four lanes.
#if GEOMIX_BYTES == 64
GEOMIX_INLINE Four64 folded(const Pack<double>& v)
{
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
GEOMIX_INLINE Four32 folded(const Pack<float>& v)
{
    const auto half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
}
#elif GEOMIX_BYTES == 32
GEOMIX_INLINE Four64 folded(const Pack<double>& v) { return v.low + v.high; }
GEOMIX_INLINE Four32 folded(const Pack<float>& v)
{
    const auto half = v.low + v.high;
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
}
#else
GEOMIX_INLINE Four64 folded(const Pack<double>& v) { return reread<Four64>(v.low + v.high); }
GEOMIX_INLINE Four32 folded(const Pack<float>& v)
{
    const auto half = v.low + v.high;
    return half.low + half.high;
}
#endif

// Sums of the lanes of four packs, each in the tree of `sum_of_lanes`.
template <class T>
GEOMIX_INLINE typename Four<T>::type sums_of_lanes(const Pack<T>& a, const Pack<T>& b,
                                                   const Pack<T>& c, const Pack<T>& d)
{
    typename Four<T>::type w = folded(a), x = folded(b), y = folded(c), z = folded(d);
    transpose(w, x, y, z);
    return (w + y) + (x + z);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
