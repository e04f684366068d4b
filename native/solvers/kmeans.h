// Weighted k-means (greedy k-means++ seeding, then Lloyd) and silhouettes; core/clustering.py is the
// same in NumPy, and both take their random draws from the caller.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "simd/aligned.h"
#include "simd/kernels.h"
#include "simd/vectors.h"

namespace geomix {

// Rows (n, d), row-major, with a copy in panels for distances.
class Points {
  public:
    Points(const double* X, Index n_rows, Index n_columns)
        : X_(X), n_rows_(n_rows), n_columns_(n_columns),
          n_groups_(padded(n_rows, DOUBLES) / DOUBLES),
          panel_(static_cast<std::size_t>(n_groups_ * DOUBLES * n_columns))
    {
        kernels().f64.pack({X, n_columns, 1}, nullptr, n_rows, n_columns, panel_.data());
    }

    Index n_rows() const { return n_rows_; }
    Index n_columns() const { return n_columns_; }
    Index stride() const { return n_groups_ * DOUBLES; }
    const double* row(Index i) const { return X_ + i * n_columns_; }

    // out[centre * stride() + row]
    void distances(const double* centres, Index n_centres, double* out) const
    {
        kernels().squared_distances(panel_.data(), n_groups_, centres, n_centres, n_columns_, out);
    }

  private:
    const double* X_;
    Index n_rows_, n_columns_, n_groups_;
    Aligned<double> panel_;
};

struct Clustering {
    std::vector<Index> labels;
    Vector centres;  // (k, d)
    double inertia = 0.0;
};

// First row at which the running sum of `mass` exceeds draw * (whole sum).
inline Index draw_row(const Vector& mass, double draw)
{
    double total = 0.0;
    for (double m : mass) total += m;
    double running = 0.0;
    for (std::size_t i = 0; i < mass.size(); ++i) {
        running += mass[i];
        if (running > draw * total) return static_cast<Index>(i);
    }
    return static_cast<Index>(mass.size()) - 1;
}

// Rows to start from: each next one is the best of `n_trials` draws by squared distance.
inline Vector seed_centres(const Points& points, const double* weight, Index k, const double* draws,
                           Index n_trials)
{
    const Index n = points.n_rows(), d = points.n_columns();
    Vector centres(static_cast<std::size_t>(k * d));
    Vector mass(weight, weight + n), closest(static_cast<std::size_t>(points.stride()));
    Index picked = draw_row(mass, draws[0]);
    std::copy_n(points.row(picked), d, centres.begin());
    points.distances(centres.data(), 1, closest.data());
    Vector trial(closest.size()), best(closest.size());
    for (Index c = 1; c < k; ++c) {
        for (Index i = 0; i < n; ++i) mass[i] = weight[i] * closest[i];
        double lowest = INFINITY;
        for (Index t = 0; t < n_trials; ++t) {
            const Index row = draw_row(mass, draws[c * n_trials + t]);
            points.distances(points.row(row), 1, trial.data());
            double left = 0.0;
            for (Index i = 0; i < n; ++i) {
                trial[i] = std::min(trial[i], closest[i]);
                left += weight[i] * trial[i];
            }
            if (left < lowest) lowest = left, picked = row, best.swap(trial);
        }
        closest.swap(best);
        std::copy_n(points.row(picked), d, centres.begin() + c * d);
    }
    return centres;
}

// Nearest centre of every row and its squared distance; the first of equals.
inline void nearest(const Points& points, const Vector& centres, Index k, Vector& work,
                    std::vector<Index>& labels, Vector& squared)
{
    const Index n = points.n_rows(), stride = points.stride();
    work.resize(static_cast<std::size_t>(k * stride));
    points.distances(centres.data(), k, work.data());
    for (Index i = 0; i < n; ++i) labels[i] = 0, squared[i] = work[i];
    for (Index c = 1; c < k; ++c)
        for (Index i = 0; i < n; ++i)
            if (work[c * stride + i] < squared[i]) squared[i] = work[c * stride + i], labels[i] = c;
}

// Weighted means; a cluster left without weight moves to the row farthest from its centre.
inline void move_centres(const Points& points, const double* weight, Clustering& now, Index k,
                         Vector squared)
{
    const Index n = points.n_rows(), d = points.n_columns();
    Vector sums(static_cast<std::size_t>(k * d)), mass(static_cast<std::size_t>(k));
    for (Index i = 0; i < n; ++i) {
        const double* x = points.row(i);
        double* sum = sums.data() + now.labels[i] * d;
        mass[now.labels[i]] += weight[i];
        for (Index j = 0; j < d; ++j) sum[j] += weight[i] * x[j];
    }
    for (Index c = 0; c < k; ++c) {
        double* centre = now.centres.data() + c * d;
        if (mass[c] > 0.0) {
            for (Index j = 0; j < d; ++j) centre[j] = sums[c * d + j] / mass[c];
            continue;
        }
        const Index far = std::max_element(squared.begin(), squared.end()) - squared.begin();
        squared[far] = -1.0;
        std::copy_n(points.row(far), d, centre);
    }
}

inline Clustering kmeans(const Points& points, const double* weight, Index k, const double* draws,
                         Index n_trials, Index most_rounds, double tol)
{
    const Index n = points.n_rows();
    Clustering now{std::vector<Index>(static_cast<std::size_t>(n)),
                   seed_centres(points, weight, k, draws, n_trials), 0.0};
    Vector work, squared(static_cast<std::size_t>(n));
    nearest(points, now.centres, k, work, now.labels, squared);
    for (Index round = 0; round < most_rounds; ++round) {
        const Vector before = now.centres;
        const std::vector<Index> labels_before = now.labels;
        move_centres(points, weight, now, k, squared);
        nearest(points, now.centres, k, work, now.labels, squared);
        double shift = 0.0;
        for (std::size_t i = 0; i < before.size(); ++i)
            shift += (now.centres[i] - before[i]) * (now.centres[i] - before[i]);
        if (now.labels == labels_before || shift <= tol) break;
    }
    for (Index i = 0; i < n; ++i) now.inertia += weight[i] * squared[i];
    return now;
}

// Mean of (b - a) / max(a, b) over rows: a the mean distance within the row's cluster, b to the
// nearest other one; 0 for a row alone. labels : (n_labelings, n_rows) with values below k.
inline Vector silhouettes(const Points& points, const Index* labels, Index n_labelings, Index k)
{
    const Index n = points.n_rows();
    Vector result(static_cast<std::size_t>(n_labelings));
    Vector row(static_cast<std::size_t>(points.stride())), sum(static_cast<std::size_t>(k));
    std::vector<Index> count(static_cast<std::size_t>(n_labelings * k));
    for (Index l = 0; l < n_labelings; ++l)
        for (Index i = 0; i < n; ++i) ++count[l * k + labels[l * n + i]];
    for (Index i = 0; i < n; ++i) {
        points.distances(points.row(i), 1, row.data());
        for (Index r = 0; r < points.stride(); ++r) row[r] = std::sqrt(row[r]);
        for (Index l = 0; l < n_labelings; ++l) {
            const Index* label = labels + l * n;
            const Index* size = count.data() + l * k;
            const Index own = label[i];
            if (size[own] < 2) continue;
            std::fill(sum.begin(), sum.end(), 0.0);
            for (Index r = 0; r < n; ++r) sum[label[r]] += row[r];
            const double a = sum[own] / double(size[own] - 1);
            double b = INFINITY;
            for (Index c = 0; c < k; ++c)
                if (c != own && size[c] > 0) b = std::min(b, sum[c] / double(size[c]));
            const double widest = std::max(a, b);
            if (std::isfinite(b) && widest > 0.0) result[l] += (b - a) / widest;
        }
    }
    for (double& value : result) value /= double(n);
    return result;
}

}  // namespace geomix
