// Tile<W>: a number for each of W planes, side by side: single in tables, double while they are
// added up.
//
// As Pack (simd/pack.h), doubles that are wider than a register are a pair of halves: GCC moves a
// vector that is wider than its registers through memory.
#pragma once

#include "simd/kernels.h"
#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <int W>
struct VectorOf;

#define GEOMIX_VECTOR(W)                                                                       \
    template <>                                                                                \
    struct VectorOf<W> {                                                                       \
        typedef float Single __attribute__((vector_size(4 * W)));                              \
        typedef float LooseSingle __attribute__((vector_size(4 * W), aligned(4), may_alias));  \
        typedef double Double __attribute__((vector_size(8 * W)));                             \
        typedef double LooseDouble __attribute__((vector_size(8 * W), aligned(8), may_alias)); \
    };
GEOMIX_VECTOR(2)
GEOMIX_VECTOR(4)
GEOMIX_VECTOR(8)
GEOMIX_VECTOR(16)
#undef GEOMIX_VECTOR

// W doubles in memory, or as floats in memory.
template <int W, bool fits = 8 * W <= GEOMIX_BYTES>
struct Doubles {
    using V = VectorOf<W>;
    using type = typename V::Double;
    GEOMIX_INLINE type load(const double* from)
    {
        return *reinterpret_cast<const typename V::LooseDouble*>(from);
    }
    GEOMIX_INLINE type load(const float* from)
    {
        const typename V::Single x = *reinterpret_cast<const typename V::LooseSingle*>(from);
        return __builtin_convertvector(x, type);
    }
    GEOMIX_INLINE void store(double* to, const type& x)
    {
        *reinterpret_cast<typename V::LooseDouble*>(to) = x;
    }
    GEOMIX_INLINE void store(float* to, const type& x)
    {
        *reinterpret_cast<typename V::LooseSingle*>(to) =
            __builtin_convertvector(x, typename V::Single);
    }
    GEOMIX_INLINE type times(double t, const type& x) { return t * x; }
};
template <int W>
struct Doubles<W, false> {
    using Half = Doubles<W / 2>;
    using type = Pair<typename Half::type>;
    template <class T>
    GEOMIX_INLINE type load(const T* from)
    {
        return {Half::load(from), Half::load(from + W / 2)};
    }
    template <class T>
    GEOMIX_INLINE void store(T* to, const type& x)
    {
        Half::store(to, x.low);
        Half::store(to + W / 2, x.high);
    }
    GEOMIX_INLINE type times(double t, const type& x)
    {
        return {Half::times(t, x.low), Half::times(t, x.high)};
    }
};

template <int W>
struct Tile {
    static constexpr int n = W;
    using Single = typename VectorOf<W>::Single;
    using InTable = typename VectorOf<W>::LooseSingle;
    using Double = typename Doubles<W>::type;

    // The numbers of bin or row i, as they lie in memory.
    GEOMIX_INLINE const InTable& at(const float* numbers, Index i)
    {
        return *reinterpret_cast<const InTable*>(numbers + i * W);
    }
    GEOMIX_INLINE InTable& at(float* numbers, Index i)
    {
        return *reinterpret_cast<InTable*>(numbers + i * W);
    }
    // The same as doubles, from floats or doubles and rounded to them.
    template <class T>
    GEOMIX_INLINE Double load(const T* numbers, Index i)
    {
        return Doubles<W>::load(numbers + i * W);
    }
    template <class T>
    GEOMIX_INLINE void store(T* numbers, Index i, const Double& x)
    {
        Doubles<W>::store(numbers + i * W, x);
    }
    GEOMIX_INLINE Double times(double t, const Double& x) { return Doubles<W>::times(t, x); }
};

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
