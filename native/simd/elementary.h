// exp, log, sin and cos on packs, the same bits on every CPU level.
//
//   exponential   <= 1 ulp; results below the smallest normal number become 0, NaN stays NaN
//   logarithm     <= 1 ulp for positive normal numbers (the core takes logs of sums >= 1 only)
//   sine_cosine   absolute error <= 2.3e-16 for every finite angle; beyond FAR_ANGLE each lane
//                 calls libm, which reduces huge angles with enough digits of pi. Of floats
//                 <= 1.3e-7 up to SINGLE_ANGLE; larger angles give numbers of no use
//
// exp: Cody-Waite reduction x = n ln2 + r, then the Taylor series of e^r on |r| <= ln2 / 2.
// log, sin, cos: the polynomials and splittings of FDLIBM (Sun Microsystems, freely usable).
#pragma once

#include <cmath>

#include "simd/kernels.h"
#include "simd/pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <class T>
struct Exp;
template <>
struct Exp<double> {
    static constexpr double lowest = -708.39, highest = 709.78;
    static constexpr double round =
        0x1.8p52;  // adding it leaves the nearest integer in the low bits
    static constexpr double ln2_high = 6.93147180369123816490e-01;
    static constexpr double ln2_low = 1.90821492927058770002e-10;
    static constexpr int mantissa = 52;
    static constexpr uint64_t bias = 1023;
    static constexpr int terms = 12;
    // 1/2!, 1/3!, ... 1/13!
    static constexpr double c[terms] = {1.0 / 2,        1.0 / 6,         1.0 / 24,
                                        1.0 / 120,      1.0 / 720,       1.0 / 5040,
                                        1.0 / 40320,    1.0 / 362880,    1.0 / 3628800,
                                        1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
};
template <>
struct Exp<float> {
    static constexpr float lowest = -87.33f, highest = 88.72f;
    static constexpr float round = 0x1.8p23f;
    static constexpr float ln2_high = 0.693359375f;
    static constexpr float ln2_low = -2.12194440e-4f;
    static constexpr int mantissa = 23;
    static constexpr uint32_t bias = 127;
    static constexpr int terms = 6;
    static constexpr float c[terms] = {1.0f / 2,   1.0f / 6,   1.0f / 24,
                                       1.0f / 120, 1.0f / 720, 1.0f / 5040};
};

template <class T>
GEOMIX_INLINE Pack<T> exponential(Pack<T> x)
{
    using E = Exp<T>;
    using U = typename Unsigned<T>::type;
    const Pack<T> round = splat<T>(E::round);
    const Pack<T> shifted = fused(x, splat<T>(T(1.44269504088896340736)), round);
    const Pack<T> n = shifted - round;
    const Pack<T> r = fused(n, splat<T>(-E::ln2_low), fused(n, splat<T>(-E::ln2_high), x));
    // Two interleaved Horner chains in r^2 halve the latency of one in r.
    const Pack<T> r2 = r * r;
    Pack<T> even = splat<T>(E::c[E::terms - 2]), odd = splat<T>(E::c[E::terms - 1]);
#pragma GCC unroll 6
    for (int i = E::terms - 4; i >= 0; i -= 2) {
        even = fused(even, r2, splat<T>(E::c[i]));
        odd = fused(odd, r2, splat<T>(E::c[i + 1]));
    }
    // 1 + r and its rounding error, which do not wait for the series.
    const Pack<T> one = splat<T>(T(1)), line = one + r, lost = r - (line - one);
    const Pack<T> e = line + fused(r2, fused(r, odd, even), lost);
    // 2^n: the low bits of `shifted` hold n, so n + bias goes straight into the exponent.
    const Bits<T> exponent = (reread<Bits<T>>(shifted) + splat<U>(E::bias)) << E::mantissa;
    const Pack<T> grown = e * reread<Pack<T>>(exponent);
    const Pack<T> zero = splat<T>(T(0));
    const Pack<T> kept = choose_less(x, splat<T>(E::lowest), zero, grown);
    return choose_less(splat<T>(E::highest), x, splat<T>(T(INFINITY)), kept);
}

template <class T>
struct Log;
template <>
struct Log<double> {
    static constexpr uint64_t root_half = 0x3fe6a09e667f3bcdULL;  // bits of sqrt(1/2)
    static constexpr uint64_t one = 0x3ff0000000000000ULL;
    static constexpr uint64_t mantissa_mask = 0x000fffffffffffffULL;
    static constexpr int mantissa = 52;
    static constexpr uint64_t integer = 0x4330000000000000ULL;  // bits of 2^52
    static constexpr double integer_offset = 0x1p52 + 1023.0;
    static constexpr double ln2_high = 6.93147180369123816490e-01;
    static constexpr double ln2_low = 1.90821492927058770002e-10;
};
template <>
struct Log<float> {
    static constexpr uint32_t root_half = 0x3f3504f3u;
    static constexpr uint32_t one = 0x3f800000u;
    static constexpr uint32_t mantissa_mask = 0x007fffffu;
    static constexpr int mantissa = 23;
    static constexpr uint32_t integer = 0x4b000000u;  // bits of 2^23
    static constexpr float integer_offset = 0x1p23f + 127.0f;
    static constexpr float ln2_high = 6.9313812256e-01f;
    static constexpr float ln2_low = 9.0580006145e-06f;
};

// The rest of the series of log(1 + f) after s = f / (2 + f), in z = s^2 (FDLIBM e_log, e_logf).
GEOMIX_INLINE Pack<double> log_series(Pack<double> z)
{
    const Pack<double> w = z * z;
    const Pack<double> even =
        fused(w, fused(w, splat(1.531383769920937332e-01), splat(2.222219843214978396e-01)),
              splat(3.999999999940941908e-01));
    const Pack<double> odd =
        fused(w,
              fused(w, fused(w, splat(1.479819860511658591e-01), splat(1.818357216161805012e-01)),
                    splat(2.857142874366239149e-01)),
              splat(6.666666666666735130e-01));
    return fused(z, odd, w * even);
}
GEOMIX_INLINE Pack<float> log_series(Pack<float> z)
{
    const Pack<float> w = z * z;
    return fused(z, fused(w, splat(0.28498786688f), splat(0.66666662693f)),
                 w * fused(w, splat(0.24279078841f), splat(0.40000972152f)));
}

template <class T>
GEOMIX_INLINE Pack<T> logarithm(Pack<T> x)
{
    using L = Log<T>;
    using U = typename Unsigned<T>::type;
    const Bits<T> moved = reread<Bits<T>>(x) + splat<U>(L::one - L::root_half);
    const Bits<T> exponent = (moved >> L::mantissa) | splat<U>(L::integer);
    const Pack<T> k = reread<Pack<T>>(exponent) - splat<T>(L::integer_offset);
    const Bits<T> bits = (moved & splat<U>(L::mantissa_mask)) + splat<U>(L::root_half);
    const Pack<T> f = reread<Pack<T>>(bits) - splat<T>(T(1));
    const Pack<T> s = f / (splat<T>(T(2)) + f);
    const Pack<T> half_square = splat<T>(T(0.5)) * f * f;
    const Pack<T> rest = fused(s, half_square + log_series(s * s), k * splat<T>(L::ln2_low));
    return fused(k, splat<T>(L::ln2_high), f - (half_square - rest));
}

constexpr double FAR_ANGLE = 0x1p19;

struct SineCosine {
    Pack<double> sine, cosine;
};

// Sines and cosines of angles up to FAR_ANGLE. The terms of FDLIBM k_sin and k_cos that correct
// the rounding of r are left out, which the absolute error above allows for.
GEOMIX_INLINE SineCosine sine_cosine(Pack<double> x)
{
    constexpr double sines[6] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                 -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                 -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    constexpr double cosines[6] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                   2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                   2.08757232129817482790e-09, -1.13596475577881948265e-11};
    const Pack<double> round = splat(0x1.8p52);
    const Pack<double> shifted = fused(x, splat(6.36619772367581382433e-01), round);
    const Pack<double> n = shifted - round;
    // pi/2 in two pieces of 53 bits: the first step is exact, because what it leaves is small.
    const Pack<double> first = fused(n, splat(-1.57079632679489655800e+00), x);
    const Pack<double> r = fused(n, splat(-6.12323399573676603587e-17), first), z = r * r;
    Pack<double> p = splat(sines[5]), q = splat(cosines[5]);
#pragma GCC unroll 5
    for (int i = 4; i >= 0; --i) {
        p = fused(p, z, splat(sines[i]));
        q = fused(q, z, splat(cosines[i]));
    }
    const Bits<double> s = reread<Bits<double>>(fused(z * r, p, r));
    const Bits<double> c = reread<Bits<double>>(fused(z, fused(z, q, splat(-0.5)), splat(1.0)));
    // Quarter turns: odd ones swap sine and cosine, the second bit flips signs.
    const Bits<double> quarter = reread<Bits<double>>(shifted), bit = splat<uint64_t>(1);
    const Bits<double> odd = splat<uint64_t>(0) - (quarter & bit), swap = (s ^ c) & odd;
    const Bits<double> sign = splat<uint64_t>(0x8000000000000000);
    return {reread<Pack<double>>(s ^ swap ^ ((quarter << 62) & sign)),
            reread<Pack<double>>(c ^ swap ^ (((quarter + bit) << 62) & sign))};
}

struct SineCosine32 {
    Pack<float> sine, cosine;
};

// The same of floats, with polynomials of least largest error on |r| <= pi / 4.
GEOMIX_INLINE SineCosine32 sine_cosine(Pack<float> x)
{
    const Pack<float> round = splat(0x1.8p23f);
    const Pack<float> shifted = fused(x, splat(6.366197467e-01f), round);
    const Pack<float> n = shifted - round;
    // The first step is exact, as above: n has at most 9 bits.
    const Pack<float> first = fused(n, splat(-1.570796371e+00f), x);
    const Pack<float> r = fused(n, splat(4.371138829e-08f), first), z = r * r;
    const Pack<float> p =
        fused(fused(splat(-1.949556754e-04f), z, splat(8.331977762e-03f)), z,
              splat(-1.666665077e-01f));
    const Pack<float> q =
        fused(fused(splat(2.443837911e-05f), z, splat(-1.388736651e-03f)), z,
              splat(4.166664556e-02f));
    const Bits<float> s = reread<Bits<float>>(fused(z * r, p, r));
    const Bits<float> c = reread<Bits<float>>(fused(z, fused(z, q, splat(-0.5f)), splat(1.0f)));
    const Bits<float> quarter = reread<Bits<float>>(shifted), bit = splat<uint32_t>(1);
    const Bits<float> odd = splat<uint32_t>(0) - (quarter & bit), swap = (s ^ c) & odd;
    const Bits<float> sign = splat<uint32_t>(0x80000000);
    return {reread<Pack<float>>(s ^ swap ^ ((quarter << 30) & sign)),
            reread<Pack<float>>(c ^ swap ^ (((quarter + bit) << 30) & sign))};
}

// The same for any finite angle, where some may be beyond FAR_ANGLE.
static __attribute__((noinline)) SineCosine sine_cosine_far(const double* angle)
{
    const SineCosine near = sine_cosine(load(angle));
    double sine[lanes<double>], cosine[lanes<double>];
    store(sine, near.sine);
    store(cosine, near.cosine);
    for (int i = 0; i < lanes<double>; ++i)
        if (std::fabs(angle[i]) > FAR_ANGLE) {
            sine[i] = std::sin(angle[i]);
            cosine[i] = std::cos(angle[i]);
        }
    return {load(sine), load(cosine)};
}

// put(i, sines and cosines of the pack of angles at i), over n angles in whole packs. All angles
// are assumed to be near first; if one is not, all are computed again.
template <class Put>
GEOMIX_INLINE void each_sine_cosine(const double* angles, Index n, Put put)
{
    constexpr int w = lanes<double>;
    // Added to the bits of |x|, reaches the sign bit if |x| >= FAR_ANGLE.
    const Bits<double> no_sign = splat<uint64_t>(0x7fffffffffffffff);
    const Bits<double> to_far = splat<uint64_t>(0x8000000000000000 - 0x4120000000000000);
    Bits<double> far = splat<uint64_t>(0);
    for (Index i = 0; i < n; i += w) {
        const Pack<double> x = load(angles + i);
        far = far | ((reread<Bits<double>>(x) & no_sign) + to_far);
        put(i, sine_cosine(x));
    }
    uint64_t lane[w], any = 0;
    __builtin_memcpy(lane, &far, sizeof lane);
    for (int k = 0; k < w; ++k) any |= lane[k];
    if (__builtin_expect(any >> 63 == 0, 1)) return;
    for (Index i = 0; i < n; i += w) put(i, sine_cosine_far(angles + i));
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
