// Outputs of one row in packs, a few packs at a time in registers.
#pragma once

#include "simd/kernels.h"
#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <int N>
struct Packs {
    static constexpr int n = N;
};

// f(first output, Packs<N>) over a strip of outputs, at most four packs at a time.
template <class F>
GEOMIX_INLINE void by_tiles(Index width, F f)
{
    Index at = 0;
    for (; at + 4 * DOUBLES <= width; at += 4 * DOUBLES) f(at, Packs<4>());
    const Index left = (width - at) / DOUBLES;
    if (left == 3) f(at, Packs<3>());
    if (left == 2) f(at, Packs<2>());
    if (left == 1) f(at, Packs<1>());
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
