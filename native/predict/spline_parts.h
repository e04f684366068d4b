// The parts of a spline lift, and the value of a plane in each bin: see core/spline_parts.py.
//
//   curve   table[b] = sum of the steps below the bin's interval + fraction * the interval's step
//   levels  table[b] = step b
//   pair    table[a, b] = sum of the steps up to a (or step a alone) and up to b (or b alone)
//
// minus sum_k mean_k w_k, except in bins of missing cells and of levels that were never seen.
// Gradients over bins become gradients over steps by the transposed matrix.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "simd/aligned.h"
#include "simd/vectors.h"

namespace geomix {

constexpr Index TILE = PLANES_IN_TILE;

// A number for each plane of a tile: float in tables, double while they are added up.
struct Bin {
    float at[TILE];
};
struct Lanes {
    double at[TILE] = {};

    Lanes() = default;
    explicit Lanes(const Bin& bin) { std::copy(bin.at, bin.at + TILE, at); }
    Bin rounded() const
    {
        Bin bin;
        for (Index i = 0; i < TILE; ++i) bin.at[i] = static_cast<float>(at[i]);
        return bin;
    }

    Lanes& operator+=(const Lanes& other)
    {
        for (Index i = 0; i < TILE; ++i) at[i] += other.at[i];
        return *this;
    }
    Lanes& operator-=(const Lanes& other)
    {
        for (Index i = 0; i < TILE; ++i) at[i] -= other.at[i];
        return *this;
    }
    friend Lanes operator*(double factor, Lanes lanes)
    {
        for (double& number : lanes.at) number *= factor;
        return lanes;
    }
    friend Lanes operator+(Lanes a, const Lanes& b) { return a += b; }
    friend Lanes operator-(Lanes a, const Lanes& b) { return a -= b; }
};
static_assert(sizeof(Bin) == TILE * sizeof(float), "bins lie side by side");

// Along one side of a pair: values become sums up to each, or back again by sums from each on.
inline void sum_up(Lanes* first, Index n, Index step)
{
    for (Index i = 1; i < n; ++i) first[i * step] += first[(i - 1) * step];
}
inline void sum_down(Lanes* first, Index n, Index step)
{
    for (Index i = n - 1; i-- > 0;) first[i * step] += first[(i + 1) * step];
}

struct SplinePart {
    enum Kind { curve, levels, pair };
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

    // steps : (n_steps,)  ->  bins : (n_bins,);  room for n_steps more
    void expand(const Lanes* steps, Bin* bins, Lanes* room) const
    {
        Lanes centre;
        for (Index k = 0; k < n_steps; ++k) centre += mean[k] * steps[k];
        if (kind == curve) expand_curve(steps, centre, bins, room);
        if (kind == levels)
            for (Index b = 0; b < n_bins; ++b)
                bins[b] = (b < n_steps ? steps[b] - centre : Lanes()).rounded();
        if (kind == pair) expand_pair(steps, centre, bins, room);
    }

    // bins  ->  steps, by the transposed matrix
    void collect(const Bin* bins, Lanes* steps, Lanes* room) const
    {
        Lanes total;
        if (kind == curve) total = collect_curve(bins, steps, room);
        if (kind == levels)
            for (Index b = 0; b < n_steps; ++b) total += steps[b] = Lanes(bins[b]);
        if (kind == pair) total = collect_pair(bins, steps);
        for (Index k = 0; k < n_steps; ++k) steps[k] -= mean[k] * total;
        if (kind == curve && has_missing) steps[n_steps - 1] += Lanes(bins[n_bins - 1]);
    }

  private:
    Index n_intervals() const { return n_steps - has_missing; }

    void expand_curve(const Lanes* steps, const Lanes& centre, Bin* bins, Lanes* room) const
    {
        room[0] = Lanes();  // the curve at the left end of each interval
        for (Index k = 1; k < n_intervals(); ++k) room[k] = room[k - 1] + steps[k - 1];
        for (Index b = 0; b < n_bins - 1; ++b)
            bins[b] = (room[interval[b]] + fraction[b] * steps[interval[b]] - centre).rounded();
        bins[n_bins - 1] = (has_missing ? steps[n_steps - 1] : Lanes()).rounded();
    }

    Lanes collect_curve(const Bin* bins, Lanes* steps, Lanes* room) const
    {
        std::fill(room, room + n_intervals(), Lanes());  // what lies in each interval
        std::fill(steps, steps + n_steps, Lanes());
        for (Index b = 0; b < n_bins - 1; ++b) {
            const Lanes bin(bins[b]);
            room[interval[b]] += bin;
            steps[interval[b]] += fraction[b] * bin;
        }
        Lanes beyond;
        for (Index k = n_intervals(); k-- > 0;) {
            steps[k] += beyond;
            beyond += room[k];
        }
        return beyond;
    }

    void expand_pair(const Lanes* steps, const Lanes& centre, Bin* bins, Lanes* room) const
    {
        const Index rows = n_first - 1, columns = n_second - 1;
        std::copy(steps, steps + n_steps, room);
        if (first_ordered)
            for (Index b = 0; b < columns; ++b) sum_up(room + b, rows, columns);
        if (second_ordered)
            for (Index a = 0; a < rows; ++a) sum_up(room + a * columns, columns, 1);
        std::fill(bins, bins + n_bins, Bin());
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                bins[a * n_second + b] = (room[a * columns + b] - centre).rounded();
    }

    Lanes collect_pair(const Bin* bins, Lanes* steps) const
    {
        const Index rows = n_first - 1, columns = n_second - 1;
        Lanes total;
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                total += steps[a * columns + b] = Lanes(bins[a * n_second + b]);
        if (first_ordered)
            for (Index b = 0; b < columns; ++b) sum_down(steps + b, rows, columns);
        if (second_ordered)
            for (Index a = 0; a < rows; ++a) sum_down(steps + a * columns, columns, 1);
        return total;
    }
};

// All parts side by side.
class SplineParts {
  public:
    void add(SplinePart part)
    {
        unit_.insert(unit_.end(), static_cast<std::size_t>(part.n_steps), 1.0);
        first_step_.push_back(first_step_.back() + part.n_steps);
        first_bin_.push_back(first_bin_.back() + part.n_bins);
        parts_.push_back(std::move(part));
    }

    // units : (n_steps,) a factor on each step; one if never set
    void set_units(Vector units) { unit_ = std::move(units); }

    Index n_parts() const { return static_cast<Index>(parts_.size()); }
    Index n_steps() const { return first_step_.back(); }
    Index n_bins() const { return first_bin_.back(); }
    Index n_bins(Index part) const { return parts_[part].n_bins; }
    const Index* first_bin() const { return first_bin_.data(); }

    // weights : (n_planes, n_steps)  ->  tables : [tile][bin][plane of the tile]
    void expand(const float* weights, Index n_planes, Aligned<float>& tables) const
    {
        tables.resize(static_cast<std::size_t>(padded(n_planes, TILE) * n_bins()));
        std::vector<Lanes> steps(n_steps()), room(n_steps());
        for (Index first = 0; first < n_planes; first += TILE) {
            const Index used = std::min(TILE, n_planes - first);
            std::fill(steps.begin(), steps.end(), Lanes());
            for (Index p = 0; p < used; ++p)
                for (Index k = 0; k < n_steps(); ++k)
                    steps[k].at[p] = unit_[k] * weights[(first + p) * n_steps() + k];
            auto* bins = reinterpret_cast<Bin*>(tables.data() + first * n_bins());
            for (Index j = 0; j < n_parts(); ++j)
                parts_[j].expand(steps.data() + first_step_[j], bins + first_bin_[j], room.data());
        }
    }

    // tables  ->  weights, by the transposed matrix;  room for 2 n_steps
    void collect(const Aligned<float>& tables, Index n_planes, double* weights, Lanes* room) const
    {
        Lanes* steps = room + n_steps();
        for (Index first = 0; first < n_planes; first += TILE) {
            const auto* bins = reinterpret_cast<const Bin*>(tables.data() + first * n_bins());
            for (Index j = 0; j < n_parts(); ++j)
                parts_[j].collect(bins + first_bin_[j], steps + first_step_[j], room);
            for (Index p = 0; p < std::min(TILE, n_planes - first); ++p)
                for (Index k = 0; k < n_steps(); ++k)
                    weights[(first + p) * n_steps() + k] = unit_[k] * steps[k].at[p];
        }
    }

  private:
    std::vector<SplinePart> parts_;
    std::vector<Index> first_step_ = {0}, first_bin_ = {0};
    Vector unit_;  // (n_steps,)
};

}  // namespace geomix
