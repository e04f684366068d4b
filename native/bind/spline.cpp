// The parts of a spline lift, for training and for prediction, and the codes of tables.
#include <nanobind/stl/optional.h>

#include <cmath>
#include <optional>

#include "bind/module.h"
#include "bind/spline.h"
#include "predict/spline_model.h"
#include "rows/binning.h"
#include "solvers/calm.h"

namespace geomix {
namespace {

Vector vector_of(const In1<double>& numbers)
{
    return Vector(numbers.data(), numbers.data() + numbers.size());
}

// interval, fraction : of the representative of each bin.
void add_curve(SplineParts& parts, In1<Index> interval, In1<double> fraction, bool has_missing,
               In1<double> mean)
{
    const Index n_intervals = length(mean) - has_missing;
    need(n_intervals >= 1, "A curve needs a step.");
    need(length(interval) == length(fraction), "interval and fraction differ in length.");
    need(length(interval) < MOST_BINS_OF_PART, "A curve has too many bins.");
    SplinePart part{SplinePart::curve, length(mean), length(interval) + 1, has_missing,
                    vector_of(mean),   {},           vector_of(fraction)};
    for (Index b = 0; b < length(interval); ++b) {
        const Index k = interval.data()[b];
        need(k >= 0 && k < n_intervals, "interval holds a number that is not a step.");
        part.interval.push_back(static_cast<std::int32_t>(k));
    }
    parts.add(std::move(part));
}

void add_levels(SplineParts& parts, Index n_levels, bool has_missing, In1<double> mean)
{
    need(n_levels >= 0 && n_levels + 2 <= MOST_BINS_OF_PART, "n_levels is out of range.");
    need(length(mean) == n_levels + has_missing, "mean needs a number for each step.");
    parts.add(
        {SplinePart::levels, length(mean), n_levels + 2, has_missing, vector_of(mean), {}, {}});
}

void add_pair(SplineParts& parts, Index n_first, Index n_second, bool first_ordered,
              bool second_ordered, In1<double> mean)
{
    need(n_first >= 1 && n_first <= MOST_BINS_OF_PART && n_second >= 1 &&
             n_second <= MOST_BINS_OF_PART && n_first * n_second <= MOST_BINS_OF_PART,
         "The cells of a pair are out of range.");
    need(length(mean) == (n_first - 1) * (n_second - 1), "mean needs a number for each step.");
    parts.add({SplinePart::pair,
               length(mean),
               n_first * n_second,
               true,
               vector_of(mean),
               {},
               {},
               n_first,
               n_second,
               first_ordered,
               second_ordered});
}

SplineParts with_units(const SplineParts& parts, In1<double> units)
{
    need(length(units) == parts.n_steps(), "units needs a number for each step.");
    SplineParts copy = parts;
    copy.set_units(vector_of(units));
    return copy;
}

void check_side(const SplineCoder& coder, Index part, Index column, Index factor)
{
    need(part >= 0 && part <= coder.n_parts(), "Parts must come in order.");
    need(column >= 0, "column must not be negative.");
    need(factor >= 1 && factor <= MOST_BINS_OF_PART, "factor is out of range.");
}

void add_number(SplineCoder& coder, Index part, Index column, In1<double> edges, Index missing,
                Index factor)
{
    check_side(coder, part, column, factor);
    need(length(edges) < MOST_BINS_OF_PART, "There are too many edges.");
    need(missing >= 0 && missing < MOST_BINS_OF_PART, "missing is out of range.");
    for (Index i = 0; i < length(edges); ++i)
        need(i == 0 ? edges.data()[i] == edges.data()[i] : edges.data()[i - 1] <= edges.data()[i],
             "edges must rise.");
    coder.add_number(part, column, vector_of(edges), missing, factor);
}

void add_category(SplineCoder& coder, Index part, Index column, Index n_levels, Index missing,
                  Index unknown, Index factor)
{
    check_side(coder, part, column, factor);
    need(n_levels >= 0 && n_levels < MOST_BINS_OF_PART, "n_levels is out of range.");
    need(missing >= 0 && missing < MOST_BINS_OF_PART, "missing is out of range.");
    need(unknown >= 0 && unknown < MOST_BINS_OF_PART, "unknown is out of range.");
    coder.add_category(part, column, n_levels, missing, unknown, factor);
}

template <class Code, class T>
nb::object codes_as(const SplineCoder& coder, const Table<T>& X)
{
    const auto n = static_cast<std::size_t>(length(X));
    const auto n_parts = static_cast<std::size_t>(coder.n_parts());
    std::vector<Code> codes(n * n_parts);
    {
        nb::gil_scoped_release released;
        coder.code(strided(X), length(X), codes.data());
    }
    using Codes = nb::ndarray<nb::numpy, Code, nb::ndim<2>>;
    return nb::cast(owned<Codes>(std::move(codes), {n, n_parts}));
}

// As uint16 if `wide`, or else uint8.
template <class T>
nb::object codes(const SplineCoder& coder, Table<T> X, bool wide)
{
    need(coder.n_columns() <= width(X), "X has too few columns.");
    need(coder.largest() <= (wide ? 65535 : 255), "A part has too many bins for its codes.");
    return wide ? codes_as<std::uint16_t>(coder, X) : codes_as<std::uint8_t>(coder, X);
}

// --- the lift of a model for prediction ---

bool all_rise(const In1<double>& numbers)
{
    for (Index i = 0; i < length(numbers); ++i) {
        const double at = numbers.data()[i];
        if (!std::isfinite(at) || (i > 0 && !(numbers.data()[i - 1] < at))) return false;
    }
    return true;
}

void lift_curve(SplineLift& lift, Index column, In1<double> knots, bool has_missing,
                In1<double> mean)
{
    need(column >= 0, "column must not be negative.");
    need(length(knots) >= 2 && all_rise(knots), "A curve needs two knots, and they must rise.");
    need(length(mean) == length(knots) - 1 + has_missing, "mean needs a number for each step.");
    const Vector inner(knots.data() + 1, knots.data() + length(knots) - 1);
    lift.add({LiftPart::curve,
              {{column, inner, -1, 0}},
              vector_of(knots),
              has_missing,
              vector_of(mean)});
}

void lift_levels(SplineLift& lift, Index column, Index n_levels, bool has_missing, In1<double> mean)
{
    need(column >= 0, "column must not be negative.");
    need(n_levels >= 0 && n_levels + 2 <= MOST_BINS_OF_PART, "n_levels is out of range.");
    need(length(mean) == n_levels + has_missing, "mean needs a number for each step.");
    lift.add({LiftPart::levels, {{column, {}, n_levels, 0}}, {}, has_missing, vector_of(mean)});
}

// Thresholds of a number, or no array for a category; n_cells counts that for missing ones.
LiftSide side_of_pair(Index column, const std::optional<In1<double>>& thresholds, Index n_cells)
{
    need(column >= 0, "column must not be negative.");
    need(n_cells >= 1 && n_cells <= MOST_BINS_OF_PART, "The cells of a pair are out of range.");
    if (!thresholds) return {column, {}, n_cells - 1, n_cells};
    need(length(*thresholds) + 2 == n_cells && all_rise(*thresholds),
         "Thresholds must rise, and separate as many cells as the pair has.");
    return {column, vector_of(*thresholds), -1, n_cells};
}

void lift_pair(SplineLift& lift, Index first_column, Index second_column,
               std::optional<In1<double>> first, std::optional<In1<double>> second, Index n_first,
               Index n_second, In1<double> mean)
{
    std::vector<LiftSide> sides{side_of_pair(first_column, first, n_first),
                                side_of_pair(second_column, second, n_second)};
    need(n_first * n_second <= MOST_BINS_OF_PART, "The cells of a pair are out of range.");
    need(length(mean) == (n_first - 1) * (n_second - 1), "mean needs a number for each step.");
    lift.add({LiftPart::pair, std::move(sides), {}, true, vector_of(mean)});
}

// Curve j of a plane has steps from first[j] on, and knots start[j] to start[j + 1] of mass.
Array2 calm_steps(In2<double> weights, In1<Index> first, In1<Index> start, In1<double> mass,
                  double tolerance)
{
    const Index n_curves = length(first), n_steps = width(weights);
    need(length(start) == n_curves + 1 && start.data()[0] == 0 &&
             start.data()[n_curves] == length(mass),
         "start needs the knots of each curve.");
    for (Index j = 0; j < n_curves; ++j) {
        const Index n_knots = start.data()[j + 1] - start.data()[j];
        need(n_knots >= 1 && n_knots <= length(mass), "A curve needs a knot.");
        need(first.data()[j] >= 0 && first.data()[j] <= n_steps - (n_knots - 1),
             "A curve has more steps than there are.");
    }
    Vector found(weights.data(), weights.data() + weights.size());
    {
        nb::gil_scoped_release released;
        Vector values;
        for (Index plane = 0; plane < length(weights); ++plane)
            for (Index j = 0; j < n_curves; ++j) {
                const Index from = start.data()[j], n_knots = start.data()[j + 1] - from;
                calm_curve(found.data() + plane * n_steps + first.data()[j], mass.data() + from,
                           n_knots, tolerance, values);
            }
    }
    return owned<Array2>(std::move(found), {weights.shape(0), weights.shape(1)});
}

}  // namespace

void bind_spline(nb::module_& m)
{
    m.def("calm_steps", &calm_steps);
    nb::class_<SplineParts>(m, "SplineParts")
        .def(nb::init<>())
        .def("add_curve", &add_curve, nb::arg("interval").noconvert(),
             nb::arg("fraction").noconvert(), nb::arg("has_missing"), nb::arg("mean").noconvert())
        .def("add_levels", &add_levels, nb::arg("n_levels"), nb::arg("has_missing"),
             nb::arg("mean").noconvert())
        .def("add_pair", &add_pair, nb::arg("n_first"), nb::arg("n_second"),
             nb::arg("first_ordered"), nb::arg("second_ordered"), nb::arg("mean").noconvert())
        .def("with_units", &with_units, nb::arg("units").noconvert());
    nb::class_<SplineLift>(m, "SplineLift")
        .def(nb::init<>())
        .def("add_curve", &lift_curve, nb::arg("column"), nb::arg("knots").noconvert(),
             nb::arg("has_missing"), nb::arg("mean").noconvert())
        .def("add_levels", &lift_levels, nb::arg("column"), nb::arg("n_levels"),
             nb::arg("has_missing"), nb::arg("mean").noconvert())
        .def("add_pair", &lift_pair, nb::arg("first_column"), nb::arg("second_column"),
             nb::arg("first").none(), nb::arg("second").none(), nb::arg("n_first"),
             nb::arg("n_second"), nb::arg("mean").noconvert());
    nb::class_<SplineCoder>(m, "SplineCoder")
        .def(nb::init<>())
        .def("add_number", &add_number, nb::arg("part"), nb::arg("column"),
             nb::arg("edges").noconvert(), nb::arg("missing"), nb::arg("factor"))
        .def("add_category", &add_category, nb::arg("part"), nb::arg("column"), nb::arg("n_levels"),
             nb::arg("missing"), nb::arg("unknown"), nb::arg("factor"))
        .def("codes", &codes<double>, nb::arg("X").noconvert(), nb::arg("wide"))
        .def("codes", &codes<float>, nb::arg("X").noconvert(), nb::arg("wide"));
}

}  // namespace geomix
