// The door between Python and the kernels: checks shapes and types, lets go of the GIL, forwards.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <string>

#include "adam.h"
#include "answering.h"
#include "bind_scorer.h"
#include "calibration.h"
#include "compress.h"
#include "kmeans.h"
#include "lbfgs.h"
#include "objective.h"
#include "rows.h"

namespace nb = nanobind;
using namespace geomix;

namespace {

template <class T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // any strides
using InOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array1 = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using Array2 = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

void need(bool fine, const char* what)
{
    if (!fine) throw nb::value_error(what);
}

template <class T>
Index length(const T& array) { return static_cast<Index>(array.shape(0)); }
template <class T>
Index width(const T& array) { return static_cast<Index>(array.shape(1)); }

template <class A, class T = double>
A owned(std::vector<T> numbers, std::initializer_list<std::size_t> shape)
{
    auto* kept = new std::vector<T>(std::move(numbers));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return A(kept->data(), shape, owner);
}

template <class T>
Strided<T> strided(const Table<T>& X)
{
    return {X.data(), X.stride(0), X.stride(1)};
}

bool python_was_interrupted()
{
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

// Planes from Python's arrays, checked: class_start rises from 0 to the number of planes.
template <class T>
Planes<T> planes_from(const In2<double>& weights, const In1<double>& biases,
                      const In1<Index>& class_start, double sharpness, double label_smoothing)
{
    need(length(weights) == length(biases), "weights and biases differ in the number of planes.");
    need(length(class_start) >= 2 && class_start.data()[0] == 0 &&
             class_start.data()[length(class_start) - 1] == length(biases),
         "class_start must run from 0 to the number of planes.");
    Planes<T> planes;
    for (Index c = 0; c < length(class_start); ++c) {
        need(c == 0 || class_start.data()[c] > class_start.data()[c - 1],
             "class_start must rise: every class needs a plane.");
        planes.class_start.push_back(static_cast<std::int32_t>(class_start.data()[c]));
    }
    planes.weights.assign(weights.data(), weights.data() + weights.size());
    planes.biases.assign(biases.data(), biases.data() + biases.size());
    planes.n_inputs = width(weights);
    planes.sharpness = static_cast<T>(sharpness);
    planes.label_smoothing = static_cast<T>(label_smoothing);
    return planes;
}

void check_labels(const In1<Index>& y, const In1<double>& weight, Index n_rows, Index n_classes)
{
    need(length(y) == n_rows && length(weight) == n_rows, "X, y and weight differ in length.");
    for (Index i = 0; i < n_rows; ++i)
        need(y.data()[i] >= 0 && y.data()[i] < n_classes, "y holds a code that is no class.");
}

// --- training rows ---

template <class T>
struct TrainingRows {
    Rows<T> rows;
    std::vector<Index> y;
    Vector weight;

    TrainingRows(const Table<T>& X, const In1<Index>& codes, const In1<double>& weights)
        : rows(strided(X), codes.data(), weights.data(), checked(X, codes, weights), width(X)),
          y(codes.data(), codes.data() + length(codes)),
          weight(weights.data(), weights.data() + length(weights))
    {
    }

    static Index checked(const Table<T>& X, const In1<Index>& y, const In1<double>& weight)
    {
        check_labels(y, weight, length(X), Index(1) << 24);
        return length(X);
    }

    void fit_for(const Planes<T>& planes) const
    {
        need(planes.n_inputs == rows.n_columns(), "The planes have another number of columns.");
        const Index n_classes = static_cast<Index>(planes.class_start.size()) - 1;
        need(y.empty() || *std::max_element(y.begin(), y.end()) < n_classes,
             "y holds a code that is no class.");
    }
};

template <class T>
nb::tuple terms(const TrainingRows<T>& self, In2<double> weights, In1<double> biases,
                In1<Index> class_start, double sharpness, double label_smoothing)
{
    const Planes<T> planes =
        planes_from<T>(weights, biases, class_start, sharpness, label_smoothing);
    self.fit_for(planes);
    const Index n_planes = length(biases), n_inputs = width(weights);
    OwnedSums total(n_planes, n_inputs);
    bool finished;
    {
        nb::gil_scoped_release released;
        Interrupt interrupt(python_was_interrupted);
        finished = self.rows.terms(planes, total, interrupt);
    }
    if (!finished) throw nb::python_error();
    const double* at = total.numbers.data();
    const auto P = static_cast<std::size_t>(n_planes), d = static_cast<std::size_t>(n_inputs);
    return nb::make_tuple(total.sums.row_weight, total.sums.loss,
                          owned<Array2>(Vector(at, at + P * d), {P, d}),
                          owned<Array1>(Vector(at + P * d, at + P * d + P), {P}),
                          owned<Array1>(Vector(at + P * d + P, at + P * d + 2 * P), {P}));
}

template <class T>
double cross_entropy(const TrainingRows<T>& self, In2<double> weights, In1<double> biases,
                     In1<Index> class_start, double sharpness)
{
    const Planes<T> planes = planes_from<T>(weights, biases, class_start, sharpness, 0.0);
    self.fit_for(planes);
    nb::gil_scoped_release released;
    return self.rows.cross_entropy(planes);
}

template <class T>
Array2 class_scores(const TrainingRows<T>& self, In2<double> weights, In1<double> biases,
                    In1<Index> class_start, double sharpness)
{
    const Planes<T> planes = planes_from<T>(weights, biases, class_start, sharpness, 0.0);
    need(planes.n_inputs == self.rows.n_columns(), "The planes have another number of columns.");
    const auto n = static_cast<std::size_t>(self.rows.n_rows());
    const std::size_t n_classes = planes.class_start.size() - 1;
    Vector S(n * n_classes);
    {
        nb::gil_scoped_release released;
        self.rows.class_scores(planes, S.data());
    }
    return owned<Array2>(std::move(S), {n, n_classes});
}

// --- L-BFGS over training rows ---

const char* name_of(Progress progress)
{
    return progress == Progress::moving      ? "moving"
           : progress == Progress::converged ? "converged"
           : progress == Progress::optimal   ? "optimal"
                                             : "stuck";
}

template <class T>
class Minimizer {
  public:
    Minimizer(const TrainingRows<T>& rows, In2<double> weights, In1<double> biases,
              In1<Index> class_start, double sharpness, double label_smoothing,
              In1<double> coefficients, double gradient_tol, double value_tol)
        : rows_(rows.rows),
          planes_(planes_from<T>(weights, biases, class_start, sharpness, label_smoothing)),
          coefficients_(coefficients.data(), coefficients.data() + length(coefficients)),
          total_(length(biases), width(weights)),
          solver_(start(weights, biases), gradient_tol, value_tol)
    {
        rows.fit_for(planes_);
        need(length(coefficients) == length(biases), "One coefficient for each plane is needed.");
    }

    // "moving" or "converged" after a step, "optimal" or "stuck" where none was possible
    std::string step() { return run(1).first; }

    // Steps until one says something else than "moving", at most so many; the value after each.
    std::pair<std::string, std::vector<double>> run(Index most)
    {
        Progress progress = Progress::moving;
        std::vector<double> values;
        {
            nb::gil_scoped_release released;
            Interrupt interrupt(python_was_interrupted);
            const auto objective = [&](const Vector& x, double& value, Vector& gradient) {
                planes_.assign(x.data());
                if (!rows_.terms(planes_, total_, interrupt)) return false;
                value = penalised(total_, x.data(), coefficients_.data(),
                                  static_cast<Index>(coefficients_.size()), planes_.n_inputs,
                                  gradient.data());
                return true;
            };
            for (Index i = 0; i < most && progress == Progress::moving; ++i) {
                progress = solver_.step(objective);
                if (progress == Progress::moving || progress == Progress::converged)
                    values.push_back(solver_.value());
            }
        }
        if (progress == Progress::interrupted) throw nb::python_error();
        return {name_of(progress), std::move(values)};
    }

    Array1 vector() const { return owned<Array1>(Vector(solver_.x()), {solver_.x().size()}); }
    double value() const { return solver_.value(); }

  private:
    static Vector start(const In2<double>& weights, const In1<double>& biases)
    {
        Vector all(weights.data(), weights.data() + weights.size());
        all.insert(all.end(), biases.data(), biases.data() + biases.size());
        return all;
    }

    const Rows<T>& rows_;
    Planes<T> planes_;
    Vector coefficients_;
    OwnedSums total_;
    Lbfgs solver_;
};

// The solver alone: objective(vector) -> (value, gradient) is Python's.
void bind_lbfgs(nb::module_& m)
{
    nb::class_<Lbfgs>(m, "Lbfgs")
        .def("__init__",
             [](Lbfgs* self, In1<double> start, double gradient_tol, double value_tol) {
                 new (self) Lbfgs(Vector(start.data(), start.data() + start.size()), gradient_tol,
                                  value_tol);
             })
        .def("step",
             [](Lbfgs& self, nb::callable objective) {
                 return std::string(name_of(self.step(
                     [&](const Vector& x, double& value, Vector& gradient) {
                         const auto found = nb::cast<std::pair<double, In1<double>>>(
                             objective(owned<Array1>(Vector(x), {x.size()})));
                         need(found.second.size() == x.size(), "The gradient has the wrong length.");
                         value = found.first;
                         std::copy_n(found.second.data(), x.size(), gradient.begin());
                         return true;
                     })));
             })
        .def_prop_ro(
            "vector", [](const Lbfgs& self) { return owned<Array1>(Vector(self.x()), {self.x().size()}); },
            nb::rv_policy::automatic)
        .def_prop_ro("value", &Lbfgs::value);
}

// --- Adam ---

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
void bind_training(nb::module_& m, const char* rows_name, const char* minimizer_name)
{
    nb::class_<TrainingRows<T>>(m, rows_name)
        .def(nb::init<const Table<T>&, const In1<Index>&, const In1<double>&>(),
             nb::arg("X").noconvert(), nb::arg("y").noconvert(), nb::arg("weight").noconvert())
        .def("terms", &terms<T>)
        .def("cross_entropy", &cross_entropy<T>)
        .def("class_scores", &class_scores<T>);
    nb::class_<Minimizer<T>>(m, minimizer_name)
        .def(nb::init<const TrainingRows<T>&, In2<double>, In1<double>, In1<Index>, double, double,
                      In1<double>, double, double>(),
             nb::keep_alive<1, 2>())
        .def("step", &Minimizer<T>::step)
        .def("run", &Minimizer<T>::run)
        .def_prop_ro("vector", &Minimizer<T>::vector, nb::rv_policy::automatic)
        .def_prop_ro("value", &Minimizer<T>::value);
    m.def("adam_epoch", &adam_epoch<T>, nb::arg("X").noconvert(), nb::arg("y").noconvert(),
          nb::arg("weight").noconvert(), nb::arg("order").noconvert(), nb::arg("class_start"),
          nb::arg("vector").noconvert(), nb::arg("mean").noconvert(), nb::arg("square").noconvert(),
          nb::arg("usage").noconvert(), nb::arg("n_steps"), nb::arg("sharpness"),
          nb::arg("label_smoothing"), nb::arg("batch_size"), nb::arg("learning_rate"),
          nb::arg("l2"), nb::arg("usage_beta"), nb::arg("usage_delta"), nb::arg("usage_decay"),
          nb::arg("clip_norm"), nb::arg("max_weight_norm"));
}

// --- prediction ---

struct Predictor {
    std::shared_ptr<const OwnedModel> model;

    Array2 answer(const Table<double>& X, double* Answers::*which) const
    {
        const Model& m = model->view();
        need(width(X) == m.n_columns, "X has another number of columns than the model.");
        const bool planes = which == &Answers::plane_scores || which == &Answers::responsibilities;
        const auto n = static_cast<std::size_t>(length(X));
        const auto n_out = static_cast<std::size_t>(planes ? m.n_planes : m.n_classes);
        Vector out(n * n_out);
        Answers answers{};
        answers.*which = out.data();
        {
            nb::gil_scoped_release released;
            model->answer(strided(X), length(X), answers);
        }
        return owned<Array2>(std::move(out), {n, n_out});
    }
};

ModelNumbers model_numbers(const In1<Index>& kept, const In1<double>& mean, const In1<double>& scale,
                           const In2<double>& rotation, const In2<double>& frequencies,
                           const In2<double>& weights, const In1<double>& biases,
                           const In1<Index>& class_start, Index n_columns, double sharpness,
                           double temperature)
{
    const Planes<double> planes = planes_from<double>(weights, biases, class_start, sharpness, 0.0);
    ModelNumbers numbers;
    const auto copy = [](const auto& a) { return Vector(a.data(), a.data() + a.size()); };
    numbers.kept.assign(kept.data(), kept.data() + length(kept));
    numbers.mean = copy(mean), numbers.scale = copy(scale);
    numbers.rotation = copy(rotation), numbers.frequencies = copy(frequencies);
    numbers.weights = copy(weights), numbers.biases = copy(biases);
    numbers.class_start = planes.class_start;
    numbers.n_columns = n_columns;
    numbers.n_rotated = rotation.size() ? length(rotation) : length(kept);
    numbers.n_frequencies = frequencies.size() ? width(frequencies) : 0;
    numbers.sharpness = sharpness, numbers.temperature = temperature;
    need(length(mean) == length(kept) && length(scale) == length(kept),
         "kept, mean and scale differ in length.");
    for (Index j : numbers.kept) need(j >= 0 && j < n_columns, "kept names a column beyond X.");
    need(!rotation.size() || width(rotation) == length(kept), "rotation has the wrong shape.");
    need(!frequencies.size() || length(frequencies) == numbers.n_rotated,
         "frequencies have the wrong shape.");
    need(width(weights) ==
             (numbers.n_frequencies ? 2 * numbers.n_frequencies : numbers.n_rotated),
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
    {
        nb::gil_scoped_release released;
        const Strided<double> from = strided(V);
        model.by_blocks(length(V), [&](Index first, Index n_rows, double* scratch) {
            const Strided<double> rows{from.data + first * from.row_step, from.row_step,
                                       from.column_step};
            T* out = phi.data() + first * 2 * static_cast<Index>(D);
            if constexpr (sizeof(T) == 8)
                kernels().fourier_f64(model.view(), rows, n_rows, out, scratch);
            else
                kernels().fourier_f32(model.view(), rows, n_rows, out, scratch);
        });
    }
    return nb::cast(owned<nb::ndarray<nb::numpy, T, nb::ndim<2>>>(std::move(phi), {n, 2 * D}));
}

void bind_prediction(nb::module_& m)
{
    const auto method = [](double* Answers::*which) {
        return [which](const Predictor& self, Table<double> X) { return self.answer(X, which); };
    };
    nb::class_<Predictor>(m, "Predictor")
        .def("__init__",
             [](Predictor* self, In1<Index> kept, In1<double> mean, In1<double> scale,
                In2<double> rotation, In2<double> frequencies, In2<double> weights,
                In1<double> biases, In1<Index> class_start, Index n_columns, double sharpness,
                double temperature) {
                 new (self) Predictor{std::make_shared<OwnedModel>(
                     model_numbers(kept, mean, scale, rotation, frequencies, weights, biases,
                                   class_start, n_columns, sharpness, temperature))};
             })
        .def("plane_scores", method(&Answers::plane_scores), nb::arg("X").noconvert())
        .def("responsibilities", method(&Answers::responsibilities), nb::arg("X").noconvert())
        .def("class_scores", method(&Answers::class_scores), nb::arg("X").noconvert())
        .def("predict_proba", method(&Answers::probabilities), nb::arg("X").noconvert())
        .def("scorer", [](const Predictor& self, nb::tuple labels, nb::object contributions,
                          nb::object explanation) {
            PyObject* made = new_scorer(self.model, labels.ptr(), contributions.ptr(),
                                        explanation.ptr());
            if (made == nullptr) throw nb::python_error();
            return nb::steal(made);
        }, nb::arg("labels"), nb::arg("contributions").none(), nb::arg("explanation"));
    m.def("fourier_f64", &fourier<double>, nb::arg("V").noconvert(), nb::arg("frequencies"));
    m.def("fourier_f32", &fourier<float>, nb::arg("V").noconvert(), nb::arg("frequencies"));
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
    return owned<nb::ndarray<nb::numpy, float, nb::ndim<2>>, float>(std::move(out), {n, rank});
}

// --- calibration and clustering ---

std::pair<double, double> calibrate_scores(In2<double> S, In1<Index> y, In1<double> weight,
                                           double pull, double low, double high)
{
    check_labels(y, weight, length(S), width(S));
    nb::gil_scoped_release released;
    const Calibrated found =
        calibrate(S.data(), y.data(), weight.data(), length(S), width(S), pull, low, high);
    return {found.temperature, found.loss};
}

nb::tuple cluster(In2<double> X, In1<double> weight, Index k, In2<double> draws, Index most_rounds,
                  double tol)
{
    need(length(weight) == length(X), "X and weight differ in length.");
    need(k >= 1 && k <= length(X) && length(draws) == k && width(draws) >= 1,
         "draws must have one row for each cluster, and there are at most as many as rows.");
    Clustering found;
    {
        nb::gil_scoped_release released;
        found = kmeans(Points(X.data(), length(X), width(X)), weight.data(), k, draws.data(),
                       width(draws), most_rounds, tol);
    }
    const std::size_t n = found.labels.size();
    return nb::make_tuple(
        owned<nb::ndarray<nb::numpy, Index, nb::ndim<1>>, Index>(std::move(found.labels), {n}),
        owned<Array2>(std::move(found.centres),
                      {static_cast<std::size_t>(k), static_cast<std::size_t>(width(X))}),
        found.inertia);
}

nb::ndarray<nb::numpy, Index, nb::ndim<1>> nearest_centre(In2<double> X, In2<double> centres)
{
    need(width(X) == width(centres) && length(centres) >= 1,
         "X and centres differ in the number of columns.");
    std::vector<Index> labels(X.shape(0));
    {
        nb::gil_scoped_release released;
        Vector work, squared(X.shape(0));
        nearest(Points(X.data(), length(X), width(X)),
                Vector(centres.data(), centres.data() + centres.size()), length(centres), work,
                labels, squared);
    }
    const std::size_t n = labels.size();
    return owned<nb::ndarray<nb::numpy, Index, nb::ndim<1>>, Index>(std::move(labels), {n});
}

Array1 silhouettes_of(In2<double> X, In2<Index> labels)
{
    need(width(labels) == length(X), "One label for each row is needed.");
    Index k = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        need(labels.data()[i] >= 0 && labels.data()[i] < (Index(1) << 20), "Odd label.");
        k = std::max(k, labels.data()[i] + 1);
    }
    Vector found;
    {
        nb::gil_scoped_release released;
        found = silhouettes(Points(X.data(), length(X), width(X)), labels.data(), length(labels), k);
    }
    const std::size_t n = found.size();
    return owned<Array1>(std::move(found), {n});
}

// --- elementary functions, so that tests can hold them against known values ---

template <class T>
nb::object elementwise(In1<T> x, void (*f)(const T*, Index, T*))
{
    std::vector<T> out(x.size());
    f(x.data(), length(x), out.data());
    const std::size_t n = out.size();
    return nb::cast(owned<nb::ndarray<nb::numpy, T, nb::ndim<1>>>(std::move(out), {n}));
}

nb::tuple sine_cosine(In1<double> x)
{
    Vector s(x.size()), c(x.size());
    kernels().sine_cosine(x.data(), length(x), s.data(), c.data());
    const std::size_t n = s.size();
    return nb::make_tuple(owned<Array1>(std::move(s), {n}), owned<Array1>(std::move(c), {n}));
}

}  // namespace

NB_MODULE(_native, m)
{
    // Objects that live until the interpreter exits (a global model, a kept traceback) are no
    // fault of the user's, and nothing to fill a terminal with.
    nb::set_leak_warnings(false);
    m.def("simd", [] { return std::string(kernels().name); });
    bind_training<double>(m, "Rows64", "Minimizer64");
    bind_training<float>(m, "Rows32", "Minimizer32");
    bind_lbfgs(m);
    bind_prediction(m);
    m.def("basis", &basis_of, nb::arg("X").noconvert(), nb::arg("n_sample"), nb::arg("most"),
          nb::arg("tol"));
    m.def("projected", &projected, nb::arg("X").noconvert(), nb::arg("basis"));
    m.def("calibrate", &calibrate_scores);
    m.def("kmeans", &cluster);
    m.def("nearest", &nearest_centre);
    m.def("silhouettes", &silhouettes_of);
    m.def("exponential", [](In1<double> x) { return elementwise(x, kernels().exponential_f64); },
          nb::arg("x").noconvert());
    m.def("exponential", [](In1<float> x) { return elementwise(x, kernels().exponential_f32); },
          nb::arg("x").noconvert());
    m.def("logarithm", [](In1<double> x) { return elementwise(x, kernels().logarithm_f64); },
          nb::arg("x").noconvert());
    m.def("logarithm", [](In1<float> x) { return elementwise(x, kernels().logarithm_f32); },
          nb::arg("x").noconvert());
    m.def("sine_cosine", &sine_cosine, nb::arg("x").noconvert());
    if (!ready_scorer_type()) throw nb::python_error();
}
