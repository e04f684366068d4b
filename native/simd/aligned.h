// Arrays that begin on a cache line, so that no pack in them lies across two. Of the large ones that
// a thread frees it keeps a few: passes over blocks of rows need the same sizes again and again, and
// a system that takes memory back at once (a Dask worker's) would map and clear them every time.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

#include "simd/kernels.h"

namespace geomix {

class FreeBlocks {
  public:
    FreeBlocks() = default;
    FreeBlocks(const FreeBlocks&) = delete;
    ~FreeBlocks()
    {
        gone() = true;
        for (std::size_t i = 0; i < n_; ++i) release(blocks_[i].at);
    }

    // Sizes are rounded up, so that nearly equal ones fit each other.
    static std::size_t rounded(std::size_t bytes)
    {
        return bytes < SMALLEST ? bytes : (bytes + SMALLEST - 1) / SMALLEST * SMALLEST;
    }
    static void* take(std::size_t bytes)
    {
        if (bytes >= SMALLEST && !gone())
            if (void* found = own().found(bytes)) return found;
        return ::operator new(bytes, std::align_val_t(PACK_BYTES));
    }
    static void give_back(void* at, std::size_t bytes)
    {
        if (bytes < SMALLEST || gone() || !own().kept(at, bytes)) release(at);
    }

  private:
    static constexpr std::size_t SMALLEST = std::size_t(1) << 16;
    static constexpr std::size_t MOST_BYTES = std::size_t(1) << 22, MOST_BLOCKS = 8;

    struct Block {
        void* at;
        std::size_t bytes;
    };

    static void release(void* at) { ::operator delete(at, std::align_val_t(PACK_BYTES)); }
    static FreeBlocks& own()
    {
        static thread_local FreeBlocks blocks;
        return blocks;
    }
    // Whether this thread has ended: arrays may be freed after its blocks.
    static bool& gone()
    {
        static thread_local bool gone = false;
        return gone;
    }

    void* found(std::size_t bytes)
    {
        for (std::size_t i = 0; i < n_; ++i)
            if (blocks_[i].bytes == bytes) {
                void* at = blocks_[i].at;
                blocks_[i] = blocks_[--n_];
                total_ -= bytes;
                return at;
            }
        return nullptr;
    }
    // The oldest make room.
    bool kept(void* at, std::size_t bytes)
    {
        if (bytes > MOST_BYTES) return false;
        while (n_ == MOST_BLOCKS || total_ + bytes > MOST_BYTES) {
            release(blocks_[0].at);
            total_ -= blocks_[0].bytes;
            for (std::size_t i = 1; i < n_; ++i) blocks_[i - 1] = blocks_[i];
            --n_;
        }
        blocks_[n_++] = {at, bytes};
        total_ += bytes;
        return true;
    }

    Block blocks_[MOST_BLOCKS];
    std::size_t n_ = 0, total_ = 0;
};

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
        return static_cast<T*>(FreeBlocks::take(FreeBlocks::rounded(n * sizeof(T))));
    }
    void deallocate(T* at, std::size_t n)
    {
        FreeBlocks::give_back(at, FreeBlocks::rounded(n * sizeof(T)));
    }
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
