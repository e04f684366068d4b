// Codes of a spline lift from Python, checked.
#pragma once

#include "bind/arrays.h"
#include "rows/binned_rows.h"

namespace geomix {

// uint8 or uint16, any strides
using AnyCodes = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;

constexpr Index MOST_BINS_OF_PART = Index(1) << 16;

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
