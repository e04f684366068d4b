// A spline lift as prediction needs it, and the tables of planes over it: see core/spline.py.
//
//   curve   [interval][value at its left knot, step to its right one], then the value of a missing cell
//   levels  [level], then a missing cell and a level never seen
//   pair    [cell of the first column][cell of the second]
//
// each for all planes side by side, minus sum_k mean_k w_k, except in cells whose phi is 0.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "simd/aligned.h"
#include "simd/vectors.h"

namespace geomix {

struct LiftSide {
    Index column;
    Vector edges;    // of a number: inner knots of a curve, thresholds of a pair
    Index n_levels;  // of a category; -1: a number
    Index n_cells;   // of a pair, with that for missing ones
};

struct LiftPart {
    enum Kind { curve, levels, pair };
    Kind kind;
    std::vector<LiftSide> sides;
    Vector knots;  // of a curve
    bool has_missing;
    Vector mean;

    Index n_intervals() const { return static_cast<Index>(knots.size()) - 1; }
    // Numbers of the table for each plane.
    Index n_values() const
    {
        if (kind == curve) return 2 * (n_intervals() + 1);
        return kind == levels ? sides[0].n_levels + 2 : sides[0].n_cells * sides[1].n_cells;
    }
};

class SplineLift {
  public:
    void add(LiftPart part) { parts_.push_back(std::move(part)); }
    const std::vector<LiftPart>& parts() const { return parts_; }
    Index n_columns() const
    {
        Index n = 0;
        for (const LiftPart& part : parts_)
            for (const LiftSide& side : part.sides) n = std::max(n, side.column + 1);
        return n;
    }
    Index n_steps() const
    {
        Index n = 0;
        for (const LiftPart& part : parts_) n += static_cast<Index>(part.mean.size());
        return n;
    }

  private:
    std::vector<LiftPart> parts_;
};

// Everything behind a `ModelSpline`. weights : (n_planes, n_steps).
class OwnedSpline {
  public:
    OwnedSpline(const SplineLift& lift, const Vector& weights, const Vector& biases)
        : width_(padded(static_cast<Index>(biases.size()), DOUBLES)), n_steps_(lift.n_steps())
    {
        const auto n_planes = static_cast<Index>(biases.size());
        constants_.assign(static_cast<std::size_t>(width_), 0.0);
        std::copy(biases.begin(), biases.end(), constants_.begin());
        const auto& parts = lift.parts();
        Index n_values = 0;
        for (const LiftPart& part : parts) n_values += part.n_values();
        numbers_.assign(static_cast<std::size_t>(n_values * width_), 0.0);
        Index first = 0, step = 0;
        for (const LiftPart& part : parts) {
            for (Index p = 0; p < n_planes; ++p) {
                fill(part, weights.data() + p * n_steps_ + step, numbers_.data() + first + p);
            }
            part.kind == LiftPart::curve ? add_curve(part, first) : add_cells(part, first);
            first += part.n_values() * width_;
            step += static_cast<Index>(part.mean.size());
        }
        view_ = {curves_.data(),
                 cells_.data(),
                 numbers_.data(),
                 constants_.data(),
                 static_cast<Index>(curves_.size()),
                 static_cast<Index>(cells_.size()),
                 width_};
    }
    OwnedSpline(const OwnedSpline&) = delete;

    const ModelSpline* view() const { return &view_; }

  private:
    // The table of one plane with the steps w, its numbers `width_` apart.
    void fill(const LiftPart& part, const double* w, double* to) const
    {
        double centre = 0.0;
        const auto n_steps = static_cast<Index>(part.mean.size());
        for (Index k = 0; k < n_steps; ++k) centre += part.mean[k] * w[k];
        if (part.kind == LiftPart::curve) {
            const Index n = part.n_intervals();
            double sum = 0.0;
            for (Index k = 0; k < n; ++k) {
                to[2 * k * width_] = sum - centre;
                to[(2 * k + 1) * width_] = w[k];
                sum += w[k];
            }
            if (part.has_missing) to[2 * n * width_] = w[n];
        } else if (part.kind == LiftPart::levels) {
            for (Index k = 0; k < n_steps; ++k) to[k * width_] = w[k] - centre;
        } else {
            fill_pair(part, w, centre, to);
        }
    }

    void fill_pair(const LiftPart& part, const double* w, double centre, double* to) const
    {
        const LiftSide &first = part.sides[0], &second = part.sides[1];
        const Index rows = first.n_cells - 1, columns = second.n_cells - 1;
        Vector grid(w, w + rows * columns);
        if (first.n_levels < 0)
            for (Index i = columns; i < rows * columns; ++i) grid[i] += grid[i - columns];
        if (second.n_levels < 0)
            for (Index i = 0; i < rows * columns; ++i)
                if (i % columns) grid[i] += grid[i - 1];
        for (Index a = 0; a < rows; ++a)
            for (Index b = 0; b < columns; ++b)
                to[(a * second.n_cells + b) * width_] = grid[a * columns + b] - centre;
    }

    void add_curve(const LiftPart& part, Index first)
    {
        const Vector& knots = part.knots;
        std::vector<CurveSpan> spans;
        for (Index k = 0; k < part.n_intervals(); ++k) {
            // Knots may lie further apart than the largest number.
            const double unit = std::isinf(knots[k + 1] - knots[k]) ? 0.25 : 1.0;
            const double left = knots[k] * unit;
            spans.push_back({left, knots[k + 1] * unit - left, unit});
        }
        spans_.push_back(std::move(spans));
        const LiftSide& side = part.sides[0];
        curves_.push_back({side.column, searched(side.edges), half(side.edges),
                           spans_.back().data(), part.n_intervals(), first, knots.front(),
                           knots.back()});
    }

    void add_cells(const LiftPart& part, Index first)
    {
        ModelCells cells{};
        cells.n_sides = static_cast<Index>(part.sides.size());
        cells.first = first;
        cells.factor = cells.n_sides == 2 ? part.sides[1].n_cells : 1;
        for (Index i = 0; i < cells.n_sides; ++i) {
            const LiftSide& side = part.sides[i];
            const bool alone = cells.n_sides == 1;
            const Index missing = alone ? side.n_levels : side.n_cells - 1;
            cells.sides[i] = {side.column, searched(side.edges), half(side.edges), side.n_levels,
                              missing,     missing + alone};
        }
        cells_.push_back(cells);
    }

    static Index room_for(const Vector& edges)
    {
        Index room = 1;
        while (room - 1 < static_cast<Index>(edges.size())) room *= 2;
        return room;
    }
    static Index half(const Vector& edges) { return room_for(edges) / 2; }

    // Filled up with NaN to one less than a power of two.
    const double* searched(Vector edges)
    {
        edges.resize(static_cast<std::size_t>(room_for(edges) - 1),
                     std::numeric_limits<double>::quiet_NaN());
        edges_.push_back(std::move(edges));
        return edges_.back().data();
    }

    Index width_, n_steps_;
    Aligned<double> numbers_, constants_;
    std::vector<Vector> edges_;
    std::vector<std::vector<CurveSpan>> spans_;
    std::vector<ModelCurve> curves_;
    std::vector<ModelCells> cells_;
    ModelSpline view_;
};

}  // namespace geomix
