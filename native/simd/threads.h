// Threads that live as long as one call, so that a fork between calls is safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "simd/kernels.h"
#include "simd/tiny_numbers.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace geomix {

inline int available_cores()
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    const int cores = static_cast<int>(std::thread::hardware_concurrency());
    return cores > 0 ? cores : 1;
}

// The most threads that calls from this thread may use; 0: no such limit.
inline int& thread_limit()
{
    static thread_local int limit = 0;
    return limit;
}

// Threads that may be used: GEOMIX_NUM_THREADS if it is set, or every core this process may use.
inline Index most_threads()
{
    constexpr long most = 64;
    const char* wanted = std::getenv("GEOMIX_NUM_THREADS");
    long n = wanted ? std::strtol(wanted, nullptr, 10) : 0;
    if (n < 1) n = available_cores();
    if (n > most) n = most;
    if (thread_limit() > 0 && n > thread_limit()) n = thread_limit();
    return n;
}

// Threads for work in shares; one for small work.
inline int threads_for(Index multiply_adds, Index n_shares)
{
    constexpr Index smallest = Index(1) << 20;
    if (multiply_adds < smallest || n_shares < 2) return 1;
    return static_cast<int>(std::min(most_threads(), n_shares));
}

// f(t, n) on n threads, t = 0 ... n - 1, where t = 0 is the calling thread.
//
// n is n_threads, or fewer where the system refuses to start that many: a process may be short
// of threads or of memory for their stacks. No thread enters f before n is known, because threads
// divide the work by n and wait for each other.
template <class F>
void in_parallel(int n_threads, F f)
{
    std::atomic<int> n_started{0};  // 0: not known yet
    std::vector<std::thread> others;
    try {
        others.reserve(static_cast<std::size_t>(n_threads > 1 ? n_threads - 1 : 0));
        for (int t = 1; t < n_threads; ++t)
            others.emplace_back([&n_started, &f, t, mode = float_mode()] {
                set_float_mode(mode);
                int n;
                while ((n = n_started.load(std::memory_order_acquire)) == 0)
                    std::this_thread::yield();
                f(t, n);
            });
    } catch (const std::system_error&) {  // go on with those that started
    } catch (const std::bad_alloc&) {
    }
    const int n = static_cast<int>(others.size()) + 1;
    n_started.store(n, std::memory_order_release);
    f(0, n);
    for (std::thread& other : others) other.join();
}

// Lets the calling thread check for Ctrl-C from time to time while others work.
class Interrupt {
  public:
    using Look = bool (*)();
    explicit Interrupt(Look look) : look_(look), last_(Clock::now()) {}

    bool asked() const { return asked_.load(std::memory_order_relaxed); }

    // Calling thread only: checks at most every 20 ms, because a check takes the GIL.
    bool check()
    {
        if (!asked() && look_ && Clock::now() - last_ > std::chrono::milliseconds(20)) {
            last_ = Clock::now();
            if (look_()) asked_.store(true, std::memory_order_relaxed);
        }
        return asked();
    }

  private:
    using Clock = std::chrono::steady_clock;
    Look look_;
    Clock::time_point last_;
    std::atomic<bool> asked_{false};
};

}  // namespace geomix
