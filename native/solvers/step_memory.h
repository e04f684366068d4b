// The last ten steps s of L-BFGS with the changes y of the gradient, and the direction they give.
//
//   q = g - sum_i alpha_i y_i,    alpha_i = (s_i . g - sum_{j newer} alpha_j s_i . y_j) / s_i . y_i
//   H g = gamma q + sum_i c_i s_i,  gamma = s . y / y . y of the newest,
//   c_i = alpha_i - (gamma y_i . q + sum_{j older} c_j s_j . y_i) / s_i . y_i
//
// This is the two-loop recursion over inner products: one sweep over the steps for their products
// with g, and one that adds them up. The recursion over vectors needs four. Long steps are held in
// float32, because sweeps over them wait for memory.
#pragma once

#include "simd/team_vectors.h"

namespace geomix {

// A vector in float64, or in float32 where it is long: see NARROW_FROM in core/step_memory.py.
class StepVector {
  public:
    void resize(std::size_t n)
    {
        is_narrow_ = n >= narrow_from;
        is_narrow_ ? narrow_.resize(n) : wide_.resize(n);
    }
    // The n numbers from `first` on.
    void set(Index first, Index n, const double* from)
    {
        if (is_narrow_)
            std::copy(from, from + n, narrow_.data() + first);
        else
            std::copy(from, from + n, wide_.data() + first);
    }
    // Of the n numbers from `first` on, with those at a (and b).
    double dot(Index first, const double* a, Index n) const
    {
        return is_narrow_ ? kernels().narrow_dot(narrow_.data() + first, a, n)
                          : kernels().dot(wide_.data() + first, a, n);
    }
    void dots(Index first, const double* a, const double* b, Index n, double* out) const
    {
        if (is_narrow_) return kernels().narrow_dots(narrow_.data() + first, a, b, n, out);
        out[0] = dot(first, a, n);
        out[1] = dot(first, b, n);
    }
    void add_to(double* a, double t, Index first, Index n) const
    {
        if (is_narrow_) return kernels().add_narrow(a, t, narrow_.data() + first, n);
        kernels().add_scaled(a, t, wide_.data() + first, n);
    }

  private:
    static constexpr std::size_t narrow_from = 4096;  // ten steps of them fill a second-level cache
    bool is_narrow_ = false;
    Aligned<float> narrow_;
    Vector wide_;
};

class StepMemory {
  public:
    explicit StepMemory(std::size_t n) : last_s_(n), last_y_(n) {}

    bool is_empty() const { return n_kept_ == 0; }
    void forget() { n_kept_ = 0; }

    // The step `from` -> `to`, unless the gradient did not rise along it.
    void add(const Vector& from, const Vector& to, const Vector& gradient_from,
             const Vector& gradient_to, Team& team)
    {
        each_block(from.size(), team, [&](Index first, Index n, Index) {
            for (Index i = first; i < first + n; ++i) {
                last_s_[i] = to[i] - from[i];
                last_y_[i] = gradient_to[i] - gradient_from[i];
            }
        });
        const double sy = dot(last_s_, last_y_, team), yy = dot(last_y_, last_y_, team);
        is_new_ = sy > 2.2e-16 * yy;
        if (!is_new_) return;
        newest_ = n_kept_ == 0 ? 0 : (newest_ + 1) % kept;
        n_kept_ = std::min(n_kept_ + 1, kept);
        Step& step = steps_[newest_];
        step.s.resize(from.size());
        step.y.resize(from.size());
        each_block(from.size(), team, [&](Index first, Index n, Index) {
            step.s.set(first, n, last_s_.data() + first);
            step.y.set(first, n, last_y_.data() + first);
        });
        sy_[newest_][newest_] = sy;
        yy_[newest_][newest_] = yy;
    }

    // -H g, or -g without steps. To be called for the gradient at either end of an added step.
    void set_direction(const Vector& gradient, Vector& direction, Team& team)
    {
        take_products(gradient, team);
        double gamma = 1.0;
        if (n_kept_ > 0) gamma = set_coefficients();
        each_block(gradient.size(), team, [&](Index first, Index n, Index) {
            double* to = direction.data() + first;
            for (Index i = 0; i < n; ++i) to[i] = -gamma * gradient[first + i];
            for (std::size_t k = 0; k < n_kept_; ++k) {
                const Step& step = steps_[slot(k)];
                step.y.add_to(to, of_y_[slot(k)], first, n);
                step.s.add_to(to, of_s_[slot(k)], first, n);
            }
        });
    }

  private:
    struct Step {
        StepVector s, y;
    };
    static constexpr std::size_t kept = 10;
    static constexpr Index numbers_in_block = Index(1) << 11;  // half of a first-level cache

    // Where step k of those remembered is, the oldest first.
    std::size_t slot(std::size_t k) const { return (newest_ + 1 + kept - n_kept_ + k) % kept; }

    template <class F>
    static void each_block(std::size_t size, Team& team, const F& f)
    {
        each_block_of(static_cast<Index>(size), numbers_in_block, team, f);
    }

    // s . g and y . g of each step; of the newest also its products with the others.
    void take_products(const Vector& gradient, Team& team)
    {
        if (n_kept_ == 0) return;
        constexpr std::size_t width = 3 * kept;
        const std::size_t n_blocks = gradient.size() / numbers_in_block + 1;
        sums_.assign(n_blocks * width, 0.0);
        each_block(gradient.size(), team, [&](Index first, Index n, Index block) {
            double* to = sums_.data() + block * width;
            const double* g = gradient.data() + first;
            for (std::size_t k = 0; k < n_kept_; ++k) {
                const std::size_t j = slot(k);
                steps_[j].y.dots(first, g, last_s_.data() + first, n, to + 3 * j);
                to[3 * j + 2] = steps_[j].s.dot(first, g, n);
            }
        });
        for (std::size_t block = 1; block < n_blocks; ++block)
            for (std::size_t i = 0; i < width; ++i) sums_[i] += sums_[block * width + i];
        for (std::size_t k = 0; k < n_kept_; ++k) take_products_of(slot(k));
        is_new_ = false;
    }

    void take_products_of(std::size_t j)
    {
        const double yg = sums_[3 * j], ys = sums_[3 * j + 1], sg = sums_[3 * j + 2];
        if (is_new_ && j != newest_) {  // the newest y is the change of g
            sy_[j][newest_] = sg - sg_[j];
            yy_[j][newest_] = yy_[newest_][j] = yg - yg_[j];
            sy_[newest_][j] = ys;
        }
        yg_[j] = yg;
        sg_[j] = sg;
    }

    // What each step adds to the direction; returns gamma.
    double set_coefficients()
    {
        double alpha[kept], c[kept];
        for (std::size_t k = n_kept_; k-- > 0;) {
            const std::size_t i = slot(k);
            double along = sg_[i];
            for (std::size_t l = k + 1; l < n_kept_; ++l) along -= alpha[l] * sy_[i][slot(l)];
            alpha[k] = along / sy_[i][i];
        }
        const double gamma = sy_[newest_][newest_] / yy_[newest_][newest_];
        for (std::size_t k = 0; k < n_kept_; ++k) {
            const std::size_t i = slot(k);
            double of_q = yg_[i], of_s = 0.0;
            for (std::size_t l = 0; l < n_kept_; ++l) of_q -= alpha[l] * yy_[i][slot(l)];
            for (std::size_t l = 0; l < k; ++l) of_s += c[l] * sy_[slot(l)][i];
            c[k] = alpha[k] - (gamma * of_q + of_s) / sy_[i][i];
            of_y_[i] = gamma * alpha[k];
            of_s_[i] = -c[k];
        }
        return gamma;
    }

    Vector last_s_, last_y_, sums_;
    Step steps_[kept];
    double sy_[kept][kept], yy_[kept][kept];  // s_i . y_j, y_i . y_j
    double sg_[kept], yg_[kept];
    double of_s_[kept], of_y_[kept];
    std::size_t newest_ = 0, n_kept_ = 0;
    bool is_new_ = false;  // the newest step has no products yet
};

}  // namespace geomix
