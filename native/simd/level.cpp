// One CPU level: this file is compiled once for each, with GEOMIX_LEVEL naming the namespace.
#include "predict/predict.h"
#include "rows/binned.h"
#include "rows/panel.h"
#include "rows/sparse.h"
#include "simd/distances.h"
#include "simd/elementary.h"
#include "simd/kernels.h"
#include "simd/vector_ops.h"
#include "solvers/loss_terms.h"

#define GEOMIX_TEXT_OF(name) #name
#define GEOMIX_TEXT(name) GEOMIX_TEXT_OF(name)

namespace geomix {
namespace GEOMIX_LEVEL {

// Whole packs through `f`, the last one padded with ones (every function is defined there).
template <class T, class F>
GEOMIX_INLINE void by_packs(const T* x, Index n, F f)
{
    for (Index i = 0; i < n; i += lanes<T>) {
        const Index used = n - i < lanes<T> ? n - i : lanes<T>;
        T in[lanes<T>];
        for (Index k = 0; k < lanes<T>; ++k) in[k] = k < used ? x[i + k] : T(1);
        f(in, i, used);
    }
}

template <class T>
static void exponential_all(const T* x, Index n, T* out)
{
    by_packs(x, n, [=](T* in, Index i, Index used) {
        store(in, exponential<T>(load(in)));
        for (Index k = 0; k < used; ++k) out[i + k] = in[k];
    });
}

template <class T>
static void logarithm_all(const T* x, Index n, T* out)
{
    by_packs(x, n, [=](T* in, Index i, Index used) {
        store(in, logarithm<T>(load(in)));
        for (Index k = 0; k < used; ++k) out[i + k] = in[k];
    });
}

static void sine_cosine_all32(const float* x, Index n, float* sine, float* cosine)
{
    by_packs(x, n, [=](float* in, Index i, Index used) {
        float s[lanes<float>], c[lanes<float>];
        const SineCosine32 both = sine_cosine(load(in));
        store(s, both.sine);
        store(c, both.cosine);
        for (Index k = 0; k < used; ++k) sine[i + k] = s[k], cosine[i + k] = c[k];
    });
}

static void sine_cosine_all(const double* x, Index n, double* sine, double* cosine)
{
    by_packs(x, n, [=](double* in, Index i, Index used) {
        double s[DOUBLES], c[DOUBLES];
        each_sine_cosine(in, DOUBLES, [&](Index, SineCosine both) {
            store(s, both.sine);
            store(c, both.cosine);
        });
        for (Index k = 0; k < used; ++k) sine[i + k] = s[k], cosine[i + k] = c[k];
    });
}

extern const Kernels table;
const Kernels table = {
    GEOMIX_TEXT(GEOMIX_LEVEL),
    {pack<double>, terms<double>, cross_entropy<double>, class_scores<double>, multiply<double>},
    {pack<float>, terms<float>, cross_entropy<float>, class_scores<float>, multiply<float>},
    {sparse_terms, sparse_cross_entropy, sparse_class_scores, sparse_gradient, sparse_answer},
    {coded_slopes, coded_scatter, coded_cross_entropy, coded_class_scores, expand_tables,
     collect_tables},
    answer,
    answer_row,
    spline_contributions,
    fourier<double>,
    fourier<float>,
    squared_distances,
    likelihood,
    dot,
    add_scaled,
    narrow_dot,
    narrow_dots,
    add_narrow,
    adam_step,
    exponential_all<double>,
    exponential_all<float>,
    logarithm_all<double>,
    logarithm_all<float>,
    sine_cosine_all,
    sine_cosine_all32,
};

}  // namespace GEOMIX_LEVEL
}  // namespace geomix
