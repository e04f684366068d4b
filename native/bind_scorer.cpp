// model.scorer(): one row in, its probabilities out, as a bare CPython type.
//
// A call costs what it computes: no argument tuple (vectorcall), no array wrapper, no lock. The
// object never changes after it is made, so any number of threads may call it.
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include "bind_scorer.h"

#include <numpy/arrayobject.h>
#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <new>

namespace geomix {
namespace {

struct Scorer {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    std::shared_ptr<const OwnedModel> model;
    PyObject *labels, *contributions, *explanation;
};

PyTypeObject* scorer_type = nullptr;

// Room for numbers: on the stack for nearly every model, on the heap for the rest.
class Room {
  public:
    explicit Room(Index n) : at_(n <= few ? stack_ : static_cast<double*>(heap(n))) {}
    ~Room()
    {
        if (at_ != stack_) PyMem_RawFree(at_);
    }
    Room(const Room&) = delete;
    double* get() const { return at_; }

  private:
    static constexpr Index few = 4096;
    static void* heap(Index n) { return PyMem_RawMalloc(static_cast<std::size_t>(n) * 8); }
    alignas(64) double stack_[few];
    double* at_;
};

bool wrong_length(Index got, Index expected)
{
    PyErr_Format(PyExc_ValueError, "Got a row of %zd numbers; expected %zd, one for each column.",
                 static_cast<Py_ssize_t>(got), static_cast<Py_ssize_t>(expected));
    return false;
}

bool read_sequence(PyObject* row, Index n, double* to)
{
    PyObject** items = PySequence_Fast_ITEMS(row);
    if (PySequence_Fast_GET_SIZE(row) != n) return wrong_length(PySequence_Fast_GET_SIZE(row), n);
    for (Index j = 0; j < n; ++j) {
        to[j] = PyFloat_CheckExact(items[j]) ? PyFloat_AS_DOUBLE(items[j])
                                             : PyFloat_AsDouble(items[j]);
        if (to[j] == -1.0 && PyErr_Occurred()) return false;
        // PyFloat_AsDouble may run Python code, and that may shorten a list.
        if (PySequence_Fast_GET_SIZE(row) != n) return wrong_length(PySequence_Fast_GET_SIZE(row), n);
        items = PySequence_Fast_ITEMS(row);
    }
    return true;
}

bool read_converted(PyArrayObject* row, Index n, double* to)
{
    const char kind = PyArray_DESCR(row)->kind;
    if (std::strchr("fiub", kind) == nullptr ||
        PyObject_HasAttrString(reinterpret_cast<PyObject*>(row), "mask")) {
        PyErr_Format(PyExc_TypeError, "Got a row of %R; expected plain real numbers.",
                     PyArray_DESCR(row));
        return false;
    }
    PyObject* plain = PyArray_FromArray(row, PyArray_DescrFromType(NPY_DOUBLE),
                                        NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST);
    if (plain == nullptr) return false;
    std::memcpy(to, PyArray_DATA(reinterpret_cast<PyArrayObject*>(plain)),
                static_cast<std::size_t>(n) * sizeof(double));
    Py_DECREF(plain);
    return true;
}

// The row's numbers: those of the array itself, or a copy in `room`; null with an error set.
const double* read_row(PyObject* row, Index n, double* room)
{
    if (PyArray_Check(row)) {
        auto* array = reinterpret_cast<PyArrayObject*>(row);
        if (PyArray_NDIM(array) != 1) {
            PyErr_Format(PyExc_ValueError, "Got a row with %d dimensions; expected 1.",
                         PyArray_NDIM(array));
            return nullptr;
        }
        if (PyArray_DIM(array, 0) != n)
            return wrong_length(PyArray_DIM(array, 0), n), nullptr;
        if (PyArray_TYPE(array) == NPY_DOUBLE && PyArray_CheckExact(row) &&
            PyArray_ISCARRAY_RO(array))
            return static_cast<const double*>(PyArray_DATA(array));
        return read_converted(array, n, room) ? room : nullptr;
    }
    if (PyList_CheckExact(row) || PyTuple_CheckExact(row))
        return read_sequence(row, n, room) ? room : nullptr;
    PyErr_Format(PyExc_TypeError, "Got a row of type %s; expected a 1-d array, a list or a tuple.",
                 Py_TYPE(row)->tp_name);
    return nullptr;
}

// `out` if it can take the probabilities, or a new array; a new reference either way.
PyObject* place_for(PyObject* out, Index n_classes)
{
    if (out == nullptr || out == Py_None) {
        npy_intp shape[1] = {static_cast<npy_intp>(n_classes)};
        return PyArray_SimpleNew(1, shape, NPY_DOUBLE);
    }
    if (!PyArray_Check(out)) {
        PyErr_Format(PyExc_TypeError, "Got out of type %s; expected a float64 array.",
                     Py_TYPE(out)->tp_name);
        return nullptr;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(out);
    if (PyArray_TYPE(array) != NPY_DOUBLE) {
        PyErr_SetString(PyExc_TypeError, "out must be an array of float64.");
        return nullptr;
    }
    if (PyArray_NDIM(array) != 1 || PyArray_DIM(array, 0) != n_classes ||
        !PyArray_ISCARRAY(array)) {
        PyErr_Format(PyExc_ValueError,
                     "out must be a writeable, contiguous array of shape (%zd,).",
                     static_cast<Py_ssize_t>(n_classes));
        return nullptr;
    }
    Py_INCREF(out);
    return out;
}

bool only_row(Py_ssize_t n_args, PyObject* names)
{
    if (n_args == 1 && (names == nullptr || PyTuple_GET_SIZE(names) == 0)) return true;
    PyErr_SetString(PyExc_TypeError, "Expected one row and nothing else.");
    return false;
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t flags, PyObject* names)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    const Py_ssize_t n_args = PyVectorcall_NARGS(flags);
    PyObject* out = nullptr;
    if (names != nullptr && PyTuple_GET_SIZE(names) == 1 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "out") == 0 && n_args == 1) {
        out = args[1];
    } else if (!only_row(n_args, names)) {
        return nullptr;
    }
    const Model& m = self->model->view();
    const Index first = padded(m.n_columns, DOUBLES);  // the scratch begins on a cache line
    const Room room(first + row_scratch(m));
    if (room.get() == nullptr) return PyErr_NoMemory();
    const double* row = read_row(args[0], m.n_columns, room.get());
    if (row == nullptr) return nullptr;
    PyObject* place = place_for(out, m.n_classes);
    if (place == nullptr) return nullptr;
    auto* p = static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(place)));
    // The kernel reads the row to the end before it writes, so `out` may be the row itself.
    kernels().answer_row(m, row, {nullptr, nullptr, nullptr, p}, room.get() + first);
    return place;
}

struct RowAnswers {
    double *z, *a, *s, *p;
    Index code, plane;
};

Index argmax(const double* values, Index first, Index end)
{
    Index best = first;
    for (Index i = first + 1; i < end; ++i)
        if (values[best] < values[i]) best = i;
    return best;
}

// Everything about one row; `numbers` has room for 2 (n_planes + n_classes).
RowAnswers answers_for(const Model& m, const double* row, double* numbers, double* scratch)
{
    RowAnswers all{};
    all.z = numbers;
    all.a = all.z + m.n_planes;
    all.s = all.a + m.n_planes;
    all.p = all.s + m.n_classes;
    kernels().answer_row(m, row, {all.z, all.a, all.s, all.p}, scratch);
    all.code = argmax(all.s, 0, m.n_classes);
    all.plane = argmax(all.a, m.class_start[all.code], m.class_start[all.code + 1]);
    return all;
}

PyObject* predict(PyObject* object, PyObject* const* args, Py_ssize_t n_args)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    if (!only_row(n_args, nullptr)) return nullptr;
    const Model& m = self->model->view();
    const Index n_answers = 2 * (m.n_planes + m.n_classes);
    const Room room(m.n_columns + row_scratch(m) + n_answers);
    if (room.get() == nullptr) return PyErr_NoMemory();
    const double* row = read_row(args[0], m.n_columns, room.get());
    if (row == nullptr) return nullptr;
    double* numbers = room.get() + m.n_columns + row_scratch(m);
    const RowAnswers all = answers_for(m, row, numbers, room.get() + m.n_columns);
    PyObject* label = PyTuple_GET_ITEM(self->labels, all.code);
    Py_INCREF(label);
    return label;
}

// Contribution of every column to the score of `plane`, or None if the lift has no such thing.
PyObject* contributions_to(Scorer* self, Index plane, const double* row)
{
    if (self->contributions == Py_None) return Py_NewRef(Py_None);
    const Model& m = self->model->view();
    npy_intp shape[1] = {static_cast<npy_intp>(m.n_columns)};
    PyObject* array = PyArray_ZEROS(1, shape, NPY_DOUBLE, 0);
    if (array == nullptr) return nullptr;
    auto* to = static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
    const double* weights = static_cast<const double*>(
        PyArray_DATA(reinterpret_cast<PyArrayObject*>(self->contributions)));
    for (Index j = 0; j < m.n_kept; ++j) {
        const double u = (row[m.kept[j]] - m.mean[j]) * m.inverse_scale[j];
        to[m.kept[j]] = weights[plane * m.n_kept + j] * u;
    }
    return array;
}

PyObject* explain(PyObject* object, PyObject* const* args, Py_ssize_t n_args)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    if (!only_row(n_args, nullptr)) return nullptr;
    const Model& m = self->model->view();
    const Index n_answers = 2 * (m.n_planes + m.n_classes);
    const Room room(m.n_columns + row_scratch(m) + n_answers);
    if (room.get() == nullptr) return PyErr_NoMemory();
    const double* row = read_row(args[0], m.n_columns, room.get());
    if (row == nullptr) return nullptr;
    double* numbers = room.get() + m.n_columns + row_scratch(m);
    const RowAnswers all = answers_for(m, row, numbers, room.get() + m.n_columns);
    PyObject* contributions = contributions_to(self, all.plane, row);
    if (contributions == nullptr) return nullptr;
    return PyObject_CallFunction(self->explanation, "OnddN",
                                 PyTuple_GET_ITEM(self->labels, all.code),
                                 static_cast<Py_ssize_t>(all.plane - m.class_start[all.code]),
                                 all.p[all.code], all.z[all.plane], contributions);
}

void dealloc(PyObject* object)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    PyTypeObject* type = Py_TYPE(object);
    self->model.~shared_ptr();
    Py_XDECREF(self->labels);
    Py_XDECREF(self->contributions);
    Py_XDECREF(self->explanation);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"predict", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(predict)), METH_FASTCALL,
     "predict(row): the most probable label."},
    {"explain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(explain)), METH_FASTCALL,
     "explain(row): winning label, responsible plane, contribution of every column."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Scorer, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("scorer(row, *, out=None): probabilities of one row.")},
    {0, nullptr}};

PyType_Spec spec = {"geomix.RowScorer", sizeof(Scorer), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

bool ready_scorer_type()
{
    if (_import_array() < 0) return false;
    scorer_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return scorer_type != nullptr;
}

PyObject* new_scorer(std::shared_ptr<const OwnedModel> model, PyObject* labels,
                     PyObject* contributions, PyObject* explanation)
{
    const Model& m = model->view();
    bool fits = PyTuple_Check(labels) && PyTuple_GET_SIZE(labels) == m.n_classes;
    if (contributions != Py_None) {
        auto* array = reinterpret_cast<PyArrayObject*>(contributions);
        fits = fits && PyArray_Check(contributions) && PyArray_TYPE(array) == NPY_DOUBLE &&
               PyArray_NDIM(array) == 2 && PyArray_ISCARRAY_RO(array) &&
               PyArray_DIM(array, 0) == m.n_planes && PyArray_DIM(array, 1) == m.n_kept;
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "labels or contributions do not fit the model.");
        return nullptr;
    }
    auto* self = reinterpret_cast<Scorer*>(scorer_type->tp_alloc(scorer_type, 0));
    if (self == nullptr) return nullptr;
    self->vectorcall = call;
    new (&self->model) std::shared_ptr<const OwnedModel>(std::move(model));
    self->labels = Py_NewRef(labels);
    self->contributions = Py_NewRef(contributions);
    self->explanation = Py_NewRef(explanation);
    return reinterpret_cast<PyObject*>(self);
}

}  // namespace geomix
