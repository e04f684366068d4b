// Predictions for a block of rows and for one row, by the same operations in the same order.
//
//   u = clip((x - mean) / scale), 0 where x is missing;  v = R u;  phi = v or [cos(v O); sin(v O)];
//   z = c W phi + b, c = 1 or sqrt(1/D);  s = soft-OR(z);  p = softmax(s / T)
//
// or z by looking up (predict/spline.h); s is the mean over the members of an ensemble.
//
// A block keeps 8 rows side by side in a pack, one row keeps 8 outputs; each number is the same
// sequence of operations either way, so a prediction depends on its row alone.
#pragma once

#include "predict/fourier32.h"
#include "predict/pooling.h"
#include "predict/spline.h"
#include "rows/panel.h"
#include "simd/elementary.h"
#include "simd/multiply.h"

namespace geomix {
namespace GEOMIX_LEVEL {

// With weights up to 1e100 no score can overflow below this bound (see core/lifts.py).
constexpr double LARGEST_STANDARDIZED = 1e150;

GEOMIX_INLINE Pack<double> standardized(Pack<double> x, Pack<double> mean, Pack<double> inverse)
{
    const Pack<double> bound = splat(LARGEST_STANDARDIZED), zero = splat(0.0);
    const Pack<double> u = (x - mean) * inverse;
    // NaN is neither below nor above zero: a missing number counts as the mean.
    return choose_less(u, zero, larger(u, zero - bound),
                       choose_less(zero, u, smaller(u, bound), zero));
}

template <class F>
GEOMIX_INLINE void each_pack(double* values, Index n_values, F f)
{
    for (Index i = 0; i < n_values; i += DOUBLES) store(values + i, f(load(values + i)));
}

// One group of the kept columns: four at a time where they and the rows lie side by side.
GEOMIX_INLINE void pack_kept(const Model& m, Strided<double> X, Index n_rows, double* panel)
{
    constexpr int n = DOUBLES;
    const bool whole = n_rows >= n && X.column_step == 1;
    for (Index j = 0; j < m.n_kept;) {
        const Index column = m.kept[j];
        if (whole && j + 4 <= m.n_kept && m.kept[j + 3] == column + 3) {
            for (int i = 0; i < n; i += 4) {
                const double* at = X.data + i * X.row_step + column;
                const double* const four[4] = {at, at + X.row_step, at + 2 * X.row_step,
                                               at + 3 * X.row_step};
                transpose_four<double>(four, panel + j * n + i, n);
            }
            j += 4;
            continue;
        }
        for (int i = 0; i < n; ++i)
            panel[j * n + i] = i < n_rows ? X.data[i * X.row_step + column * X.column_step] : 0.0;
        ++j;
    }
}

static void standardize_block(const Model& m, Strided<double> X, Index n_rows, double* panel)
{
    constexpr int n = DOUBLES;
    for (Index start = 0; start < n_rows; start += n) {
        double* group = panel + start * m.n_kept;
        pack_kept(m, {X.data + start * X.row_step, X.row_step, X.column_step}, n_rows - start,
                  group);
        for (Index j = 0; j < m.n_kept; ++j)
            store(group + j * n,
                  standardized(load(group + j * n), splat(m.mean[j]), splat(m.inverse_scale[j])));
    }
}

// angles [group][frequency][lane] -> phi [group][cosines, sines][lane], not yet scaled
static void fourier_block(const Model& m, const double* angles, Index n_groups, double* phi)
{
    constexpr int n = DOUBLES;
    for (Index g = 0; g < n_groups; ++g) {
        double* cosines = phi + g * m.n_lifted * n;
        double* sines = cosines + m.n_frequencies * n;
        each_sine_cosine(angles + g * m.n_frequencies * n, m.n_frequencies * n,
                         [=](Index i, SineCosine both) {
                             store(cosines + i, both.cosine);
                             store(sines + i, both.sine);
                         });
    }
}

// phi -> z. The lift's scale is applied to z, which has fewer numbers than phi.
static void score_block(const Model& m, const double* phi, Index n_groups, double* z)
{
    constexpr int n = DOUBLES;
    multiply_by_segments<double>(m.weight_columns.segment, m.weights, nullptr, m.n_planes,
                                 m.n_lifted, phi, n_groups, z);
    const Pack<double> scale = splat(m.lift_scale);
    for (Index g = 0; g < n_groups; ++g)
        for (Index p = 0; p < m.n_planes; ++p) {
            double* at = z + (g * m.n_planes + p) * n;
            store(at, fused(load(at), scale, splat(m.biases[p])));
        }
}

struct BlockScratch {
    double *kept, *rotated, *angles, *lifted, *scores, *end;
    BlockScratch(const Model& m, double* at)
    {
        kept = at;
        rotated = kept + ROWS_PER_BLOCK * m.n_kept;
        angles = rotated + ROWS_PER_BLOCK * m.n_rotated;
        lifted = angles + ROWS_PER_BLOCK * m.n_frequencies;
        scores = lifted + ROWS_PER_BLOCK * m.n_lifted;
        end = scores + score_scratch(m);
    }
};

struct ScoreScratch {
    double *z, *a, *s, *e, *pools;
    ScoreScratch(const Model& m, double* at)
    {
        z = at;
        a = z + ROWS_PER_BLOCK * m.n_planes;
        s = a + ROWS_PER_BLOCK * m.n_planes;
        e = s + ROWS_PER_BLOCK * m.n_classes;
        pools = e + ROWS_PER_BLOCK * m.n_classes;
    }
};

// Means over the members of an ensemble: [class, member][lane] -> [class][lane].
GEOMIX_INLINE void average_group(const double* pools, Index n_classes, Index n_members, double* s)
{
    constexpr int n = DOUBLES;
    const Pack<double> all = splat(static_cast<double>(n_members));
    for (Index c = 0; c < n_classes; ++c) {
        Pack<double> sum = load(pools + c * n_members * n);
        for (Index i = 1; i < n_members; ++i) sum = sum + load(pools + (c * n_members + i) * n);
        store(s + c * n, sum / all);
    }
}

// From the plane scores of a block to the outputs that are wanted.
static void answer_scores(const Model& m, Index n_rows, const Answers& out, const ScoreScratch& at)
{
    constexpr int n = DOUBLES;
    const Index n_groups = padded(n_rows, n) / n;
    if (out.plane_scores) unpack(at.z, n_rows, m.n_planes, out.plane_scores);
    if (!out.responsibilities && !out.class_scores && !out.probabilities) return;
    const Pack<double> cooler = splat(m.inverse_temperature);
    for (Index g = 0; g < n_groups; ++g) {
        double *s = at.s + g * m.n_classes * n, *e = at.e + g * m.n_classes * n;
        double *z = at.z + g * m.n_planes * n, *a = at.a + g * m.n_planes * n;
        double* pools = m.n_members == 1 ? s : at.pools;
        if (out.responsibilities)
            pool_group<double, true>(z, m.pool_start, m.n_pools, m.sharpness, pools, a);
        else
            pool_group<double, false>(z, m.pool_start, m.n_pools, m.sharpness, pools, a);
        if (m.n_members > 1) {
            average_group(pools, m.n_classes, m.n_members, s);
            const Pack<double> all = splat(static_cast<double>(m.n_members));
            each_pack(a, m.n_planes * n, [=](Pack<double> share) { return share / all; });
        }
        for (Index c = 0; c < m.n_classes; ++c) store(s + c * n, load(s + c * n) * cooler);
        if (!out.probabilities) continue;
        const Pack<double> total = exponentiate_group<double>(s, m.n_classes, e).total;
        const Pack<double> inverse = splat(1.0) / total;
        for (Index c = 0; c < m.n_classes; ++c) store(e + c * n, load(e + c * n) * inverse);
    }
    if (out.responsibilities) unpack(at.a, n_rows, m.n_planes, out.responsibilities);
    if (out.class_scores) unpack(at.s, n_rows, m.n_classes, out.class_scores);
    if (out.probabilities) unpack(at.e, n_rows, m.n_classes, out.probabilities);
}

static void score_lifted_row(const Model& m, const double* v, double* scratch, double* z);

// Standardised and rotated rows in panels -> z, with features in float32 but for far rows.
static void score_fourier32(const Model& m, const double* panel, Index n_groups, double* scratch,
                            double* z)
{
    constexpr Index n = DOUBLES;
    const BlockScratch32 at(m, scratch);
    bool far[ROWS_PER_BLOCK];
    score_block32(m, panel, n_groups, at, z);
    if (!find_far(m, panel, n_groups, far)) return;
    double *v = at.row, *lifted = v + padded(m.n_rotated, n), *one = v + lifted_scratch(m);
    for (Index i = 0; i < n_groups * n; ++i) {
        if (!far[i]) continue;
        const Index group = i / n, lane = i % n;
        for (Index j = 0; j < m.n_rotated; ++j) v[j] = panel[(group * m.n_rotated + j) * n + lane];
        score_lifted_row(m, v, lifted, one);
        for (Index p = 0; p < m.n_planes; ++p) z[(group * m.n_planes + p) * n + lane] = one[p];
    }
}

static void answer(const Model& m, Strided<double> X, Index n_rows, const Answers& out,
                   double* scratch)
{
    constexpr int n = DOUBLES;
    const BlockScratch at(m, scratch);
    const Index n_groups = padded(n_rows, n) / n;
    if (m.spline) {
        double* scores = scratch + spline_scratch(m, n);
        spline_block(m, X, n_rows, scratch, scores);
        return answer_scores(m, n_rows, out, ScoreScratch(m, scores));
    }
    standardize_block(m, X, n_rows, at.kept);
    const double* phi = at.kept;
    if (m.rotation) {
        multiply<double>(m.rotation, nullptr, m.n_rotated, m.n_kept, phi, n_groups, at.rotated);
        phi = at.rotated;
    }
    if (m.frequencies32) {
        score_fourier32(m, phi, n_groups, at.end, at.scores);
        return answer_scores(m, n_rows, out, ScoreScratch(m, at.scores));
    }
    if (m.frequencies) {
        multiply<double>(m.frequencies, nullptr, m.n_frequencies, m.n_rotated, phi, n_groups,
                         at.angles);
        fourier_block(m, at.angles, n_groups, at.lifted);
        phi = at.lifted;
    }
    score_block(m, phi, n_groups, at.scores);
    answer_scores(m, n_rows, out, ScoreScratch(m, at.scores));
}

// Lifted rows alone (the model's frequencies and nothing else), row-major.
template <class T>
static void fourier(const Model& m, Strided<double> V, Index n_rows, T* phi, double* scratch)
{
    const BlockScratch at(m, scratch);
    const Index n_groups = padded(n_rows, DOUBLES) / DOUBLES;
    pack<double>(V, nullptr, n_rows, m.n_rotated, at.rotated);
    multiply<double>(m.frequencies, nullptr, m.n_frequencies, m.n_rotated, at.rotated, n_groups,
                     at.angles);
    fourier_block(m, at.angles, n_groups, at.lifted);
    const Pack<double> scale = splat(m.lift_scale);
    each_pack(at.lifted, n_groups * m.n_lifted * DOUBLES,
              [=](Pack<double> v) { return v * scale; });
    unpack(at.lifted, n_rows, m.n_lifted, phi);
}

// --- one row ---

// The same over numbers that were just written one by one. They are read one by one too: a
// load of a whole pack would wait until all of them have reached the cache.
template <class F>
GEOMIX_INLINE void each_fresh_pack(double* v, Index n_values, F f)
{
    for (Index i = 0; i < n_values; i += DOUBLES, v += DOUBLES)
        store(v, f(eight(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7])));
}
static void exponentials(double* values, Index n_values)
{
    each_fresh_pack(values, n_values, [](Pack<double> v) { return exponential<double>(v); });
}
static void logarithms(double* values, Index n_values)
{
    each_fresh_pack(values, n_values, [](Pack<double> v) { return logarithm<double>(v); });
}

static void standardize_row(const Model& m, const double* x, double* u)
{
    constexpr int n = DOUBLES;
    Index j = 0;
    if (m.keeps_all)
        for (; j + n <= m.n_kept; j += n)
            store(u + j, standardized(load(x + j), load(m.mean + j), load(m.inverse_scale + j)));
    for (; j < m.n_kept; ++j) {
        const double value = (x[m.kept[j]] - m.mean[j]) * m.inverse_scale[j];
        const double low = value < -LARGEST_STANDARDIZED ? -LARGEST_STANDARDIZED : value;
        const double clipped = LARGEST_STANDARDIZED < low ? LARGEST_STANDARDIZED : low;
        u[j] = value < 0.0 || 0.0 < value ? clipped : 0.0;
    }
}

static void fourier_row(const Model& m, const double* angles, double* phi)
{
    double* sines = phi + m.n_frequencies;
    Pack<double> first_sines = splat(0.0);
    each_sine_cosine(angles, m.n_frequencies, [&](Index f, SineCosine both) {
        store(sines + f, both.sine);
        store(phi + f, both.cosine);
        if (f == 0) first_sines = both.sine;
    });
    store(sines, first_sines);  // the last pack of cosines may have run over their end
}

// s : [class, member] -> [class], divided by the temperature
static void average_row(const Model& m, double* s, double* a)
{
    const double all = static_cast<double>(m.n_members);
    for (Index c = 0; c < m.n_classes; ++c) {
        double sum = s[c * m.n_members];
        for (Index i = 1; i < m.n_members; ++i) sum += s[c * m.n_members + i];
        s[c] = sum / all * m.inverse_temperature;
    }
    for (Index p = 0; p < m.n_planes; ++p) a[p] = a[p] / all;
}

// z, a : (n_planes,) padded;  s : (n_pools,) padded;  work : 3 times padded n_pools
// `a` ends as responsibilities if `with_shares`, and is scratch otherwise.
static void pool_row(const Model& m, const double* z, double* a, double* s, double* work,
                     bool with_shares)
{
    const Index width = padded(m.n_pools, DOUBLES);
    const double cooler = m.n_members == 1 ? m.inverse_temperature : 1.0;
    double *top = work, *total = work + width, *logs = work + 2 * width;
    bool single = true;
    for (Index c = 0; c < m.n_pools; ++c) {
        const Index first = m.pool_start[c], end = m.pool_start[c + 1];
        single &= end - first == 1;
        double best = z[first];
        for (Index p = first + 1; p < end; ++p) best = best < z[p] ? z[p] : best;
        top[c] = best;
        for (Index p = first; p < end; ++p) a[p] = (z[p] - best) * m.sharpness;
    }
    if (!single) exponentials(a, m.n_planes);
    for (Index c = 0; c < m.n_pools; ++c) {
        const Index first = m.pool_start[c], end = m.pool_start[c + 1];
        total[c] = 0.0;
        for (Index p = first; p < end; ++p) total[c] += a[p];
    }
    for (Index c = 0; c < width; ++c) logs[c] = c < m.n_pools ? total[c] : 1.0;
    if (!single) logarithms(logs, m.n_pools);
    for (Index c = 0; c < m.n_pools; ++c) {
        const Index first = m.pool_start[c], end = m.pool_start[c + 1];
        const bool alone = end - first == 1;
        const double inverse = 1.0 / total[c];
        s[c] = (alone ? top[c] : fused(logs[c], m.inverse_sharpness, top[c])) * cooler;
        for (Index p = first; with_shares && p < end; ++p) a[p] = alone ? 1.0 : a[p] * inverse;
    }
    if (m.n_members > 1) average_row(m, s, a);
}

static void softmax_row(const double* s, Index n_classes, double* e, double* p)
{
    double top = s[0];
    for (Index c = 1; c < n_classes; ++c) top = top < s[c] ? s[c] : top;
    for (Index c = 0; c < padded(n_classes, DOUBLES); ++c) e[c] = c < n_classes ? s[c] - top : 0.0;
    exponentials(e, n_classes);
    double total = 0.0;
    for (Index c = 0; c < n_classes; ++c) total += e[c];
    const double inverse = 1.0 / total;
    for (Index c = 0; c < n_classes; ++c) p[c] = e[c] * inverse;
}

// Plane scores of one standardised and rotated row, padded.
static void score_lifted_row(const Model& m, const double* v, double* scratch, double* z)
{
    const double* phi = v;
    if (m.frequencies) {
        double* lifted = scratch + padded(m.n_frequencies, DOUBLES);
        row_times_columns(v, m.n_rotated, m.frequency_columns, scratch);
        fourier_row(m, scratch, lifted);
        phi = lifted;
    }
    row_times_columns(phi, m.n_lifted, m.weight_columns, z);
    for (Index p = 0; p < m.n_planes; ++p) z[p] = fused(z[p], m.lift_scale, m.biases[p]);
}

// Plane scores of one row, padded; room32 : row_scratch32(model) doubles
static void score_row(const Model& m, const double* x, double* scratch, double* room32, double* z)
{
    constexpr int n = DOUBLES;
    if (m.spline) return spline_row(m, x, scratch, z);
    double* u = scratch;
    double* rotated = u + padded(m.n_kept, n);
    standardize_row(m, x, u);
    const double* v = u;
    if (m.rotation) {
        row_times_columns(v, m.n_kept, m.rotation_columns, rotated);
        v = rotated;
    }
    if (m.frequencies32 && !is_far(m, v))
        return score_row32(m, v, reinterpret_cast<float*>(room32), z);
    score_lifted_row(m, v, rotated + padded(m.n_rotated, n), z);
}

static void answer_row(const Model& m, const double* x, const Answers& out, double* scratch)
{
    constexpr int n = DOUBLES;
    double* z = scratch + spline_scratch(m, 1) + lifted_scratch(m);
    double* a = z + padded(m.n_planes, n);
    double* s = a + padded(m.n_planes, n);
    double* work = s + padded(m.n_pools, n);
    score_row(m, x, scratch, work + 3 * padded(m.n_pools, n), z);
    pool_row(m, z, a, s, work, out.responsibilities != nullptr);
    if (out.probabilities) softmax_row(s, m.n_classes, work, out.probabilities);
    if (out.plane_scores)
        for (Index p = 0; p < m.n_planes; ++p) out.plane_scores[p] = z[p];
    if (out.responsibilities)
        for (Index p = 0; p < m.n_planes; ++p) out.responsibilities[p] = a[p];
    if (out.class_scores)
        for (Index c = 0; c < m.n_classes; ++c) out.class_scores[c] = s[c];
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
