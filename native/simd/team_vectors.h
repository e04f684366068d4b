// Flat arrays of doubles by a team of threads.
//
// A long array has blocks of a fixed length. A dot product is the sum of those of the blocks, in
// order, so any number of threads gives the same bits.
#pragma once

#include "simd/team.h"
#include "simd/vectors.h"

namespace geomix {

constexpr Index NUMBERS_IN_BLOCK = Index(1)
                                   << 14;  // a block of two arrays: half of a second-level cache

// f(first number, how many, block) of n numbers in blocks of a length.
template <class F>
void each_block_of(Index n, Index length, Team& team, const F& f)
{
    const Index n_blocks = (n + length - 1) / length;
    team.each(team_threads_for(8 * n, n_blocks), n_blocks,
              [&](Index k, int) { f(k * length, std::min(length, n - k * length), k); });
}

inline double dot(const Vector& a, const Vector& b, Team& team)
{
    const auto n = static_cast<Index>(a.size());
    if (n <= NUMBERS_IN_BLOCK) return dot(a, b);
    Vector sums(static_cast<std::size_t>(n / NUMBERS_IN_BLOCK + 1));
    each_block_of(n, NUMBERS_IN_BLOCK, team, [&](Index first, Index length, Index block) {
        sums[block] = dot(a.data() + first, b.data() + first, length);
    });
    double sum = 0.0;
    for (double of_block : sums) sum += of_block;
    return sum;
}

// a += t d
inline void add_scaled(Vector& a, double t, const Vector& d, Team& team)
{
    const auto n = static_cast<Index>(a.size());
    each_block_of(n, NUMBERS_IN_BLOCK, team, [&](Index first, Index length, Index) {
        kernels().add_scaled(a.data() + first, t, d.data() + first, length);
    });
}

// to = a + t d
inline void set_sum(Vector& to, const Vector& a, double t, const Vector& d, Team& team)
{
    const auto n = static_cast<Index>(a.size());
    each_block_of(n, NUMBERS_IN_BLOCK, team, [&](Index first, Index length, Index) {
        std::copy(a.data() + first, a.data() + first + length, to.data() + first);
        kernels().add_scaled(to.data() + first, t, d.data() + first, length);
    });
}

inline double largest_entry(const Vector& a, Team& team)
{
    const auto n = static_cast<Index>(a.size());
    if (n <= NUMBERS_IN_BLOCK) return largest_entry(a.data(), n);
    Vector of_blocks(static_cast<std::size_t>(n / NUMBERS_IN_BLOCK + 1));
    each_block_of(n, NUMBERS_IN_BLOCK, team, [&](Index first, Index length, Index block) {
        of_blocks[block] = largest_entry(a.data() + first, length);
    });
    return largest_entry(of_blocks.data(), static_cast<Index>(of_blocks.size()));
}

}  // namespace geomix
