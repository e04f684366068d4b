// Clustering, pairs of columns, and the temperature of held-out scores.
#include <nanobind/stl/pair.h>

#include "bind/arrays.h"
#include "bind/module.h"
#include "solvers/calibration.h"
#include "solvers/kmeans.h"
#include "solvers/pair_gains.h"

namespace geomix {
namespace {

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
        owned<nb::ndarray<nb::numpy, Index, nb::ndim<1>>>(std::move(found.labels), {n}),
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
    return owned<nb::ndarray<nb::numpy, Index, nb::ndim<1>>>(std::move(labels), {n});
}

Array1 silhouettes_of(In2<double> X, In2<Index> labels)
{
    need(width(labels) == length(X), "One label for each row is needed.");
    Index k = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        need(labels.data()[i] >= 0 && labels.data()[i] < (Index(1) << 20),
             "A label is out of range.");
        k = std::max(k, labels.data()[i] + 1);
    }
    Vector found;
    {
        nb::gil_scoped_release released;
        found =
            silhouettes(Points(X.data(), length(X), width(X)), labels.data(), length(labels), k);
    }
    const std::size_t n = found.size();
    return owned<Array1>(std::move(found), {n});
}

Array2 gains_of_pairs(In2<std::uint8_t> bins, In2<double> terms, Index n_bins)
{
    need(n_bins >= 1 && n_bins <= 256, "n_bins is out of range.");
    need(length(terms) == width(bins) && width(terms) % 3 == 0,
         "terms needs three numbers of each class for each row.");
    for (std::size_t i = 0; i < bins.size(); ++i)
        need(bins.data()[i] < n_bins, "A bin is out of range.");
    const std::size_t n = bins.shape(0);
    Vector gains(n * n);
    {
        nb::gil_scoped_release released;
        pair_gains(bins.data(), terms.data(), length(bins), width(bins), width(terms) / 3, n_bins,
                   gains.data());
    }
    return owned<Array2>(std::move(gains), {n, n});
}

}  // namespace

void bind_clustering(nb::module_& m)
{
    m.def("calibrate", &calibrate_scores);
    m.def("kmeans", &cluster);
    m.def("nearest", &nearest_centre);
    m.def("silhouettes", &silhouettes_of);
    m.def("pair_gains", &gains_of_pairs, nb::arg("bins").noconvert(), nb::arg("terms").noconvert(),
          nb::arg("n_bins"));
}

}  // namespace geomix
