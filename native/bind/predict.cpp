// Predictions for whole tables, and the features that training works on.
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bind/arrays.h"
#include "bind/module.h"
#include "bind/scorer.h"
#include "predict/model_batches.h"
#include "rows/row_span.h"

namespace geomix {
namespace {

class Predictor {
  public:
    std::shared_ptr<const OwnedModel> model;

    Array2 answer(const Table<double>& X, double* Answers::* which) const
    {
        need(width(X) == model->view().n_columns,
             "X has another number of columns than the model.");
        return filled(length(X), which, [&](const Answers& answers, Interrupt& interrupt) {
            model->answer(strided(X), length(X), answers, interrupt);
        });
    }

    Array2 answer_sparse(const AnyArray& values, const AnyArray& columns, const In1<Index>& start,
                         double* Answers::* which) const
    {
        need(!model->view().frequencies && !model->view().spline,
             "Sparse rows need a model without frequencies and without a spline lift.");
        const SparseTable X = sparse_table(values, columns, start, model->view().n_columns, false);
        return filled(X.n_rows(), which, [&](const Answers& answers, Interrupt& interrupt) {
            model->answer(X, answers, interrupt);
        });
    }

  private:
    template <class Fill>
    Array2 filled(Index n_rows, double* Answers::* which, Fill fill) const
    {
        const Model& m = model->view();
        const bool planes = which == &Answers::plane_scores || which == &Answers::responsibilities;
        const auto n = static_cast<std::size_t>(n_rows);
        const auto n_out = static_cast<std::size_t>(planes ? m.n_planes : m.n_classes);
        Vector out(n * n_out);
        Answers answers{};
        answers.*which = out.data();
        Interrupt interrupt(python_was_interrupted);
        {
            nb::gil_scoped_release released;
            fill(answers, interrupt);
        }
        if (interrupt.asked()) throw nb::python_error();
        return owned<Array2>(std::move(out), {n, n_out});
    }
};

Vector copied(const In2<double>& a) { return Vector(a.data(), a.data() + a.size()); }
Vector copied(const In1<double>& a) { return Vector(a.data(), a.data() + a.size()); }

// The numbers that models of every lift have.
ModelNumbers plane_numbers(const In2<double>& weights, const In1<double>& biases,
                           const In1<Index>& class_start, Index n_members, Index n_columns,
                           double sharpness, double temperature)
{
    const Planes<double> planes = planes_from<double>(weights, biases, class_start, sharpness, 0.0);
    need(n_members >= 1, "n_members must be at least 1.");
    for (std::size_t c = 1; c < planes.class_start.size(); ++c)
        need((planes.class_start[c] - planes.class_start[c - 1]) % n_members == 0,
             "Every member needs as many planes of a class as the others.");
    need(n_columns >= 0, "n_columns must not be negative.");
    ModelNumbers numbers{};
    numbers.weights = copied(weights), numbers.biases = copied(biases);
    numbers.class_start = planes.class_start;
    numbers.n_members = n_members, numbers.n_columns = n_columns;
    numbers.sharpness = sharpness, numbers.temperature = temperature;
    return numbers;
}

ModelNumbers model_numbers(const In1<Index>& kept, const In1<double>& mean,
                           const In1<double>& scale, const In2<double>& rotation,
                           const In2<double>& frequencies, const In2<double>& weights,
                           const In1<double>& biases, const In1<Index>& class_start,
                           Index n_members, Index n_columns, double sharpness, double temperature)
{
    ModelNumbers numbers =
        plane_numbers(weights, biases, class_start, n_members, n_columns, sharpness, temperature);
    numbers.kept.assign(kept.data(), kept.data() + length(kept));
    numbers.mean = copied(mean), numbers.scale = copied(scale);
    numbers.rotation = copied(rotation), numbers.frequencies = copied(frequencies);
    numbers.n_rotated = rotation.size() ? length(rotation) : length(kept);
    numbers.n_frequencies = frequencies.size() ? width(frequencies) : 0;
    need(length(mean) == length(kept) && length(scale) == length(kept),
         "kept, mean and scale differ in length.");
    for (Index j : numbers.kept) need(j >= 0 && j < n_columns, "kept names a column beyond X.");
    need(!rotation.size() || width(rotation) == length(kept), "rotation has the wrong shape.");
    need(!frequencies.size() || length(frequencies) == numbers.n_rotated,
         "frequencies have the wrong shape.");
    need(width(weights) == (numbers.n_frequencies ? 2 * numbers.n_frequencies : numbers.n_rotated),
         "weights have the wrong number of columns.");
    return numbers;
}

template <class T>
nb::object fourier(Table<double> V, In2<double> frequencies)
{
    need(width(V) == length(frequencies), "V and frequencies differ in the number of columns.");
    ModelNumbers numbers{};
    numbers.frequencies.assign(frequencies.data(), frequencies.data() + frequencies.size());
    numbers.n_columns = numbers.n_rotated = width(V);
    numbers.n_frequencies = width(frequencies);
    numbers.class_start = {0, 0};
    const OwnedModel model(std::move(numbers));
    const auto n = static_cast<std::size_t>(length(V)), D = frequencies.shape(1);
    std::vector<T> phi(n * 2 * D);
    Interrupt interrupt(python_was_interrupted);
    {
        nb::gil_scoped_release released;
        const Strided<double> from = strided(V);
        const Index all = length(V);
        const auto lift = [&](Index first, Index n_rows, double* scratch) {
            const Strided<double> rows{from.data + first * from.row_step, from.row_step,
                                       from.column_step};
            T* out = phi.data() + first * 2 * static_cast<Index>(D);
            if constexpr (sizeof(T) == 8)
                kernels().fourier_f64(model.view(), rows, n_rows, out, scratch);
            else
                kernels().fourier_f32(model.view(), rows, n_rows, out, scratch);
        };
        model.by_blocks(all, all * model.cost(), answer_scratch(model.view()), interrupt, lift);
    }
    if (interrupt.asked()) throw nb::python_error();
    return nb::cast(owned<nb::ndarray<nb::numpy, T, nb::ndim<2>>>(std::move(phi), {n, 2 * D}));
}

Array2 basis_of(Table<float> X, Index n_sample, Index most, double tol)
{
    const Index d = width(X);
    Vector basis;
    {
        nb::gil_scoped_release released;
        basis = row_basis(strided(X), length(X), d, n_sample, most, tol);
    }
    const std::size_t columns = X.shape(1), rank = columns ? basis.size() / columns : 0;
    return owned<Array2>(std::move(basis), {rank, columns});
}

nb::ndarray<nb::numpy, float, nb::ndim<2>> projected(Table<float> X, In2<double> basis)
{
    need(width(X) == width(basis), "X and the basis differ in the number of columns.");
    const std::size_t n = X.shape(0), rank = basis.shape(0);
    std::vector<float> out(n * rank);
    {
        nb::gil_scoped_release released;
        const std::vector<float> single(basis.data(), basis.data() + basis.size());
        project(strided(X), length(X), width(X), single, length(basis), out.data());
    }
    return owned<nb::ndarray<nb::numpy, float, nb::ndim<2>>>(std::move(out), {n, rank});
}

}  // namespace

void bind_prediction(nb::module_& m)
{
    const std::pair<const char*, double* Answers::*> answers[] = {
        {"plane_scores", &Answers::plane_scores},
        {"responsibilities", &Answers::responsibilities},
        {"class_scores", &Answers::class_scores},
        {"predict_proba", &Answers::probabilities}};
    nb::class_<Predictor> predictor(m, "Predictor");
    predictor
        .def("__init__",
             [](Predictor* self, In1<Index> kept, In1<double> mean, In1<double> scale,
                In2<double> rotation, In2<double> frequencies, In2<double> weights,
                In1<double> biases, In1<Index> class_start, Index n_members, Index n_columns,
                double sharpness, double temperature, bool single) {
                 ModelNumbers numbers =
                     model_numbers(kept, mean, scale, rotation, frequencies, weights, biases,
                                   class_start, n_members, n_columns, sharpness, temperature);
                 numbers.single = single;
                 new (self) Predictor{std::make_shared<OwnedModel>(std::move(numbers))};
             })
        .def("__init__",
             [](Predictor* self, const SplineLift& lift, In2<double> weights, In1<double> biases,
                In1<Index> class_start, Index n_members, Index n_columns, double sharpness,
                double temperature) {
                 need(width(weights) == lift.n_steps(),
                      "weights have the wrong number of columns.");
                 need(lift.n_columns() <= n_columns, "The lift reads a column beyond X.");
                 new (self) Predictor{std::make_shared<OwnedModel>(
                     plane_numbers(weights, biases, class_start, n_members, n_columns, sharpness,
                                   temperature),
                     &lift)};
             })
        .def(
            "scorer",
            [](const Predictor& self, nb::tuple labels, nb::object contributions,
               nb::object explanation, std::shared_ptr<RowReader> reader) {
                PyObject* made = new_scorer(self.model, labels.ptr(), contributions.ptr(),
                                            explanation.ptr(), std::move(reader));
                if (made == nullptr) throw nb::python_error();
                return nb::steal(made);
            },
            nb::arg("labels"), nb::arg("contributions").none(), nb::arg("explanation"),
            nb::arg("reader").none() = nb::none());
    for (const auto& [name, which] : answers) {
        predictor.def(
            name,
            [which = which](const Predictor& self, Table<double> X) {
                return self.answer(X, which);
            },
            nb::arg("X").noconvert());
        predictor.def(
            name,
            [which = which](const Predictor& self, AnyArray values, AnyArray columns,
                            In1<Index> start) {
                return self.answer_sparse(values, columns, start, which);
            },
            nb::arg("data").noconvert(), nb::arg("indices").noconvert(),
            nb::arg("indptr").noconvert());
    }
    m.def("fourier_f64", &fourier<double>, nb::arg("V").noconvert(), nb::arg("frequencies"));
    m.def("fourier_f32", &fourier<float>, nb::arg("V").noconvert(), nb::arg("frequencies"));
    m.def("basis", &basis_of, nb::arg("X").noconvert(), nb::arg("n_sample"), nb::arg("most"),
          nb::arg("tol"));
    m.def("projected", &projected, nb::arg("X").noconvert(), nb::arg("basis"));
}

}  // namespace geomix
