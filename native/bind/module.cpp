// The door between Python and the kernels: every bind_*.cpp checks shapes and types, releases
// the GIL, and forwards. Here are the module itself and the elementary functions, which tests
// compare with known values.
#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "bind/arrays.h"
#include "bind/module.h"
#include "simd/aligned.h"
#include "simd/threads.h"

using namespace geomix;

namespace {

template <class T>
nb::object elementwise(In1<T> x, void (*f)(const T*, Index, T*))
{
    std::vector<T> out(x.size());
    f(x.data(), length(x), out.data());
    const std::size_t n = out.size();
    return nb::cast(owned<nb::ndarray<nb::numpy, T, nb::ndim<1>>>(std::move(out), {n}));
}

template <class T>
nb::tuple sine_cosine(In1<T> x, void (*f)(const T*, Index, T*, T*))
{
    using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
    std::vector<T> s(x.size()), c(x.size());
    f(x.data(), length(x), s.data(), c.data());
    const std::size_t n = s.size();
    return nb::make_tuple(owned<Out>(std::move(s), {n}), owned<Out>(std::move(c), {n}));
}

}  // namespace

NB_MODULE(_native, m)
{
    // Objects that live until the interpreter exits (a global model, a kept traceback) are not
    // the user's fault, and no reason for messages at exit.
    nb::set_leak_warnings(false);
    m.def("simd", [] { return std::string(kernels().name); });
    m.def("limit_threads", [](int most) { return std::exchange(thread_limit(), most); });
    m.def("keep_free_blocks", &FreeBlocks::keep);
    m.def("clear_free_blocks", &FreeBlocks::clear);
    m.def("trim_heap", &trim_heap);
    bind_spline(m);
    bind_rows(m);
    bind_adam(m);
    bind_row_reader(m);
    bind_frame_reader(m);
    bind_prediction(m);
    bind_clustering(m);
    m.def(
        "exponential", [](In1<double> x) { return elementwise(x, kernels().exponential_f64); },
        nb::arg("x").noconvert());
    m.def(
        "exponential", [](In1<float> x) { return elementwise(x, kernels().exponential_f32); },
        nb::arg("x").noconvert());
    m.def(
        "logarithm", [](In1<double> x) { return elementwise(x, kernels().logarithm_f64); },
        nb::arg("x").noconvert());
    m.def(
        "logarithm", [](In1<float> x) { return elementwise(x, kernels().logarithm_f32); },
        nb::arg("x").noconvert());
    m.def(
        "sine_cosine", [](In1<double> x) { return sine_cosine(x, kernels().sine_cosine_f64); },
        nb::arg("x").noconvert());
    m.def(
        "sine_cosine", [](In1<float> x) { return sine_cosine(x, kernels().sine_cosine_f32); },
        nb::arg("x").noconvert());
    if (!ready_scorer_type()) throw nb::python_error();
}
