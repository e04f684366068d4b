// The parts of a spline lift that is trained: see core/spline_parts.py. What the kernels do with
// them is in rows/spline_tables.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simd/vectors.h"

namespace geomix {

struct SplinePart {
    using Kind = PartOfSpline::Kind;
    static constexpr Kind curve = PartOfSpline::curve, levels = PartOfSpline::levels,
                          pair = PartOfSpline::pair;
    Kind kind;
    Index n_steps, n_bins;
    bool has_missing;
    Vector mean;  // (n_steps,)
    // curve, of each bin but the one for missing cells
    std::vector<std::int32_t> interval;
    Vector fraction;
    // pair, with the cell for missing ones
    Index n_first = 0, n_second = 0;
    bool first_ordered = false, second_ordered = false;
};

// All parts side by side.
class SplineParts {
  public:
    void add(SplinePart part)
    {
        unit_.insert(unit_.end(), static_cast<std::size_t>(part.n_steps), 1.0);
        n_bins_ += part.n_bins;
        parts_.push_back(std::move(part));
    }

    // units : (n_steps,) a factor on each step; one if never set
    void set_units(Vector units) { unit_ = std::move(units); }

    Index n_parts() const { return static_cast<Index>(parts_.size()); }
    Index n_steps() const { return static_cast<Index>(unit_.size()); }
    Index n_bins() const { return n_bins_; }
    Index n_bins(Index part) const { return parts_[part].n_bins; }

    // For the kernels; they point into these parts.
    std::vector<PartOfSpline> views() const
    {
        std::vector<PartOfSpline> views;
        Index step = 0, bin = 0;
        for (const SplinePart& one : parts_) {
            views.push_back({one.kind, step, one.n_steps, bin, one.n_bins, one.has_missing,
                             one.mean.data(), one.interval.data(), one.fraction.data(), one.n_first,
                             one.n_second, one.first_ordered, one.second_ordered});
            step += one.n_steps;
            bin += one.n_bins;
        }
        return views;
    }
    PartsOfSpline view(const std::vector<PartOfSpline>& views) const
    {
        return {views.data(), unit_.data(), n_parts(), n_steps(), n_bins()};
    }

  private:
    std::vector<SplinePart> parts_;
    Index n_bins_ = 0;
    Vector unit_;  // (n_steps,)
};

}  // namespace geomix
