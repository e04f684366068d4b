// Arrays that begin on a cache line, so that no pack in them lies across two. Of the large ones that
// a thread frees it keeps a few: passes over blocks of rows need the same sizes again and again, and
// a system that takes memory back at once (a Dask worker's) would map and clear them every time.
// During a fit it keeps all arrays of a solver for the next one. An array of another size takes the
// place of free ones, so that they add little to the peak of the solvers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <vector>

#include "simd/from_system.h"
#include "simd/kernels.h"

namespace geomix {

class FreeBlocks {
  public:
    FreeBlocks() = default;
    FreeBlocks(const FreeBlocks&) = delete;
    ~FreeBlocks()
    {
        gone() = true;
        shrink(0);
    }

    // Sizes are rounded up, so that nearly equal ones fit each other.
    static std::size_t rounded(std::size_t bytes)
    {
        return bytes < SMALLEST ? bytes : (bytes + SMALLEST - 1) / SMALLEST * SMALLEST;
    }
    static void* take(std::size_t bytes)
    {
        if (bytes >= SMALLEST && !gone()) {
            if (void* found = own().found(bytes)) return found;
            own().make_room(bytes);
        }
        return made(bytes);
    }
    static void give_back(void* at, std::size_t bytes)
    {
        if (bytes < SMALLEST || gone() || !own().kept(at, bytes)) release({at, bytes});
    }

    // The most bytes that a thread keeps; how many it kept before.
    static std::size_t keep(std::size_t most) { return most_bytes().exchange(most); }
    // Frees what this thread has kept.
    static void clear()
    {
        if (!gone()) own().shrink(0);
    }

  private:
    static constexpr std::size_t SMALLEST = std::size_t(1) << 16;
    static constexpr std::size_t LARGEST = std::size_t(1) << 22, MOST_BLOCKS = 64;
    static constexpr std::size_t FEW = std::size_t(1) << 23;  // less, and linear fits map theirs anew

    struct Block {
        void* at;
        std::size_t bytes;
    };

    static std::atomic<std::size_t>& most_bytes()
    {
        static std::atomic<std::size_t> most{LARGEST};
        return most;
    }
    static void* made(std::size_t bytes)
    {
        if (is_from_system(bytes)) return memory_from_system(bytes);
        return ::operator new(bytes, std::align_val_t(PACK_BYTES));
    }
    static void release(Block block)
    {
        if (is_from_system(block.bytes))
            memory_to_system(block.at, block.bytes);
        else
            ::operator delete(block.at, std::align_val_t(PACK_BYTES));
    }
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
    bool kept(void* at, std::size_t bytes)
    {
        const std::size_t most = most_bytes();
        if (bytes > LARGEST || bytes > most) return false;
        shrink(most - bytes);
        if (n_ == MOST_BLOCKS) drop(1);
        blocks_[n_++] = {at, bytes};
        total_ += bytes;
        return true;
    }
    // A new block takes the place of free ones, beyond a few.
    void make_room(std::size_t bytes) { shrink(std::max(total_ - std::min(total_, bytes), FEW)); }
    // Frees the oldest until at most this many bytes are left.
    void shrink(std::size_t most)
    {
        std::size_t n = 0, left = total_;
        while (left > most) left -= blocks_[n++].bytes;
        drop(n);
    }
    void drop(std::size_t n)
    {
        for (std::size_t i = 0; i < n; ++i) {
            total_ -= blocks_[i].bytes;
            release(blocks_[i]);
        }
        for (std::size_t i = n; i < n_; ++i) blocks_[i - n] = blocks_[i];
        n_ -= n;
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
