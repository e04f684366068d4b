// exp, log, sin and cos on packs, the same bits on every CPU level (no libm, no fused multiply).
//
//   exponential   <= 1 ulp; results below the smallest normal number become 0, NaN stays NaN
//   logarithm     <= 1 ulp for positive normal numbers (the core takes logs of sums >= 1 only)
//   sine_cosine   absolute error <= 2.3e-16 for every finite angle; beyond FAR_ANGLE each lane
//                 asks libm, which reduces huge angles with as many digits of pi as it takes
//
// exp: Cody-Waite reduction x = n ln2 + r, then the Taylor series of e^r on |r| <= ln2 / 2.
// log, sin, cos: the polynomials and splittings of FDLIBM (Sun Microsystems, freely usable).
#pragma once

#include <cmath>

#include "kernels.h"
#include "pack.h"

namespace geomix {
namespace GEOMIX_LEVEL {

template <class T>
struct Exp;
template <>
struct Exp<double> {
    static constexpr double lowest = -708.39, highest = 709.78;
    static constexpr double round = 0x1.8p52;  // adding it leaves the nearest integer in the low bits
    static constexpr double ln2_high = 6.93147180369123816490e-01;
    static constexpr double ln2_low = 1.90821492927058770002e-10;
    static constexpr int mantissa = 52;
    static constexpr uint64_t bias = 1023;
    static constexpr int terms = 12;
    // 1/2!, 1/3!, ... 1/13!
    static constexpr double c[terms] = {
        1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
        1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
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
    const Pack<T> shifted = x * splat<T>(T(1.44269504088896340736)) + round;
    const Pack<T> n = shifted - round;
    const Pack<T> r = (x - n * splat<T>(E::ln2_high)) - n * splat<T>(E::ln2_low);
    // Two interleaved Horner chains in r^2 halve the latency of one in r.
    const Pack<T> r2 = r * r;
    Pack<T> even = splat<T>(E::c[E::terms - 2]), odd = splat<T>(E::c[E::terms - 1]);
#pragma GCC unroll 6
    for (int i = E::terms - 4; i >= 0; i -= 2) {
        even = even * r2 + splat<T>(E::c[i]);
        odd = odd * r2 + splat<T>(E::c[i + 1]);
    }
    const Pack<T> e = splat<T>(T(1)) + (r + r2 * (even + r * odd));
    // 2^n: the low bits of `shifted` hold n, so n + bias goes straight into the exponent.
    const Bits<T> exponent =
        (reread<Bits<T>>(shifted) + splat<U>(E::bias)) << E::mantissa;
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
    const Pack<double> t1 =
        w * (splat(3.999999999940941908e-01) +
             w * (splat(2.222219843214978396e-01) + w * splat(1.531383769920937332e-01)));
    const Pack<double> t2 =
        z * (splat(6.666666666666735130e-01) +
             w * (splat(2.857142874366239149e-01) +
                  w * (splat(1.818357216161805012e-01) + w * splat(1.479819860511658591e-01))));
    return t2 + t1;
}
GEOMIX_INLINE Pack<float> log_series(Pack<float> z)
{
    const Pack<float> w = z * z;
    return z * (splat(0.66666662693f) + w * splat(0.28498786688f)) +
           w * (splat(0.40000972152f) + w * splat(0.24279078841f));
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
    const Pack<T> rest = s * (half_square + log_series(s * s)) + k * splat<T>(L::ln2_low);
    return k * splat<T>(L::ln2_high) - ((half_square - rest) - f);
}

constexpr double FAR_ANGLE = 0x1p19;

// sin and cos on |r| <= pi/4: the polynomials of FDLIBM k_sin and k_cos. Their terms that make
// up for the rounding of r are left out: that is within the absolute error above.
GEOMIX_INLINE Pack<double> near_sine(Pack<double> r, Pack<double> z, Pack<double> w)
{
    const Pack<double> p =
        splat(8.33333333332248946124e-03) +
        z * (splat(-1.98412698298579493134e-04) + z * splat(2.75573137070700676789e-06)) +
        z * w * (splat(-2.50507602534068634195e-08) + z * splat(1.58969099521155010221e-10));
    return r + z * r * (splat(-1.66666666666666324348e-01) + z * p);
}
GEOMIX_INLINE Pack<double> near_cosine(Pack<double> z, Pack<double> w)
{
    const Pack<double> p =
        z * (splat(4.16666666666666019037e-02) +
             z * (splat(-1.38888888888741095749e-03) + z * splat(2.48015872894767294178e-05))) +
        w * w *
            (splat(-2.75573143513906633035e-07) +
             z * (splat(2.08757232129817482790e-09) + z * splat(-1.13596475577881948265e-11)));
    return (splat(1.0) - splat(0.5) * z) + z * p;
}

// Whether any of the angles (whole packs of them) is beyond FAR_ANGLE; NaN is not.
GEOMIX_INLINE bool any_far(const double* angle, Index n)
{
    const Bits<double> no_sign = splat<uint64_t>(0x7fffffffffffffff);
    Pack<double> top = splat(0.0);
    for (Index i = 0; i < n; i += lanes<double>)
        top = larger(top, reread<Pack<double>>(reread<Bits<double>>(load(angle + i)) & no_sign));
    double lane[lanes<double>];
    store(lane, top);
    bool far = false;
    for (int i = 0; i < lanes<double>; ++i) far |= lane[i] > FAR_ANGLE;
    return far;
}

struct SineCosine {
    Pack<double> sine, cosine;
};

// Sines and cosines of 8 angles up to FAR_ANGLE.
GEOMIX_INLINE SineCosine sine_cosine(Pack<double> x)
{
    const Pack<double> round = splat(0x1.8p52);
    const Pack<double> shifted = x * splat(6.36619772367581382433e-01) + round;
    const Pack<double> n = shifted - round;
    // pi/2 in two pieces of 33 bits, whose products with n are exact, and one of 53.
    const Pack<double> first = x - n * splat(1.57079632673412561417e+00);
    const Pack<double> second = first - n * splat(6.07710050630396597660e-11);
    const Pack<double> r = second - n * splat(2.02226624879595063154e-21);
    const Pack<double> z = r * r, w = z * z;
    const Pack<double> s = near_sine(r, z, w), c = near_cosine(z, w);
    // Quarter turns: odd ones swap sine and cosine, the second bit flips signs.
    const Bits<double> quarter = reread<Bits<double>>(shifted);
    const Bits<double> bit = splat<uint64_t>(1), sign_bit = splat<uint64_t>(2);
    const Pack<double> odd = reread<Pack<double>>((quarter & bit) | splat<uint64_t>(0x3ff0000000000000));
    const Pack<double> even_mark = splat(1.0);
    const Pack<double> raw_sine = choose_equal(odd, even_mark, s, c);
    const Pack<double> raw_cosine = choose_equal(odd, even_mark, c, s);
    const Bits<double> sine_sign = (quarter & sign_bit) << 62;
    const Bits<double> cosine_sign = ((quarter + bit) & sign_bit) << 62;
    return {reread<Pack<double>>(reread<Bits<double>>(raw_sine) ^ sine_sign),
            reread<Pack<double>>(reread<Bits<double>>(raw_cosine) ^ cosine_sign)};
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

// put(i, sines and cosines of the pack of angles at i), over n angles in whole packs.
template <class Put>
GEOMIX_INLINE void each_sine_cosine(const double* angles, Index n, Put put)
{
    if (__builtin_expect(any_far(angles, n), 0)) {
        for (Index i = 0; i < n; i += lanes<double>) put(i, sine_cosine_far(angles + i));
        return;
    }
    for (Index i = 0; i < n; i += lanes<double>) put(i, sine_cosine(load(angles + i)));
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
