// The parts of a spline lift as Python describes them, checked.
#pragma once

#include "bind_arrays.h"
#include "binned_rows.h"

namespace geomix {

// nb::c_contig also for empty arrays; codes may have any strides.
using AnyCodes = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

constexpr Index MOST_BINS_OF_PART = Index(1) << 16;

inline Vector vector_of(const In1<double>& numbers)
{
    return Vector(numbers.data(), numbers.data() + numbers.size());
}

// interval, fraction : of the representative of each bin.
inline void add_curve(SplineParts& parts, In1<Index> interval, In1<double> fraction,
                      bool has_missing, In1<double> mean)
{
    const Index n_intervals = length(mean) - has_missing;
    need(n_intervals >= 1, "A curve needs a step.");
    need(length(interval) == length(fraction), "interval and fraction differ in length.");
    need(length(interval) < MOST_BINS_OF_PART, "A curve has too many bins.");
    SplinePart part{SplinePart::curve, length(mean), length(interval) + 1, has_missing,
                    vector_of(mean), {}, vector_of(fraction)};
    for (Index b = 0; b < length(interval); ++b) {
        const Index k = interval.data()[b];
        need(k >= 0 && k < n_intervals, "interval holds a number that is no step.");
        part.interval.push_back(static_cast<std::int32_t>(k));
    }
    parts.add(std::move(part));
}

inline void add_levels(SplineParts& parts, Index n_levels, bool has_missing, In1<double> mean)
{
    need(n_levels >= 0 && n_levels + 2 <= MOST_BINS_OF_PART, "n_levels is out of range.");
    need(length(mean) == n_levels + has_missing, "mean needs a number for each step.");
    parts.add({SplinePart::levels, length(mean), n_levels + 2, has_missing, vector_of(mean), {}, {}});
}

inline void add_pair(SplineParts& parts, Index n_first, Index n_second, bool first_ordered,
                     bool second_ordered, In1<double> mean)
{
    need(n_first >= 1 && n_first <= MOST_BINS_OF_PART && n_second >= 1 &&
             n_second <= MOST_BINS_OF_PART && n_first * n_second <= MOST_BINS_OF_PART,
         "The cells of a pair are out of range.");
    need(length(mean) == (n_first - 1) * (n_second - 1), "mean needs a number for each step.");
    parts.add({SplinePart::pair, length(mean), n_first * n_second, true, vector_of(mean), {}, {},
               n_first, n_second, first_ordered, second_ordered});
}

template <class Code>
Strided<Code> checked_codes(const AnyCodes& codes, const SplineParts& parts)
{
    const Strided<Code> from{static_cast<const Code*>(codes.data()), codes.stride(0),
                             codes.stride(1)};
    std::vector<Code> largest(static_cast<std::size_t>(parts.n_parts()));
    for (Index i = 0; i < length(codes); ++i)
        for (Index j = 0; j < parts.n_parts(); ++j)
            largest[j] = std::max(largest[j], from.data[i * from.row_step + j * from.column_step]);
    for (Index j = 0; j < parts.n_parts() && length(codes); ++j)
        need(largest[j] < parts.n_bins(j), "codes holds a number that is no bin of its part.");
    return from;
}

}  // namespace geomix
