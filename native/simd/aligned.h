// Arrays that begin on a cache line, so that no pack in them lies across two.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "simd/kernels.h"

namespace geomix {

template <class T>
struct OnCacheLine {
    using value_type = T;
    OnCacheLine() = default;
    template <class U>
    OnCacheLine(const OnCacheLine<U>&)
    {
    }
    T* allocate(std::size_t n)
    {
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(PACK_BYTES)));
    }
    void deallocate(T* at, std::size_t) { ::operator delete(at, std::align_val_t(PACK_BYTES)); }
    template <class U>
    bool operator==(const OnCacheLine<U>&) const
    {
        return true;
    }
    template <class U>
    bool operator!=(const OnCacheLine<U>&) const
    {
        return false;
    }
};

template <class T>
using Aligned = std::vector<T, OnCacheLine<T>>;

}  // namespace geomix
