// Training rows and L-BFGS over them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bind/module.h"
#include "bind/rows.h"
#include "bind/spline.h"
#include "rows/sparse_rows.h"
#include "solvers/bounded_lbfgs.h"
#include "solvers/objective.h"
#include "solvers/ordered.h"
#include "solvers/stages.h"

namespace geomix {
namespace {

template <class R>
nb::tuple terms(const TrainingRows<R>& self, In2<double> weights, In1<double> biases,
                In1<Index> class_start, double sharpness, double label_smoothing)
{
    const auto planes =
        planes_from<typename R::Number>(weights, biases, class_start, sharpness, label_smoothing);
    self.fit_for(planes);
    const Index n_planes = length(biases), n_inputs = width(weights);
    OwnedSums total(n_planes, n_inputs);
    bool finished;
    {
        nb::gil_scoped_release released;
        const TinyIsZero mode;
        Interrupt interrupt(python_was_interrupted);
        Team team;
        typename R::Workspace workspace;
        finished = self.rows.terms(planes, total, interrupt, team, workspace);
    }
    if (!finished) throw nb::python_error();
    const double* at = total.numbers.data();
    const auto P = static_cast<std::size_t>(n_planes), d = static_cast<std::size_t>(n_inputs);
    return nb::make_tuple(total.sums.row_weight, total.sums.loss,
                          owned<Array2>(Vector(at, at + P * d), {P, d}),
                          owned<Array1>(Vector(at + P * d, at + P * d + P), {P}),
                          owned<Array1>(Vector(at + P * d + P, at + P * d + 2 * P), {P}));
}

template <class R>
double cross_entropy(const TrainingRows<R>& self, In2<double> weights, In1<double> biases,
                     In1<Index> class_start, double sharpness)
{
    const auto planes =
        planes_from<typename R::Number>(weights, biases, class_start, sharpness, 0.0);
    self.fit_for(planes);
    nb::gil_scoped_release released;
    return self.rows.cross_entropy(planes);
}

template <class R>
Array2 class_scores(const TrainingRows<R>& self, In2<double> weights, In1<double> biases,
                    In1<Index> class_start, double sharpness)
{
    const auto planes =
        planes_from<typename R::Number>(weights, biases, class_start, sharpness, 0.0);
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

// The penalised objective over rows, of the flat planes.
template <class R>
class Penalised {
  public:
    Penalised(const TrainingRows<R>& rows, const In2<double>& weights, const In1<double>& biases,
              const In1<Index>& class_start, double label_smoothing, double shrink_to_mean)
        : rows_(rows.rows), planes_(planes_from<typename R::Number>(weights, biases, class_start,
                                                                    1.0, label_smoothing)),
          coefficients_(static_cast<std::size_t>(length(biases))), relief_(shrink_to_mean),
          total_(length(biases), width(weights))
    {
        rows.fit_for(planes_);
    }

    // With these coefficients of the planes' squared lengths.
    void begin(double sharpness, const In1<double>& coefficients)
    {
        need(length(coefficients) == static_cast<Index>(coefficients_.size()),
             "One coefficient for each plane is needed.");
        planes_.sharpness = static_cast<typename R::Number>(sharpness);
        std::copy(coefficients.data(), coefficients.data() + coefficients.size(),
                  coefficients_.begin());
    }
    // With the coefficients of a stage, from the usage of the planes at its first point.
    void begin(double sharpness, const UsagePenalty& penalty)
    {
        planes_.sharpness = static_cast<typename R::Number>(sharpness);
        penalty_ = &penalty;
    }
    const Vector& usage() const { return usage_; }

    bool operator()(const Vector& flat, double& value, Vector& gradient, Interrupt& interrupt,
                    Team& team)
    {
        planes_.assign(flat.data());
        if (!rows_.terms(planes_, total_, interrupt, team, workspace_)) return false;
        if (penalty_) set_coefficients();
        value = penalised(total_, flat.data(), coefficients_.data(),
                          static_cast<Index>(coefficients_.size()), planes_.n_inputs,
                          gradient.data(), team);
        value += shrinkage_term(relief_, flat.data(), coefficients_.data(), planes_.class_start,
                                planes_.n_inputs, gradient.data(), team);
        return true;
    }

  private:
    // The only plane of a class answers for all of its score.
    void set_coefficients()
    {
        const std::size_t n_planes = coefficients_.size();
        usage_.assign(n_planes, 1.0);
        if (n_planes + 1 > planes_.class_start.size())
            for (std::size_t p = 0; p < n_planes; ++p)
                usage_[p] = total_.sums.usage[p] / total_.sums.row_weight;
        for (std::size_t p = 0; p < n_planes; ++p) coefficients_[p] = penalty_->of(usage_[p]);
        penalty_ = nullptr;
    }

    const R& rows_;
    Planes<typename R::Number> planes_;
    Vector coefficients_, usage_;
    const UsagePenalty* penalty_ = nullptr;
    double relief_;
    OwnedSums total_;
    typename R::Workspace workspace_;
};

// At most `most` steps of a solver, until the status is not "moving"; with the value after each.
template <class Solver, class Objective>
std::pair<std::string, std::vector<double>> run_solver(Solver& solver, Index most,
                                                       const Objective& objective)
{
    Progress progress = Progress::moving;
    std::vector<double> values;
    {
        nb::gil_scoped_release released;
        const TinyIsZero mode;
        Interrupt interrupt(python_was_interrupted);
        Team team;
        const auto in_this_call = [&](const Vector& x, double& value, Vector& gradient) {
            return objective(x, value, gradient, interrupt, team);
        };
        for (Index i = 0; i < most && progress == Progress::moving; ++i) {
            progress = solver.step(in_this_call, team);
            if (progress == Progress::moving || progress == Progress::converged)
                values.push_back(solver.value());
        }
    }
    if (progress == Progress::interrupted) throw nb::python_error();
    return {name_of(progress), std::move(values)};
}

Vector flat(const In2<double>& weights, const In1<double>& biases)
{
    Vector all;
    all.reserve(weights.size() + biases.size());
    all.insert(all.end(), weights.data(), weights.data() + weights.size());
    all.insert(all.end(), biases.data(), biases.data() + biases.size());
    return all;
}

// A descent in stages, in one call: the numbers of the planes, whether it converged, and of each
// stage its sharpness, the usage of the planes and the values.
template <class R>
nb::tuple descend_by_stages(const TrainingRows<R>& rows, In2<double> weights, In1<double> biases,
                            In1<Index> class_start, double label_smoothing, double shrink_to_mean,
                            In1<double> sharpness, std::tuple<double, double, double> penalty,
                            std::tuple<Index, Index, Index> limits,
                            std::tuple<double, double, double> tols)
{
    need(length(sharpness) >= 1, "A descent needs a stage.");
    Penalised<R> objective(rows, weights, biases, class_start, label_smoothing, shrink_to_mean);
    const auto [l2, beta, delta] = penalty;
    const auto [early_limit, max_iter, rounds] = limits;
    const auto [gradient_tol, early_value_tol, value_tol] = tols;
    const StagePlan plan{{sharpness.data(), sharpness.data() + sharpness.size()},
                         {l2, beta, delta},
                         early_limit,
                         max_iter,
                         rounds,
                         gradient_tol,
                         early_value_tol,
                         value_tol};
    Staged found;
    {
        nb::gil_scoped_release released;
        const TinyIsZero mode;
        Interrupt interrupt(python_was_interrupted);
        Team team;
        found = StagedDescent(objective, plan, interrupt, team).run(flat(weights, biases));
    }
    if (found.interrupted) throw nb::python_error();
    nb::list stages;
    for (Stage& stage : found.stages) {
        const std::size_t n = stage.usage.size();
        stages.append(nb::make_tuple(stage.sharpness,
                                     owned<Array1>(std::move(stage.usage), {n}),
                                     std::move(stage.values)));
    }
    const std::size_t n = found.at.size();
    return nb::make_tuple(owned<Array1>(std::move(found.at), {n}), found.converged, stages);
}

template <class R>
class Minimizer {
  public:
    Minimizer(const TrainingRows<R>& rows, In2<double> weights, In1<double> biases,
              In1<Index> class_start, double sharpness, double label_smoothing,
              In1<double> coefficients, double shrink_to_mean, double gradient_tol,
              double value_tol)
        : objective_(rows, weights, biases, class_start, label_smoothing, shrink_to_mean),
          solver_(flat(weights, biases), gradient_tol, value_tol)
    {
        objective_.begin(sharpness, coefficients);
    }

    // "moving" or "converged" after a step, "optimal" or "stuck" where none was possible
    std::string step() { return run(1).first; }

    std::pair<std::string, std::vector<double>> run(Index most)
    {
        return run_solver(solver_, most,
                          [this](const Vector& x, double& value, Vector& gradient,
                                 Interrupt& interrupt, Team& team) {
                              return objective_(x, value, gradient, interrupt, team);
                          });
    }

    Array1 vector() const { return owned<Array1>(Vector(solver_.x()), {solver_.x().size()}); }
    double value() const { return solver_.value(); }

  private:
    Penalised<R> objective_;
    Lbfgs solver_;
};

// The same over planes whose weights keep an order.
template <class R>
class OrderedMinimizer {
  public:
    OrderedMinimizer(const TrainingRows<R>& rows, In2<double> weights, In1<double> biases,
                     In1<Index> class_start, double sharpness, double label_smoothing,
                     In1<double> coefficients, double shrink_to_mean, double gradient_tol,
                     double value_tol, In1<Index> features, In2<std::uint8_t> sides,
                     In1<double> start, In1<double> low, In1<double> high)
        : objective_(rows, weights, biases, class_start, label_smoothing, shrink_to_mean),
          order_(checked_order(length(weights), width(weights), features, sides)),
          flat_(static_cast<std::size_t>(order_.n_flat())), flat_gradient_(flat_.size()),
          solver_(checked(start), {checked(low), checked(high)}, gradient_tol, value_tol)
    {
        objective_.begin(sharpness, coefficients);
    }

    std::string step() { return run(1).first; }

    std::pair<std::string, std::vector<double>> run(Index most)
    {
        return run_solver(solver_, most,
                          [this](const Vector& x, double& value, Vector& gradient,
                                 Interrupt& interrupt, Team& team) {
                              order_.planes_at(x, flat_);
                              if (!objective_(flat_, value, flat_gradient_, interrupt, team))
                                  return false;
                              order_.gradient(x, flat_gradient_, gradient);
                              return true;
                          });
    }

    Array1 vector() const { return owned<Array1>(Vector(solver_.x()), {solver_.x().size()}); }
    double value() const { return solver_.value(); }

  private:
    static Ordered checked_order(Index n_planes, Index n_inputs, const In1<Index>& features,
                                 const In2<std::uint8_t>& sides)
    {
        need(length(sides) == n_planes && width(sides) == length(features),
             "sides needs a number for each plane and ordered feature.");
        for (Index k = 0; k < length(features); ++k)
            need(features.data()[k] >= 0 && features.data()[k] < n_inputs,
                 "An ordered feature is out of range.");
        return {n_planes,
                n_inputs,
                {features.data(), features.data() + features.size()},
                {sides.data(), sides.data() + sides.size()}};
    }

    Vector checked(const In1<double>& numbers) const
    {
        need(length(numbers) == order_.n_numbers(),
             "start, low and high need a number for each weight, bias, t and g.");
        return Vector(numbers.data(), numbers.data() + numbers.size());
    }

    Penalised<R> objective_;
    Ordered order_;
    Vector flat_, flat_gradient_;
    BoundedLbfgs solver_;
};

template <class T>
void make_dense(TrainingRows<Rows<T>>* self, Table<T> X, In1<Index> y, In1<double> weight)
{
    check_labels(y, weight, length(X), MOST_CLASSES);
    new (self) TrainingRows<Rows<T>>(y, strided(X), y.data(), weight.data(), length(X), width(X));
}

// Rows to be filled block by block.
template <class T>
void make_empty(TrainingRows<Rows<T>>* self, Index n_columns, In1<Index> y, In1<double> weight)
{
    need(n_columns >= 0, "The number of columns is negative.");
    check_labels(y, weight, length(y), MOST_CLASSES);
    new (self) TrainingRows<Rows<T>>(y, y.data(), weight.data(), length(y), n_columns);
}

template <class T>
void fill(TrainingRows<Rows<T>>& self, Index first, Table<T> X)
{
    need(first >= 0 && first % rows_in_group<T> == 0, "A block begins within a group of rows.");
    need(length(X) <= self.rows.n_rows() - first, "A block has more rows than are left.");
    need(width(X) == self.rows.n_columns(), "A block has another number of columns.");
    self.rows.fill(strided(X), first, length(X));
}

void make_sparse(TrainingRows<SparseRows>* self, AnyArray values, AnyArray columns,
                 In1<Index> start, In1<double> shift, In1<Index> y, In1<double> weight)
{
    SparseTable X = sparse_table(values, columns, start, length(shift), true);
    check_labels(y, weight, X.n_rows(), MOST_CLASSES);
    new (self)
        TrainingRows<SparseRows>(y, std::move(X), Vector(shift.data(), shift.data() + shift.size()),
                                 y.data(), weight.data());
}

void make_binned(TrainingRows<BinnedRows>* self, AnyCodes codes, const SplineParts& parts,
                 In1<Index> y, In1<double> weight)
{
    const bool wide = codes.dtype() == nb::dtype<std::uint16_t>();
    if (!wide && codes.dtype() != nb::dtype<std::uint8_t>())
        throw nb::type_error("codes must be uint8 or uint16.");
    need(width(codes) == parts.n_parts(), "codes needs a column for each part.");
    check_labels(y, weight, length(codes), MOST_CLASSES);
    const auto make = [&](auto from) {
        new (self) TrainingRows<BinnedRows>(y, parts, from, length(codes), y.data(), weight.data());
    };
    if (wide)
        make(checked_codes<std::uint16_t>(codes, parts));
    else
        make(checked_codes<std::uint8_t>(codes, parts));
}

template <class R, class Make>
void bind_kind(nb::module_& m, const char* rows_name, const char* minimizer_name,
               const char* ordered_name, Make make)
{
    make(nb::class_<TrainingRows<R>>(m, rows_name))
        .def("terms", &terms<R>)
        .def("cross_entropy", &cross_entropy<R>)
        .def("class_scores", &class_scores<R>)
        .def("descend_by_stages", &descend_by_stages<R>);
    nb::class_<Minimizer<R>>(m, minimizer_name)
        .def(nb::init<const TrainingRows<R>&, In2<double>, In1<double>, In1<Index>, double, double,
                      In1<double>, double, double, double>(),
             nb::keep_alive<1, 2>())
        .def("step", &Minimizer<R>::step)
        .def("run", &Minimizer<R>::run)
        .def_prop_ro("vector", &Minimizer<R>::vector, nb::rv_policy::automatic)
        .def_prop_ro("value", &Minimizer<R>::value);
    nb::class_<OrderedMinimizer<R>>(m, ordered_name)
        .def(nb::init<const TrainingRows<R>&, In2<double>, In1<double>, In1<Index>, double, double,
                      In1<double>, double, double, double, In1<Index>, In2<std::uint8_t>,
                      In1<double>, In1<double>, In1<double>>(),
             nb::keep_alive<1, 2>())
        .def("step", &OrderedMinimizer<R>::step)
        .def("run", &OrderedMinimizer<R>::run)
        .def_prop_ro("vector", &OrderedMinimizer<R>::vector, nb::rv_policy::automatic)
        .def_prop_ro("value", &OrderedMinimizer<R>::value);
}

template <class T>
void bind_dense(nb::module_& m, const char* rows_name, const char* minimizer_name,
                const char* ordered_name)
{
    bind_kind<Rows<T>>(m, rows_name, minimizer_name, ordered_name, [](auto&& rows) -> auto& {
        return rows
            .def("__init__", &make_dense<T>, nb::arg("X").noconvert(), nb::arg("y").noconvert(),
                 nb::arg("weight").noconvert())
            .def("__init__", &make_empty<T>, nb::arg("n_columns"), nb::arg("y").noconvert(),
                 nb::arg("weight").noconvert())
            .def("fill", &fill<T>, nb::arg("first"), nb::arg("X").noconvert());
    });
}

}  // namespace

void bind_rows(nb::module_& m)
{
    bind_dense<double>(m, "Rows64", "Minimizer64", "OrderedMinimizer64");
    bind_dense<float>(m, "Rows32", "Minimizer32", "OrderedMinimizer32");
    bind_kind<SparseRows>(m, "SparseRows", "SparseMinimizer", "SparseOrderedMinimizer",
                          [](auto&& rows) -> auto& {
        return rows.def("__init__", &make_sparse, nb::arg("data").noconvert(),
                        nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
                        nb::arg("shift").noconvert(), nb::arg("y").noconvert(),
                        nb::arg("weight").noconvert());
    });
    bind_kind<BinnedRows>(m, "BinnedRows", "BinnedMinimizer", "BinnedOrderedMinimizer",
                          [](auto&& rows) -> auto& {
        return rows.def("__init__", &make_binned, nb::arg("codes").noconvert(), nb::arg("parts"),
                        nb::arg("y").noconvert(), nb::arg("weight").noconvert());
    });
}

}  // namespace geomix
