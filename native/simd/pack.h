// Pack<T>: 64 bytes of numbers side by side (8 double or 16 float), the same width on every CPU.
//
// A level with narrower registers holds a pack as a pair of halves, or a pair of pairs. Every
// operation acts lane by lane, so each lane sees the same IEEE operations on every level and
// the results are equal to the last bit. Multiply-adds are fused by name (`fused`), never by the
// compiler's choice. Compiled once per level (GEOMIX_LEVEL is a namespace);
// nothing here may instantiate code shared between levels, so the standard library stays out.
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define GEOMIX_BYTES 64
#elif defined(__AVX2__)
#define GEOMIX_BYTES 32
#else
#define GEOMIX_BYTES 16
#endif

#define GEOMIX_INLINE static inline __attribute__((always_inline))

namespace geomix {
namespace GEOMIX_LEVEL {

template <class T>
struct Register;
template <>
struct Register<double> {
    typedef double type __attribute__((vector_size(GEOMIX_BYTES)));
    typedef double loose __attribute__((vector_size(GEOMIX_BYTES), aligned(8), may_alias));
};
template <>
struct Register<float> {
    typedef float type __attribute__((vector_size(GEOMIX_BYTES)));
    typedef float loose __attribute__((vector_size(GEOMIX_BYTES), aligned(4), may_alias));
};
template <>
struct Register<uint64_t> {
    typedef uint64_t type __attribute__((vector_size(GEOMIX_BYTES)));
};
template <>
struct Register<uint32_t> {
    typedef uint32_t type __attribute__((vector_size(GEOMIX_BYTES)));
};

template <class Half>
struct Pair {
    Half low, high;
};

#if GEOMIX_BYTES == 64
template <class T>
using Pack = typename Register<T>::type;
#elif GEOMIX_BYTES == 32
template <class T>
using Pack = Pair<typename Register<T>::type>;
#else
template <class T>
using Pack = Pair<Pair<typename Register<T>::type>>;
#endif

template <class T>
struct Unsigned;
template <>
struct Unsigned<double> {
    using type = uint64_t;
};
template <>
struct Unsigned<float> {
    using type = uint32_t;
};
template <class T>
using Bits = Pack<typename Unsigned<T>::type>;

template <class T>
constexpr int lanes = 64 / static_cast<int>(sizeof(T));

// --- lane by lane arithmetic of pairs; the registers themselves have it built in ---

#define GEOMIX_OPERATOR(op)                                               \
    template <class H>                                                    \
    GEOMIX_INLINE Pair<H> operator op(const Pair<H>& a, const Pair<H>& b) \
    {                                                                     \
        return {a.low op b.low, a.high op b.high};                        \
    }
GEOMIX_OPERATOR(+)
GEOMIX_OPERATOR(-)
GEOMIX_OPERATOR(*)
GEOMIX_OPERATOR(/)
GEOMIX_OPERATOR(&)
GEOMIX_OPERATOR(|)
GEOMIX_OPERATOR(^)
#undef GEOMIX_OPERATOR

template <class H>
GEOMIX_INLINE Pair<H> operator<<(const Pair<H>& a, int n)
{
    return {a.low << n, a.high << n};
}
template <class H>
GEOMIX_INLINE Pair<H> operator>>(const Pair<H>& a, int n)
{
    return {a.low >> n, a.high >> n};
}

// --- a b + c, rounded once ---

GEOMIX_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

#if GEOMIX_BYTES == 64
GEOMIX_INLINE Register<double>::type fused(Register<double>::type a, Register<double>::type b,
                                           Register<double>::type c)
{
    return _mm512_fmadd_pd(a, b, c);
}
GEOMIX_INLINE Register<float>::type fused(Register<float>::type a, Register<float>::type b,
                                          Register<float>::type c)
{
    return _mm512_fmadd_ps(a, b, c);
}
#elif GEOMIX_BYTES == 32
GEOMIX_INLINE Register<double>::type fused(Register<double>::type a, Register<double>::type b,
                                           Register<double>::type c)
{
    return _mm256_fmadd_pd(a, b, c);
}
GEOMIX_INLINE Register<float>::type fused(Register<float>::type a, Register<float>::type b,
                                          Register<float>::type c)
{
    return _mm256_fmadd_ps(a, b, c);
}
#else
// Lane by lane: one instruction where the target has it, or the C library, with the same rounding.
GEOMIX_INLINE Register<double>::type fused(Register<double>::type a, Register<double>::type b,
                                           Register<double>::type c)
{
    for (int i = 0; i < 2; ++i) c[i] = fused(a[i], b[i], c[i]);
    return c;
}
GEOMIX_INLINE Register<float>::type fused(Register<float>::type a, Register<float>::type b,
                                          Register<float>::type c)
{
    for (int i = 0; i < 4; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
#endif
template <class H>
GEOMIX_INLINE Pair<H> fused(const Pair<H>& a, const Pair<H>& b, const Pair<H>& c)
{
    return {fused(a.low, b.low, c.low), fused(a.high, b.high, c.high)};
}

// --- comparisons and choice; a comparison lives only inside `choose_less` and its kin, because
//     the type of a mask differs between levels ---

template <class V>
GEOMIX_INLINE V choose_less(V a, V b, V yes, V no)  // a < b ? yes : no
{
    return a < b ? yes : no;
}
template <class H>
GEOMIX_INLINE Pair<H> choose_less(Pair<H> a, Pair<H> b, Pair<H> yes, Pair<H> no)
{
    return {choose_less(a.low, b.low, yes.low, no.low),
            choose_less(a.high, b.high, yes.high, no.high)};
}
template <class V>
GEOMIX_INLINE V choose_equal(V a, V b, V yes, V no)  // a == b ? yes : no
{
    return a == b ? yes : no;
}
template <class H>
GEOMIX_INLINE Pair<H> choose_equal(Pair<H> a, Pair<H> b, Pair<H> yes, Pair<H> no)
{
    return {choose_equal(a.low, b.low, yes.low, no.low),
            choose_equal(a.high, b.high, yes.high, no.high)};
}

template <class V>
GEOMIX_INLINE V larger(V a, V b)
{
    return choose_less(a, b, b, a);
}
template <class V>
GEOMIX_INLINE V smaller(V a, V b)
{
    return choose_less(b, a, b, a);
}

// --- the same bits read as another type ---

template <class To, class From>
GEOMIX_INLINE To reread(const From& from)
{
    static_assert(sizeof(To) == sizeof(From), "reread keeps the size");
    To to;
    __builtin_memcpy(&to, &from, sizeof(To));
    return to;
}

// --- filling and memory ---

template <class V, class T>
struct Fill;
template <class T>
struct Fill<typename Register<T>::type, T> {
    static inline __attribute__((always_inline)) typename Register<T>::type with(T value)
    {
        constexpr int n = GEOMIX_BYTES / sizeof(T);
        if constexpr (n == 2) return typename Register<T>::type{value, value};
        if constexpr (n == 4) return typename Register<T>::type{value, value, value, value};
        if constexpr (n == 8)
            return
                typename Register<T>::type{value, value, value, value, value, value, value, value};
        if constexpr (n == 16)
            return
                typename Register<T>::type{value, value, value, value, value, value, value, value,
                                           value, value, value, value, value, value, value, value};
    }
};
template <class H, class T>
struct Fill<Pair<H>, T> {
    static inline __attribute__((always_inline)) Pair<H> with(T value)
    {
        return {Fill<H, T>::with(value), Fill<H, T>::with(value)};
    }
};
template <class T>
GEOMIX_INLINE Pack<T> splat(T value)
{
    return Fill<Pack<T>, T>::with(value);
}

template <class V, class T>
struct Memory;
template <class T>
struct Memory<typename Register<T>::type, T> {
    using V = typename Register<T>::type;
    static inline __attribute__((always_inline)) V load(const T* from)
    {
        return *reinterpret_cast<const typename Register<T>::loose*>(from);
    }
    static inline __attribute__((always_inline)) void store(T* to, V value)
    {
        *reinterpret_cast<typename Register<T>::loose*>(to) = value;
    }
};
template <class H, class T>
struct Memory<Pair<H>, T> {
    static constexpr int half = static_cast<int>(sizeof(H) / sizeof(T));
    static inline __attribute__((always_inline)) Pair<H> load(const T* from)
    {
        return {Memory<H, T>::load(from), Memory<H, T>::load(from + half)};
    }
    static inline __attribute__((always_inline)) void store(T* to, const Pair<H>& value)
    {
        Memory<H, T>::store(to, value.low);
        Memory<H, T>::store(to + half, value.high);
    }
};
template <class T>
GEOMIX_INLINE Pack<T> load(const T* from)
{
    return Memory<Pack<T>, T>::load(from);
}
template <class T>
GEOMIX_INLINE void store(T* to, const Pack<T>& value)
{
    Memory<Pack<T>, T>::store(to, value);
}

GEOMIX_INLINE Pack<double> eight(double a, double b, double c, double d, double e, double f,
                                 double g, double h)
{
    using V = Register<double>::type;
#if GEOMIX_BYTES == 64
    return V{a, b, c, d, e, f, g, h};
#elif GEOMIX_BYTES == 32
    return {V{a, b, c, d}, V{e, f, g, h}};
#else
    return {{V{a, b}, V{c, d}}, {V{e, f}, V{g, h}}};
#endif
}

// Of two packs of numbers whose lower halves are zero, held in one (see `Columns` in simd/kernels.h).
GEOMIX_INLINE Pack<double> first_of_two(const Pack<double>& both)
{
    return reread<Pack<double>>(reread<Bits<double>>(both) & splat<uint64_t>(0xffffffff00000000));
}
GEOMIX_INLINE Pack<double> second_of_two(const Pack<double>& both)
{
    return reread<Pack<double>>(reread<Bits<double>>(both) << 32);
}

// Sum of the lanes in a fixed tree: lane i takes lane i + half, and so on down to one.
template <class T>
GEOMIX_INLINE T sum_of_lanes(const Pack<T>& value)
{
    T lane[lanes<T>];
    store<T>(lane, value);
    for (int half = lanes<T> / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
