// Numbers below the smallest normal one count as zero while planes are trained.
//
// A slope is a product of probabilities and responsibilities, so it is often such a number, in
// float32 below 1.2e-38. Many CPUs take a hundred cycles for each, and no sum above 1e-30 changes by
// it. The mode belongs to the thread; all CPU levels of one processor have the same.
#pragma once

#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace geomix {

#if defined(__SSE__) || defined(_M_X64)
using FloatMode = unsigned;
constexpr FloatMode tiny_is_zero = 0x8040;  // of results and of operands
inline FloatMode float_mode() { return _mm_getcsr(); }
inline void set_float_mode(FloatMode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
using FloatMode = std::uint64_t;
constexpr FloatMode tiny_is_zero = FloatMode(1) << 24;
inline FloatMode float_mode()
{
    FloatMode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
inline void set_float_mode(FloatMode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
using FloatMode = unsigned;
constexpr FloatMode tiny_is_zero = 0;
inline FloatMode float_mode() { return 0; }
inline void set_float_mode(FloatMode) {}
#endif

// For as long as it lives, on the thread that made it; threads that this one starts do the same.
class TinyIsZero {
  public:
    TinyIsZero() : before_(float_mode()) { set_float_mode(before_ | tiny_is_zero); }
    ~TinyIsZero() { set_float_mode(before_); }
    TinyIsZero(const TinyIsZero&) = delete;
    TinyIsZero& operator=(const TinyIsZero&) = delete;

  private:
    FloatMode before_;
};

}  // namespace geomix
