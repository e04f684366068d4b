// L-BFGS within bounds, low <= x <= high, one iteration per call: the two-metric projection method
// (Bertsekas 1982) with the two-loop recursion as its metric.
//
// A number at a bound that the gradient presses against is held there. The direction is that of
// L-BFGS over the free numbers, from remembered steps without the held ones. A trial is the nearest
// point within the bounds, so each number is within its own to the last bit. The line search ends
// where the value has fallen enough. Ends like solvers/lbfgs.h, with the projected gradient.
#pragma once

#include <algorithm>

#include "solvers/lbfgs.h"

namespace geomix {

struct Bounds {
    Vector low, high;
};

class BoundedLbfgs {
  public:
    using Objective = Lbfgs::Objective;

    BoundedLbfgs(Vector start, Bounds bounds, double gradient_tol, double value_tol)
        : x_(std::move(start)), gradient_(x_.size()), direction_(x_.size()), trial_(x_.size()),
          trial_gradient_(x_.size()), bounds_(std::move(bounds)), gradient_tol_(gradient_tol),
          value_tol_(value_tol)
    {
        for (std::size_t i = 0; i < x_.size(); ++i)
            if (std::isfinite(bounds_.low[i]) || std::isfinite(bounds_.high[i]))
                bounded_.push_back(i);
        into_bounds(x_);
    }

    const Vector& x() const { return x_; }
    double value() const { return value_; }

    Progress step(const Objective& objective, Team& team)
    {
        if (!started_ && !objective(x_, value_, gradient_)) return Progress::interrupted;
        started_ = true;
        if (largest_free_entry(team) <= gradient_tol_) return Progress::optimal;
        set_held();
        set_direction(team);
        Search search = line_search(objective, team);
        if (search.failed && !search.interrupted && n_kept_ > 0) {
            n_kept_ = 0;  // the curvature is out of date: follow the gradient
            set_direction(team);
            search = line_search(objective, team);
        }
        if (search.interrupted) return Progress::interrupted;
        if (search.failed) return Progress::stuck;
        return accept(search.value, team);
    }

  private:
    struct Memory {
        Vector s, y;
        double sy, yy;
    };
    struct Search {
        bool failed, interrupted;
        double value;
    };
    static constexpr std::size_t kept = 10, ring = kept + 1;  // one more to write to
    static constexpr double decrease = 1e-4;
    static constexpr int most_trials = 20, few_steps = 4;

    double within(std::size_t i, double value) const
    {
        return std::min(std::max(value, bounds_.low[i]), bounds_.high[i]);
    }
    void into_bounds(Vector& at) const
    {
        for (std::size_t i : bounded_) at[i] = within(i, at[i]);
    }

    // How far each number would move along the gradient within its bounds, at most.
    double largest_free_entry(Team& team)
    {
        trial_ = gradient_;
        for (std::size_t i : bounded_) trial_[i] = x_[i] - within(i, x_[i] - gradient_[i]);
        return largest_entry(trial_, team);
    }

    void set_held()
    {
        held_.clear();
        for (std::size_t i : bounded_)
            if ((x_[i] <= bounds_.low[i] && gradient_[i] >= 0.0) ||
                (x_[i] >= bounds_.high[i] && gradient_[i] <= 0.0))
                held_.push_back(i);
    }
    void drop_held(Vector& at) const
    {
        for (std::size_t i : held_) at[i] = 0.0;
    }

    // Step i of those remembered, the oldest first.
    const Memory& memory(std::size_t i) const { return ring_[(next_ + ring - n_kept_ + i) % ring]; }

    void set_direction(Team& team)
    {
        direction_ = gradient_;
        drop_held(direction_);
        double alpha[kept], rho[kept], scale = 0.0;
        for (std::size_t i = n_kept_; i-- > 0;) {
            const Memory& m = memory(i);
            double sy = m.sy, yy = m.yy;
            for (std::size_t k : held_) sy -= m.s[k] * m.y[k], yy -= m.y[k] * m.y[k];
            rho[i] = sy > 2.2e-16 * yy && yy > 0.0 ? 1.0 / sy : 0.0;  // 0: no curvature left
            if (rho[i] == 0.0) continue;
            if (scale == 0.0) scale = sy / yy;
            alpha[i] = rho[i] * dot(m.s, direction_, team);
            add_scaled(direction_, -alpha[i], m.y, team);
            drop_held(direction_);
        }
        if (scale > 0.0)
            for (double& d : direction_) d *= scale;
        for (std::size_t i = 0; i < n_kept_; ++i) {
            if (rho[i] == 0.0) continue;
            const Memory& m = memory(i);
            add_scaled(direction_, alpha[i] - rho[i] * dot(m.y, direction_, team), m.s, team);
            drop_held(direction_);
        }
        for (double& d : direction_) d = -d;
        is_scaled_ = scale > 0.0;
    }

    // Shorter and shorter steps until the value falls by a share of what the slope predicts.
    Search line_search(const Objective& objective, Team& team)
    {
        const double slope = dot(gradient_, direction_, team);
        if (!(slope < 0.0)) return {true, false, value_};
        double t =
            is_scaled_ ? 1.0 : std::min(1.0, 1.0 / std::sqrt(dot(direction_, direction_, team)));
        for (int trial = 0; trial < most_trials; ++trial) {
            set_sum(trial_, x_, t, direction_, team);
            into_bounds(trial_);
            double value = 0.0;
            if (!objective(trial_, value, trial_gradient_)) return {true, true, value_};
            const double predicted = dot(gradient_, trial_, team) - dot(gradient_, x_, team);
            if (predicted < 0.0 && value <= value_ + decrease * predicted)
                return {false, false, value};
            const double rise = value - value_ - t * slope;  // of the parabola through both ends
            const double best = rise > 0.0 ? -slope * t * t / (2.0 * rise) : 0.5 * t;
            t = std::isfinite(best) ? std::clamp(best, 0.1 * t, 0.5 * t) : 0.1 * t;
        }
        return {true, false, value_};
    }

    Progress accept(double value, Team& team)
    {
        Memory& m = ring_[next_];
        m.s = trial_;
        m.y = trial_gradient_;
        add_scaled(m.s, -1.0, x_, team);
        add_scaled(m.y, -1.0, gradient_, team);
        m.sy = dot(m.s, m.y, team);
        m.yy = dot(m.y, m.y, team);
        if (m.sy > 2.2e-16 * m.yy) {
            next_ = (next_ + 1) % ring;
            n_kept_ = std::min(n_kept_ + 1, kept);
        }
        const double before = value_;
        x_.swap(trial_);
        gradient_.swap(trial_gradient_);
        value_ = value;
        const double size = std::max({std::fabs(before), std::fabs(value_), 1.0});
        const bool settled = ++n_steps_ > few_steps && before - value_ <= value_tol_ * size;
        return settled || largest_free_entry(team) <= gradient_tol_ ? Progress::converged
                                                                : Progress::moving;
    }

    Vector x_, gradient_, direction_, trial_, trial_gradient_;
    Bounds bounds_;
    std::vector<std::size_t> bounded_, held_;
    Memory ring_[ring];
    std::size_t next_ = 0, n_kept_ = 0;
    double gradient_tol_, value_tol_, value_ = 0.0;
    int n_steps_ = 0;
    bool started_ = false, is_scaled_ = false;
};

}  // namespace geomix
