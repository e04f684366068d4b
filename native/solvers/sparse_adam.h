// One epoch of Adam over sparse rows; threads share the work within a batch.
#pragma once

#include "rows/sparse_rows.h"
#include "solvers/adam_steps.h"

namespace geomix {

// Mean objective over the epoch; NaN passes through. Stops early if interrupted.
inline double sparse_adam_epoch(const SparseRows& rows, Planes<double> planes, const Index* order,
                                Index n_rows, const AdamSettings& settings, AdamState& state,
                                Interrupt& interrupt)
{
    const Index n_planes = static_cast<Index>(planes.biases.size());
    AdamSteps steps(planes.class_start, planes.n_inputs, settings, state);
    OwnedSums total(n_planes, planes.n_inputs);
    SparsePass pass(planes);
    const Index n_batches = steps.n_batches(n_rows);
    double loss = 0.0;
    for (Index b = 0, at = 0, size = 0; b < n_batches; ++b, at += size) {
        size = n_rows / n_batches + (b < n_rows % n_batches ? 1 : 0);
        planes.assign(state.vector);
        if (!rows.terms(planes, order + at, size, total, interrupt, pass)) break;
        loss += steps.take(total) * double(size) / double(n_rows);
    }
    return loss;
}

}  // namespace geomix
