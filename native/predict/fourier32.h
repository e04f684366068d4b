// Plane scores of a Fourier lift with features in float32: twice the rows in a pack.
//
//   v32 = float32(v);  phi = [cos(v32 O); sin(v32 O)];  z = c W phi + b
//
// Columns are standardised and rotated in float64, O and W have float32 numbers to begin with (see
// `short` in core/lifts.py), and z, the pooling and the softmax are float64 again. float32 has too
// few digits for large angles, so a row with a value beyond `reach` has its features in float64.
// Each row is decided by itself, so a prediction still depends on its row alone.
#pragma once

#include "simd/elementary.h"
#include "simd/multiply.h"

namespace geomix {
namespace GEOMIX_LEVEL {

struct BlockScratch32 {
    float *v, *angles, *lifted, *scores;
    double* row;  // for rows in float64
    BlockScratch32(const Model& m, double* at)
    {
        v = reinterpret_cast<float*>(at);
        angles = v + ROWS_PER_BLOCK * m.n_rotated;
        lifted = angles + ROWS_PER_BLOCK * m.n_frequencies;
        scores = lifted + ROWS_PER_BLOCK * m.n_lifted;
        row = reinterpret_cast<double*>(scores + ROWS_PER_BLOCK * m.n_planes);
    }
};

// [group of 8][input][lane] -> [group of 16][input][lane]; n_groups of 8.
static void narrow(const double* panel, Index n_inputs, Index n_groups, float* out)
{
    constexpr int n = DOUBLES, wide = lanes<float>;
    for (Index g = 0; g < padded(n_groups, 2); ++g)
        for (Index j = 0; j < n_inputs; ++j) {
            float* to = out + (g / 2 * n_inputs + j) * wide + g % 2 * n;
            const double* from = panel + (g * n_inputs + j) * n;
            for (int i = 0; i < n; ++i) to[i] = g < n_groups ? static_cast<float>(from[i]) : 0.0f;
        }
}

// Scores [group of 16][plane][lane] -> z [group of 8][plane][lane].
static void widen_scores(const Model& m, const float* scores, Index n_groups, double* z)
{
    constexpr int n = DOUBLES, wide = lanes<float>;
    const Pack<double> scale = splat(m.lift_scale);
    for (Index g = 0; g < n_groups; ++g)
        for (Index p = 0; p < m.n_planes; ++p) {
            const float* from = scores + (g / 2 * m.n_planes + p) * wide + g % 2 * n;
            double at[n];
            for (int i = 0; i < n; ++i) at[i] = static_cast<double>(from[i]);
            store(z + (g * m.n_planes + p) * n, fused(load(at), scale, splat(m.biases[p])));
        }
}

// far[row] of a block: whether a value lies beyond the reach. Returns whether one does.
static bool find_far(const Model& m, const double* panel, Index n_groups, bool* far)
{
    constexpr int n = DOUBLES;
    const Bits<double> no_sign = splat<uint64_t>(0x7fffffffffffffff);
    bool any = false;
    for (Index g = 0; g < n_groups; ++g) {
        Pack<double> top = splat(0.0);
        for (Index j = 0; j < m.n_rotated; ++j) {
            const Pack<double> v = load(panel + (g * m.n_rotated + j) * n);
            top = larger(top, reread<Pack<double>>(reread<Bits<double>>(v) & no_sign));
        }
        double lane[n];
        store(lane, top);
        for (int i = 0; i < n; ++i) any |= far[g * n + i] = m.reach < lane[i];
    }
    return any;
}

static bool is_far(const Model& m, const double* v)
{
    for (Index j = 0; j < m.n_rotated; ++j)
        if (v[j] < -m.reach || m.reach < v[j]) return true;
    return false;
}

static void fourier_block32(const Model& m, const float* angles, Index n_groups, float* phi)
{
    constexpr int n = lanes<float>;
    for (Index g = 0; g < n_groups; ++g)
        for (Index f = 0; f < m.n_frequencies; ++f) {
            const auto both = sine_cosine(load(angles + (g * m.n_frequencies + f) * n));
            float* cosine = phi + (g * m.n_lifted + f) * n;
            store(cosine, both.cosine);
            store(cosine + m.n_frequencies * n, both.sine);
        }
}

// Standardised and rotated rows in panels -> z. Rows beyond the reach get z of no use.
static void score_block32(const Model& m, const double* panel, Index n_groups,
                          const BlockScratch32& at, double* z)
{
    const Index n_wide = padded(n_groups, 2) / 2;
    narrow(panel, m.n_rotated, n_groups, at.v);
    multiply<float>(m.frequencies32, nullptr, m.n_frequencies, m.n_rotated, at.v, n_wide,
                    at.angles);
    fourier_block32(m, at.angles, n_wide, at.lifted);
    multiply_by_segments<float>(m.weight_columns32.segment, m.weights32, nullptr, m.n_planes,
                                m.n_lifted, at.lifted, n_wide, at.scores);
    widen_scores(m, at.scores, n_groups, z);
}

// The same for one row; z is padded.
static void score_row32(const Model& m, const double* v, float* scratch, double* z)
{
    constexpr Index n = lanes<float>;
    float* v32 = scratch;
    float* angles = v32 + padded(m.n_rotated, n);
    float* phi = angles + padded(m.n_frequencies, n);
    float* scores = phi + padded(m.n_lifted, n) + n;
    float* sines = phi + m.n_frequencies;
    for (Index j = 0; j < m.n_rotated; ++j) v32[j] = static_cast<float>(v[j]);
    row_times_columns(v32, m.n_rotated, m.frequency_columns32, angles);
    Pack<float> first_sines = splat(0.0f);
    for (Index f = 0; f < m.n_frequencies; f += n) {
        const auto both = sine_cosine(load(angles + f));
        store(sines + f, both.sine);
        store(phi + f, both.cosine);
        if (f == 0) first_sines = both.sine;
    }
    store(sines, first_sines);  // the last pack of cosines may have run over their end
    row_times_columns(phi, m.n_lifted, m.weight_columns32, scores);
    for (Index p = 0; p < m.n_planes; ++p)
        z[p] = fused(static_cast<double>(scores[p]), m.lift_scale, m.biases[p]);
}

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
