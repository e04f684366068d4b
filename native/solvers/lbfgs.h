// L-BFGS (Nocedal and Wright, algorithms 7.4, 3.5 and 3.6), one iteration per call.
//
// Directions come from the last ten steps; the line search ends on the strong Wolfe conditions, so
// the loss never rises. Ends like SciPy's L-BFGS-B: converged when no entry of
// the gradient exceeds `gradient_tol` or an iteration gains less than `value_tol` relatively.
#pragma once

#include <algorithm>
#include <functional>

#include "solvers/step_memory.h"

namespace geomix {

// moving, converged: a step was made; optimal, stuck: no step from the start lowers the value.
enum class Progress { moving, converged, optimal, stuck, interrupted };

class Lbfgs {
  public:
    // Value at x, gradient into the second argument; false if interrupted.
    using Objective = std::function<bool(const Vector&, double&, Vector&)>;

    Lbfgs(Vector start, double gradient_tol, double value_tol)
        : x_(std::move(start)), gradient_(x_.size()), direction_(x_.size()), trial_(x_.size()),
          trial_gradient_(x_.size()), memory_(x_.size()), gradient_tol_(gradient_tol),
          value_tol_(value_tol)
    {
    }

    const Vector& x() const { return x_; }
    double value() const { return value_; }

    Progress step(const Objective& objective, Team& team)
    {
        if (!started_) {
            if (!objective(x_, value_, gradient_)) return Progress::interrupted;
            started_ = true;
            largest_ = largest_entry(gradient_, team);
        }
        if (largest_ <= gradient_tol_) return Progress::optimal;
        memory_.set_direction(gradient_, direction_, team);
        Search search = line_search(objective, team);
        if (search.failed && !memory_.is_empty()) {  // out of date: follow the gradient
            memory_.forget();
            memory_.set_direction(gradient_, direction_, team);
            search = line_search(objective, team);
        }
        if (search.interrupted) return Progress::interrupted;
        if (search.failed) return Progress::stuck;
        return accept(search, team);
    }

  private:
    struct Point {
        double t, value, slope;
    };
    struct Search {
        bool failed, interrupted;
        double value;
    };
    static constexpr double decrease = 1e-3, curvature = 0.9;
    static constexpr int most_trials = 20, few_steps = 4;

    // Value and slope at x + t d, leaving point and gradient in the trial arrays.
    bool look(const Objective& objective, double t, Point& point, Team& team)
    {
        set_sum(trial_, x_, t, direction_, team);
        if (!objective(trial_, point.value, trial_gradient_)) return false;
        point.t = t;
        point.slope = dot(trial_gradient_, direction_, team);
        return true;
    }

    // Bracket a strong Wolfe point, then zoom in on it by safeguarded cubic steps.
    Search line_search(const Objective& objective, Team& team)
    {
        const double slope = dot(gradient_, direction_, team);
        if (!(slope < 0.0)) return {true, false, value_};
        const double first = memory_.is_empty()
                                 ? std::min(1.0, 1.0 / std::sqrt(dot(direction_, direction_, team)))
                                 : 1.0;
        Point low{0.0, value_, slope}, high{0.0, 0.0, 0.0}, now{};
        bool bracketed = false;
        double t = first;
        for (int trial = 0; trial < most_trials; ++trial) {
            if (!look(objective, t, now, team)) return {true, true, value_};
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
        if (low.t > 0.0 && look(objective, low.t, now, team)) return {false, false, now.value};
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

    Progress accept(const Search& search, Team& team)
    {
        memory_.add(x_, trial_, gradient_, trial_gradient_, team);
        const double before = value_;
        x_.swap(trial_);
        gradient_.swap(trial_gradient_);
        value_ = search.value;
        const double size = std::max({std::fabs(before), std::fabs(value_), 1.0});
        // The first steps have no curvature yet, and may gain little far from the minimum.
        const bool settled = ++n_steps_ > few_steps && before - value_ <= value_tol_ * size;
        largest_ = largest_entry(gradient_, team);
        return settled || largest_ <= gradient_tol_ ? Progress::converged : Progress::moving;
    }

    Vector x_, gradient_, direction_, trial_, trial_gradient_;
    StepMemory memory_;
    double gradient_tol_, value_tol_, value_ = 0.0, largest_ = 0.0;
    int n_steps_ = 0;
    bool started_ = false;
};

}  // namespace geomix
