// L-BFGS (Nocedal and Wright, algorithms 7.4, 3.5 and 3.6), one iteration per call.
//
// Two-loop recursion over the last ten steps; the line search ends on the strong Wolfe
// conditions, so the loss never rises. Ends like SciPy's L-BFGS-B: converged when no entry of
// the gradient exceeds `gradient_tol` or an iteration gains less than `value_tol` relatively.
#pragma once

#include <algorithm>
#include <deque>
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
        if (!started_ && !objective(x_, value_, gradient_)) return Progress::interrupted;
        started_ = true;
        if (largest_entry(gradient_) <= gradient_tol_) return Progress::optimal;
        set_direction();
        Search search = line_search(objective);
        if (search.failed &&
            !memory_.empty()) {  // the curvature is out of date: drop it, follow the gradient
            memory_.clear();
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
        double rho;
    };
    struct Point {
        double t, value, slope;
    };
    struct Search {
        bool failed, interrupted;
        double value;
    };
    static constexpr std::size_t kept = 10;
    static constexpr double decrease = 1e-3, curvature = 0.9;
    static constexpr int most_trials = 20, few_steps = 4;

    void set_direction()
    {
        direction_ = gradient_;
        double alpha[kept];
        for (std::size_t i = memory_.size(); i-- > 0;) {
            const Memory& m = memory_[i];
            alpha[i] = m.rho * dot(m.s, direction_);
            add_scaled(direction_, -alpha[i], m.y);
        }
        if (!memory_.empty()) {
            const Memory& last = memory_.back();
            const double scale = 1.0 / (last.rho * dot(last.y, last.y));
            for (double& d : direction_) d *= scale;
        }
        for (std::size_t i = 0; i < memory_.size(); ++i) {
            const Memory& m = memory_[i];
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
            memory_.empty() ? std::min(1.0, 1.0 / std::sqrt(dot(direction_, direction_))) : 1.0;
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
        Memory m{trial_, trial_gradient_, 0.0};
        add_scaled(m.s, -1.0, x_);
        add_scaled(m.y, -1.0, gradient_);
        const double sy = dot(m.s, m.y);
        if (sy > 2.2e-16 * dot(m.y, m.y)) {
            m.rho = 1.0 / sy;
            if (memory_.size() == kept) memory_.pop_front();
            memory_.push_back(std::move(m));
        }
        const double before = value_;
        x_.swap(trial_);
        gradient_.swap(trial_gradient_);
        value_ = search.value;
        const double size = std::max({std::fabs(before), std::fabs(value_), 1.0});
        // The first steps have no curvature yet, and may gain little far from the minimum.
        const bool settled = ++n_steps_ > few_steps && before - value_ <= value_tol_ * size;
        return settled || largest_entry(gradient_) <= gradient_tol_ ? Progress::converged
                                                                    : Progress::moving;
    }

    Vector x_, gradient_, direction_, trial_, trial_gradient_;
    std::deque<Memory> memory_;
    double gradient_tol_, value_tol_, value_ = 0.0;
    int n_steps_ = 0;
    bool started_ = false;
};

}  // namespace geomix
