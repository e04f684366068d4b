// L-BFGS (Nocedal and Wright, algorithms 7.4, 3.5 and 3.6), one iteration per call.
//
// Two-loop recursion over the last ten steps; the line search ends on the strong Wolfe
// conditions, so the loss never rises. Ends like SciPy's L-BFGS-B: converged when no entry of
// the gradient exceeds `gradient_tol` or an iteration gains less than `value_tol` relatively.
#pragma once

#include <algorithm>
#include <functional>

#include "simd/vectors.h"

namespace geomix {

// moving, converged: a step was made; optimal, stuck: no step from the start lowers the value.
enum class Progress { moving, converged, optimal, stuck, interrupted };

class Lbfgs {
  public:
    // Value at x, gradient into the second argument; false if interrupted.
    using Objective = std::function<bool(const Vector&, double&, Vector&)>;

    Lbfgs(Vector start, double gradient_tol, double value_tol)
        : x_(std::move(start)), gradient_(x_.size()), direction_(x_.size()), trial_(x_.size()),
          trial_gradient_(x_.size()), gradient_tol_(gradient_tol), value_tol_(value_tol)
    {
    }

    const Vector& x() const { return x_; }
    double value() const { return value_; }

    Progress step(const Objective& objective)
    {
        if (!started_) {
            if (!objective(x_, value_, gradient_)) return Progress::interrupted;
            started_ = true;
            largest_ = largest_entry(gradient_);
        }
        if (largest_ <= gradient_tol_) return Progress::optimal;
        set_direction();
        Search search = line_search(objective);
        if (search.failed &&
            n_kept_ > 0) {  // the curvature is out of date: drop it, follow the gradient
            n_kept_ = 0;
            set_direction();
            search = line_search(objective);
        }
        if (search.interrupted) return Progress::interrupted;
        if (search.failed) return Progress::stuck;
        return accept(search);
    }

  private:
    struct Memory {
        Vector s, y;
        double rho, yy;
    };
    struct Point {
        double t, value, slope;
    };
    struct Search {
        bool failed, interrupted;
        double value;
    };
    static constexpr std::size_t kept = 10, ring = kept + 1;  // one more to write to
    static constexpr double decrease = 1e-3, curvature = 0.9;
    static constexpr int most_trials = 20, few_steps = 4;

    // Step i of those remembered, the oldest first.
    const Memory& memory(std::size_t i) const { return ring_[(next_ + ring - n_kept_ + i) % ring]; }

    void set_direction()
    {
        direction_ = gradient_;
        double alpha[kept];
        for (std::size_t i = n_kept_; i-- > 0;) {
            const Memory& m = memory(i);
            alpha[i] = m.rho * dot(m.s, direction_);
            add_scaled(direction_, -alpha[i], m.y);
        }
        if (n_kept_ > 0) {
            const Memory& last = memory(n_kept_ - 1);
            const double scale = 1.0 / (last.rho * last.yy);
            for (double& d : direction_) d *= scale;
        }
        for (std::size_t i = 0; i < n_kept_; ++i) {
            const Memory& m = memory(i);
            add_scaled(direction_, alpha[i] - m.rho * dot(m.y, direction_), m.s);
        }
        for (double& d : direction_) d = -d;
    }

    // Value and slope at x + t d, leaving point and gradient in the trial arrays.
    bool look(const Objective& objective, double t, Point& point)
    {
        trial_ = x_;
        add_scaled(trial_, t, direction_);
        if (!objective(trial_, point.value, trial_gradient_)) return false;
        point.t = t;
        point.slope = dot(trial_gradient_, direction_);
        return true;
    }

    // Bracket a strong Wolfe point, then zoom in on it by safeguarded cubic steps.
    Search line_search(const Objective& objective)
    {
        const double slope = dot(gradient_, direction_);
        if (!(slope < 0.0)) return {true, false, value_};
        const double first =
            n_kept_ == 0 ? std::min(1.0, 1.0 / std::sqrt(dot(direction_, direction_))) : 1.0;
        Point low{0.0, value_, slope}, high{0.0, 0.0, 0.0}, now{};
        bool bracketed = false;
        double t = first;
        for (int trial = 0; trial < most_trials; ++trial) {
            if (!look(objective, t, now)) return {true, true, value_};
            const bool too_high = !(now.value <= value_ + decrease * t * slope) ||
                                  (low.t > 0.0 && now.value >= low.value);
            if (!too_high && std::fabs(now.slope) <= -curvature * slope)
                return {false, false, now.value};
            if (too_high) {
                high = now, bracketed = true;
            } else {
                if (now.slope * ((bracketed ? high.t : now.t + 1.0) - low.t) >= 0.0)
                    high = low, bracketed = true;
                low = now;
            }
            t = bracketed ? between(low, high) : 4.0 * t;
        }
        if (low.t > 0.0 && look(objective, low.t, now)) return {false, false, now.value};
        return {true, false, value_};
    }

    // Minimiser of the cubic through two points and slopes, kept off the ends.
    static double between(const Point& a, const Point& b)
    {
        const double width = b.t - a.t;
        const double d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t);
        const double under = d1 * d1 - a.slope * b.slope;
        double t = a.t + 0.5 * width;
        if (std::isfinite(b.value) && std::isfinite(b.slope) && under >= 0.0) {
            const double d2 = std::copysign(std::sqrt(under), width);
            const double cubic = b.t - width * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
            if (std::isfinite(cubic)) t = cubic;
        }
        const double edge = 0.1 * width;
        return std::clamp(t, std::min(a.t + edge, b.t - edge), std::max(a.t + edge, b.t - edge));
    }

    Progress accept(const Search& search)
    {
        Memory& m = ring_[next_];  // the arrays of a step that was forgotten, or none yet
        m.s = trial_;
        m.y = trial_gradient_;
        add_scaled(m.s, -1.0, x_);
        add_scaled(m.y, -1.0, gradient_);
        const double sy = dot(m.s, m.y);
        m.yy = dot(m.y, m.y);
        if (sy > 2.2e-16 * m.yy) {
            m.rho = 1.0 / sy;
            next_ = (next_ + 1) % ring;
            n_kept_ = std::min(n_kept_ + 1, kept);
        }
        const double before = value_;
        x_.swap(trial_);
        gradient_.swap(trial_gradient_);
        value_ = search.value;
        const double size = std::max({std::fabs(before), std::fabs(value_), 1.0});
        // The first steps have no curvature yet, and may gain little far from the minimum.
        const bool settled = ++n_steps_ > few_steps && before - value_ <= value_tol_ * size;
        largest_ = largest_entry(gradient_);
        return settled || largest_ <= gradient_tol_ ? Progress::converged : Progress::moving;
    }

    Vector x_, gradient_, direction_, trial_, trial_gradient_;
    Memory ring_[ring];
    std::size_t next_ = 0, n_kept_ = 0;
    double gradient_tol_, value_tol_, value_ = 0.0, largest_ = 0.0;
    int n_steps_ = 0;
    bool started_ = false;
};

}  // namespace geomix
