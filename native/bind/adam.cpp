// Epochs of Adam, over dense or sparse rows.
#include <nanobind/stl/pair.h>

#include "bind/module.h"
#include "bind/rows.h"
#include "solvers/adam.h"
#include "solvers/sparse_adam.h"

namespace geomix {
namespace {

// The planes, the state that goes with them, and the settings of an epoch. The arrays are
// Python's, and change in place.
struct Adam {
    In1<Index> class_start;
    InOut vector, mean, square, usage;
    Index n_steps;
    double sharpness, label_smoothing;
    AdamSettings settings;

    // Planes over n_inputs columns, checked with everything that must fit them.
    template <class T>
    Planes<T> planes(Index n_inputs, const In1<Index>& order, Index n_rows) const
    {
        const Index n_planes = length(usage), n = n_planes * (n_inputs + 1);
        need(length(vector) == n && length(mean) == n && length(square) == n,
             "vector, mean and square must hold the weights and biases of every plane.");
        need(settings.batch_size >= 1, "batch_size must be at least 1.");
        for (Index i = 0; i < length(order); ++i)
            need(order.data()[i] >= 0 && order.data()[i] < n_rows, "order holds no row of X.");
        const auto P = static_cast<std::size_t>(n_planes), d = static_cast<std::size_t>(n_inputs);
        return planes_from<T>(In2<double>(vector.data(), {P, d}),
                              In1<double>(vector.data() + P * d, {P}), class_start, sharpness,
                              label_smoothing);
    }

    // Mean objective of an epoch, and how many steps there have been.
    template <class Epoch>
    std::pair<double, Index> run(Epoch epoch)
    {
        AdamState state{vector.data(), mean.data(), square.data(), usage.data(), n_steps};
        double loss;
        bool interrupted;
        {
            nb::gil_scoped_release released;
            const TinyIsZero mode;
            Interrupt interrupt(python_was_interrupted);
            loss = epoch(state, interrupt);
            interrupted = interrupt.asked();
        }
        if (interrupted) throw nb::python_error();
        n_steps = state.n_steps;
        return {loss, n_steps};
    }
};

template <class T>
std::pair<double, Index> dense_epoch(Adam& adam, Table<T> X, In1<Index> y, In1<double> weight,
                                     In1<Index> order)
{
    Planes<T> planes = adam.planes<T>(width(X), order, length(X));
    check_labels(y, weight, length(X), length(adam.class_start) - 1);
    return adam.run([&](AdamState& state, Interrupt& interrupt) {
        AdamEpoch<T> epoch(std::move(planes), strided(X), y.data(), weight.data(), length(X),
                           adam.settings, state);
        return epoch.run(order.data(), length(order), interrupt);
    });
}

std::pair<double, Index> sparse_epoch(Adam& adam, const TrainingRows<SparseRows>& X,
                                      In1<Index> order)
{
    Planes<double> planes = adam.planes<double>(X.rows.n_columns(), order, X.rows.n_rows());
    X.fit_for(planes);
    return adam.run([&](AdamState& state, Interrupt& interrupt) {
        return sparse_adam_epoch(X.rows, std::move(planes), order.data(), length(order),
                                 adam.settings, state, interrupt);
    });
}

template <class T>
void bind_dense(nb::class_<Adam>& adam)
{
    adam.def("epoch", &dense_epoch<T>, nb::arg("X").noconvert(), nb::arg("y").noconvert(),
             nb::arg("weight").noconvert(), nb::arg("order").noconvert());
}

}  // namespace

void bind_adam(nb::module_& m)
{
    nb::class_<Adam> adam(m, "Adam");
    adam.def(
        "__init__",
        [](Adam* self, In1<Index> class_start, InOut vector, InOut mean, InOut square, InOut usage,
           Index n_steps, double sharpness, double label_smoothing, Index batch_size,
           double learning_rate, double l2, double usage_beta, double usage_delta,
           double usage_decay, double clip_norm, double max_weight_norm, double shrink_to_mean) {
            new (self) Adam{class_start,
                            vector,
                            mean,
                            square,
                            usage,
                            n_steps,
                            sharpness,
                            label_smoothing,
                            {batch_size, learning_rate, l2, usage_beta, usage_delta, usage_decay,
                             clip_norm, max_weight_norm, shrink_to_mean}};
        },
        nb::arg("class_start"), nb::arg("vector").noconvert(), nb::arg("mean").noconvert(),
        nb::arg("square").noconvert(), nb::arg("usage").noconvert(), nb::arg("n_steps"),
        nb::arg("sharpness"), nb::arg("label_smoothing"), nb::arg("batch_size"),
        nb::arg("learning_rate"), nb::arg("l2"), nb::arg("usage_beta"), nb::arg("usage_delta"),
        nb::arg("usage_decay"), nb::arg("clip_norm"), nb::arg("max_weight_norm"),
        nb::arg("shrink_to_mean") = 0.0);
    bind_dense<double>(adam);
    bind_dense<float>(adam);
    adam.def("epoch", &sparse_epoch, nb::arg("rows"), nb::arg("order").noconvert());
}

}  // namespace geomix
