// Memory of large arrays straight from the system, and back to it when they are freed.
//
// The C library would take an array of up to 32 MB from its heap. A small array that is made later
// and lives longer then lies behind it, and the heap cannot shrink: a fit whose arrays take 40 MB
// would hold 60.
#pragma once

#include <cstddef>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace geomix {

#if defined(__linux__)
// Smaller arrays are quicker from the heap: the system clears every page.
constexpr bool is_from_system(std::size_t bytes) { return bytes >= std::size_t(1) << 17; }

inline void* memory_from_system(std::size_t bytes)
{
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return at;
}
inline void memory_to_system(void* at, std::size_t bytes) { munmap(at, bytes); }
#else
constexpr bool is_from_system(std::size_t) { return false; }
inline void* memory_from_system(std::size_t) { throw std::bad_alloc(); }
inline void memory_to_system(void*, std::size_t) {}
#endif

// Gives free pages of the C library's heap back to the system.
inline void trim_heap()
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

}  // namespace geomix
