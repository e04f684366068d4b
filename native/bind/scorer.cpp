// model.scorer(): one row in, its probabilities out, as a bare CPython type.
//
// A call costs what it computes: no argument tuple (vectorcall), no array wrapper, no lock. The
// object never changes after it is made, so any number of threads may call it.
#define GEOMIX_IMPORTS_NUMPY
#include "bind/scorer.h"

#include <structmember.h>

#include <cstddef>
#include <new>

#include "bind/module.h"
#include "bind/one_row.h"

namespace geomix {
namespace {

struct Scorer {
    PyObject_HEAD vectorcallfunc vectorcall;
    std::shared_ptr<const OwnedModel> model;
    std::shared_ptr<const RowReader> reader;  // null: rows are numbers
    PyObject *labels, *contributions, *explanation;
};

PyTypeObject* scorer_type = nullptr;

bool only_row(Py_ssize_t n_args, PyObject* names)
{
    if (n_args == 1 && (names == nullptr || PyTuple_GET_SIZE(names) == 0)) return true;
    PyErr_SetString(PyExc_TypeError, "Expected one row and nothing else.");
    return false;
}

// Doubles for the numbers of a row; what follows begins on a cache line.
Index row_room(const Scorer* self)
{
    return self->reader ? self->reader->room()
                        : padded(self->model->view().n_columns, DOUBLES);
}

const double* numbers_of(const Scorer* self, PyObject* row, double* room)
{
    return self->reader ? self->reader->read(row, room)
                        : read_row(row, self->model->view().n_columns, room);
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
    const Index first = row_room(self);
    const Room room(first + row_scratch(m));
    if (room.get() == nullptr) return PyErr_NoMemory();
    const double* row = numbers_of(self, args[0], room.get());
    if (row == nullptr) return nullptr;
    PyObject* place = place_for(out, m.n_classes);
    if (place == nullptr) return nullptr;
    auto* p = static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(place)));
    // The kernel reads the row to the end before it writes, so `out` may be the row itself.
    kernels().answer_row(m, row, {nullptr, nullptr, nullptr, p}, room.get() + first);
    return place;
}

Index argmax(const double* values, Index first, Index end)
{
    Index best = first;
    for (Index i = first + 1; i < end; ++i)
        if (values[best] < values[i]) best = i;
    return best;
}

// Scores, probabilities, winning class and responsible plane of one row.
class RowAnswers {
  public:
    const double *row, *z, *p;  // the row is null where reading it failed, with an error set
    Index code, plane;

    RowAnswers(const Scorer* self, PyObject* const* args, Py_ssize_t n_args)
        : row(nullptr), room_(n_room(self))
    {
        if (!only_row(n_args, nullptr)) return;
        const Model& m = self->model->view();
        if (room_.get() == nullptr) {
            PyErr_NoMemory();
            return;
        }
        row = numbers_of(self, args[0], room_.get());
        if (row != nullptr) answer(m, room_.get() + row_room(self));
    }

  private:
    static Index n_room(const Scorer* self)
    {
        const Model& m = self->model->view();
        return row_room(self) + row_scratch(m) + 2 * (m.n_planes + m.n_classes);
    }

    void answer(const Model& m, double* scratch)
    {
        double* scores = scratch + row_scratch(m);
        double* a = scores + m.n_planes;
        double* s = a + m.n_planes;
        double* probabilities = s + m.n_classes;
        kernels().answer_row(m, row, {scores, a, s, probabilities}, scratch);
        code = argmax(s, 0, m.n_classes);
        plane = argmax(a, m.class_start[code], m.class_start[code + 1]);
        z = scores, p = probabilities;
    }

    Room room_;
};

PyObject* predict(PyObject* object, PyObject* const* args, Py_ssize_t n_args)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    const RowAnswers all(self, args, n_args);
    return all.row == nullptr ? nullptr : Py_NewRef(PyTuple_GET_ITEM(self->labels, all.code));
}

// Contribution of every column to the score of `plane`, or None under a Fourier lift.
PyObject* contributions_to(Scorer* self, Index plane, const double* row)
{
    const Model& m = self->model->view();
    if (self->contributions == Py_None && !m.spline) return Py_NewRef(Py_None);
    npy_intp shape[1] = {static_cast<npy_intp>(m.n_columns)};
    PyObject* array = PyArray_ZEROS(1, shape, NPY_DOUBLE, 0);
    if (array == nullptr) return nullptr;
    auto* to = static_cast<double*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
    if (m.spline) {
        const Room room(row_scratch(m));
        if (room.get() == nullptr) return Py_DECREF(array), PyErr_NoMemory();
        kernels().contributions(m, row, plane, room.get(), to);
        return array;
    }
    const double* weights = static_cast<const double*>(
        PyArray_DATA(reinterpret_cast<PyArrayObject*>(self->contributions)));
    for (Index j = 0; j < m.n_kept; ++j) {
        const double u = (row[m.kept[j]] - m.mean[j]) * m.inverse_scale[j];
        if (u == u) to[m.kept[j]] = weights[plane * m.n_kept + j] * u;  // missing adds nothing
    }
    return array;
}

PyObject* explain(PyObject* object, PyObject* const* args, Py_ssize_t n_args)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    const RowAnswers all(self, args, n_args);
    if (all.row == nullptr) return nullptr;
    PyObject* contributions = contributions_to(self, all.plane, all.row);
    if (contributions == nullptr) return nullptr;
    const Index first = self->model->view().class_start[all.code];
    return PyObject_CallFunction(self->explanation, "OnddN",
                                 PyTuple_GET_ITEM(self->labels, all.code),
                                 static_cast<Py_ssize_t>(all.plane - first), all.p[all.code],
                                 all.z[all.plane], contributions);
}

void dealloc(PyObject* object)
{
    auto* self = reinterpret_cast<Scorer*>(object);
    PyTypeObject* type = Py_TYPE(object);
    self->model.~shared_ptr();
    self->reader.~shared_ptr();
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

PyType_Spec spec = {
    "geomix.RowScorer", sizeof(Scorer), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

bool ready_scorer_type()
{
    if (_import_array() < 0) return false;
    scorer_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    return scorer_type != nullptr;
}

PyObject* new_scorer(std::shared_ptr<const OwnedModel> model, PyObject* labels,
                     PyObject* contributions, PyObject* explanation,
                     std::shared_ptr<const RowReader> reader)
{
    const Model& m = model->view();
    bool fits = PyTuple_Check(labels) && PyTuple_GET_SIZE(labels) == m.n_classes;
    if (contributions != Py_None) {
        auto* array = reinterpret_cast<PyArrayObject*>(contributions);
        fits = fits && PyArray_Check(contributions) && PyArray_TYPE(array) == NPY_DOUBLE &&
               PyArray_NDIM(array) == 2 && PyArray_ISCARRAY_RO(array) &&
               PyArray_DIM(array, 0) == m.n_planes && PyArray_DIM(array, 1) == m.n_kept;
    }
    fits = fits && (!reader || reader->n_outputs() == m.n_columns);
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "labels, contributions or reader do not fit the model.");
        return nullptr;
    }
    auto* self = reinterpret_cast<Scorer*>(scorer_type->tp_alloc(scorer_type, 0));
    if (self == nullptr) return nullptr;
    self->vectorcall = call;
    new (&self->model) std::shared_ptr<const OwnedModel>(std::move(model));
    new (&self->reader) std::shared_ptr<const RowReader>(std::move(reader));
    self->labels = Py_NewRef(labels);
    self->contributions = Py_NewRef(contributions);
    self->explanation = Py_NewRef(explanation);
    return reinterpret_cast<PyObject*>(self);
}

}  // namespace geomix
