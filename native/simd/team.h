// Threads that live as long as one call and share the items of one job after another.
//
// A pass over some thousand rows takes 0.1 to 10 ms and is two or three jobs, so starting a thread
// for each would take as long as the job. An item goes to whichever thread is free. A thread that
// the system does not run costs nothing, because the others take its items.
#pragma once

#include <cstdint>

#include "simd/threads.h"

namespace geomix {

// Threads of a team for one of many passes, each with enough to do: 2^16 multiply-adds take some
// 20 microseconds, ten times as long as a job takes to begin and end.
inline int team_threads_for(Index multiply_adds, Index n_shares)
{
    const Index busy = std::min(multiply_adds >> 16, n_shares);
    return busy < 2 ? 1 : static_cast<int>(std::min(most_threads(), busy));
}

class Team {
  public:
    // most : threads, with the calling one
    explicit Team(int most = 64) : most_(most) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team()
    {
        over_.store(true, std::memory_order_release);
        for (std::thread& other : others_) other.join();
    }

    // f(item, t) for the items 0 ... n_items - 1 on at most n_threads threads, t = 0 ...
    // n_threads - 1, where t = 0 is the calling thread; returns when all are done. f throws
    // nothing, and so allocates nothing: it may run on a thread where nobody would catch that.
    template <class F>
    void each(int n_threads, Index n_items, const F& f)
    {
        if (n_threads > 1 && n_items > 1) start(std::min(n_threads, most_));
        if (others_.empty() || n_items < 2) {
            for (Index item = 0; item < n_items; ++item) f(item, 0);
            return;
        }
        call_ = [](const void* of, Index item, int t) { (*static_cast<const F*>(of))(item, t); };
        f_ = &f;
        n_unfinished_.store(n_items, std::memory_order_relaxed);
        state_.store(
            static_cast<std::uint64_t>(n_threads) << 56 | static_cast<std::uint64_t>(n_items) << 28,
            std::memory_order_release);
        while (take_item(0)) {
        }
        for (int n_looks = 0; n_unfinished_.load(std::memory_order_acquire) > 0; ++n_looks)
            pause(n_looks);
    }

  private:
    static constexpr std::uint64_t most_items = (std::uint64_t(1) << 28) - 1;
    static constexpr int looks_before_yield = 2000;  // some 50 microseconds

    void start(int n_threads)
    {
        try {
            while (static_cast<int>(others_.size()) + 1 < n_threads && !refused_) {
                const int t = static_cast<int>(others_.size()) + 1;
                others_.emplace_back([this, t, mode = float_mode()] {
                    set_float_mode(mode);
                    work(t);
                });
            }
        } catch (const std::system_error&) {  // go on with those that started
            refused_ = true;
        } catch (const std::bad_alloc&) {
            refused_ = true;
        }
    }

    void work(int t)
    {
        for (int n_looks = 0; !over_.load(std::memory_order_acquire);)
            if (take_item(t))
                n_looks = 0;
            else
                pause(n_looks++);
    }

    // Claims an item and runs it; false if none is left, or if the job is for fewer threads: it
    // has no room for this one. The state is one word: the threads of the job (8 bits), its items
    // and the next of them (28 bits each). So nobody claims an item of a job that is over, and f_
    // stays until the claimed item is done.
    bool take_item(int t)
    {
        std::uint64_t state = state_.load(std::memory_order_acquire);
        for (;;) {
            const std::uint64_t item = state & most_items, n_items = state >> 28 & most_items;
            if (item >= n_items || static_cast<std::uint64_t>(t) >= state >> 56) return false;
            if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
                call_(f_, static_cast<Index>(item), t);
                n_unfinished_.fetch_sub(1, std::memory_order_acq_rel);
                return true;
            }
        }
    }

    static void pause(int n_looks)
    {
        if (n_looks >= looks_before_yield) return std::this_thread::yield();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }

    void (*call_)(const void*, Index, int) = nullptr;
    const void* f_ = nullptr;
    alignas(64) std::atomic<std::uint64_t> state_{0};
    alignas(64) std::atomic<Index> n_unfinished_{0};
    alignas(64) std::atomic<bool> over_{false};
    std::vector<std::thread> others_;
    int most_;
    bool refused_ = false;
};

}  // namespace geomix
