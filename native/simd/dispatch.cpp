// The CPU level in use: the best one of this machine, or the one named in GEOMIX_SIMD.
#include <cstdlib>
#include <cstring>

#include "simd/kernels.h"

namespace geomix {

namespace scalar {
extern const Kernels table;
}
#ifdef GEOMIX_X86
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

namespace {

const Kernels& choose()
{
    const char* wanted = std::getenv("GEOMIX_SIMD");
    const bool any = wanted == nullptr || *wanted == '\0';
    const auto allows = [&](const char* name) { return any || std::strcmp(wanted, name) == 0; };
    (void)allows;
#ifdef GEOMIX_X86
    __builtin_cpu_init();
    if (allows("avx512") && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return avx512::table;
    if (allows("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return avx2::table;
#endif
    return scalar::table;
}

}  // namespace

const Kernels& kernels()
{
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace geomix
