// L-BFGS in stages of growing sharpness, as in training/lbfgs_stages.py.
//
// Every stage has the penalty that the usage of the planes at its first point gives: the pass that
// counts the usage is the first one of the stage. At the final sharpness the stage is repeated with
// the new usage.
#pragma once

#include "solvers/lbfgs.h"

namespace geomix {

// lambda_p = l2 (1 + beta / (u_p + delta)), as usage_penalty in core/objective.py.
struct UsagePenalty {
    double l2, beta, delta;

    double of(double usage) const { return l2 * (1.0 + beta / (usage + delta)); }
};

// sharpness : of each stage;  early_limit, early_value_tol : of all stages but the last;
// rounds : at the final sharpness;  max_iter : of all stages together
struct StagePlan {
    std::vector<double> sharpness;
    UsagePenalty penalty;
    Index early_limit, max_iter, rounds;
    double gradient_tol, early_value_tol, value_tol;
};

// What one stage did: the usage in its penalty, and the value after each iteration.
struct Stage {
    double sharpness;
    Vector usage;
    std::vector<double> values;
};

struct Staged {
    Vector at;
    std::vector<Stage> stages;
    bool converged = false, interrupted = false;
};

// objective : begin(sharpness, penalty), usage() after the first point, and the call of an Lbfgs
// objective with an interrupt.
template <class Objective>
class StagedDescent {
  public:
    StagedDescent(Objective& objective, const StagePlan& plan, Interrupt& interrupt, Team& team)
        : objective_(objective), plan_(plan), interrupt_(interrupt), team_(team)
    {
    }

    Staged run(Vector start)
    {
        found_.at = std::move(start);
        const std::size_t n_early = plan_.sharpness.size() - 1;
        for (std::size_t k = 0; k < n_early && !found_.interrupted; ++k)
            descend(plan_.sharpness[k], plan_.early_limit, plan_.early_value_tol);
        for (Index round = 0; round < plan_.rounds && !found_.interrupted; ++round) {
            const Index before = n_done_;
            descend(plan_.sharpness[n_early], plan_.max_iter - n_done_, plan_.value_tol);
            if (!found_.converged || n_done_ - before <= 1) break;
        }
        return std::move(found_);
    }

  private:
    void descend(double sharpness, Index limit, double value_tol)
    {
        found_.converged = false;
        if (limit <= 0) return;
        objective_.begin(sharpness, plan_.penalty);
        const auto in_this_call = [this](const Vector& x, double& value, Vector& gradient) {
            return objective_(x, value, gradient, interrupt_, team_);
        };
        Lbfgs solver(found_.at, plan_.gradient_tol, value_tol);
        Progress progress = Progress::moving;
        std::vector<double> values;
        for (Index i = 0; i < limit && progress == Progress::moving; ++i) {
            progress = solver.step(in_this_call, team_);
            if (progress == Progress::moving || progress == Progress::converged)
                values.push_back(solver.value());
        }
        found_.interrupted = progress == Progress::interrupted;
        found_.converged = progress == Progress::converged || progress == Progress::optimal;
        n_done_ += static_cast<Index>(values.size());
        found_.at = solver.x();
        found_.stages.push_back({sharpness, objective_.usage(), std::move(values)});
    }

    Objective& objective_;
    const StagePlan& plan_;
    Interrupt& interrupt_;
    Team& team_;
    Staged found_;
    Index n_done_ = 0;
};

}  // namespace geomix
