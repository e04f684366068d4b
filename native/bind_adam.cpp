// Epochs of Adam.
#include <nanobind/stl/pair.h>

#include "adam.h"
#include "bind.h"
#include "bind_arrays.h"

namespace geomix {
namespace {

template <class T>
std::pair<double, Index> adam_epoch(Table<T> X, In1<Index> y, In1<double> weight, In1<Index> order,
                                    In1<Index> class_start, InOut vector, InOut mean, InOut square,
                                    InOut usage, Index n_steps, double sharpness,
                                    double label_smoothing, Index batch_size, double learning_rate,
                                    double l2, double usage_beta, double usage_delta,
                                    double usage_decay, double clip_norm, double max_weight_norm)
{
    const Index n_planes = length(usage), d = width(X), n = n_planes * (d + 1);
    need(length(vector) == n && length(mean) == n && length(square) == n,
         "vector, mean and square must hold the weights and biases of every plane.");
    need(batch_size >= 1, "batch_size must be at least 1.");
    const std::size_t P = static_cast<std::size_t>(n_planes);
    const In2<double> weights(vector.data(), {P, static_cast<std::size_t>(d)});
    const In1<double> biases(vector.data() + n_planes * d, {P});
    Planes<T> planes = planes_from<T>(weights, biases, class_start, sharpness, label_smoothing);
    check_labels(y, weight, length(X), length(class_start) - 1);
    for (Index i = 0; i < length(order); ++i)
        need(order.data()[i] >= 0 && order.data()[i] < length(X), "order holds no row of X.");
    AdamSettings settings{batch_size,  learning_rate, l2,        usage_beta,
                          usage_delta, usage_decay,   clip_norm, max_weight_norm};
    AdamState state{vector.data(), mean.data(), square.data(), usage.data(), n_steps};
    double loss;
    bool interrupted;
    {
        nb::gil_scoped_release released;
        Interrupt interrupt(python_was_interrupted);
        AdamEpoch<T> epoch(std::move(planes), strided(X), y.data(), weight.data(), length(X),
                           settings, state);
        loss = epoch.run(order.data(), length(order), interrupt);
        interrupted = interrupt.asked();
    }
    if (interrupted) throw nb::python_error();
    return {loss, state.n_steps};
}

template <class T>
void bind_epoch(nb::module_& m)
{
    m.def("adam_epoch", &adam_epoch<T>, nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("order").noconvert(), nb::arg("class_start"),
          nb::arg("vector").noconvert(), nb::arg("mean").noconvert(), nb::arg("square").noconvert(),
          nb::arg("usage").noconvert(), nb::arg("n_steps"), nb::arg("sharpness"),
          nb::arg("label_smoothing"), nb::arg("batch_size"), nb::arg("learning_rate"),
          nb::arg("l2"), nb::arg("usage_beta"), nb::arg("usage_delta"), nb::arg("usage_decay"),
          nb::arg("clip_norm"), nb::arg("max_weight_norm"));
}

}  // namespace

void bind_adam(nb::module_& m)
{
    bind_epoch<double>(m);
    bind_epoch<float>(m);
}

}  // namespace geomix
