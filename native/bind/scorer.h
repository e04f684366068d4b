// The row scorer's Python type (bind/scorer.cpp).
#pragma once

#include <Python.h>

#include <memory>

#include "bind/row_reader.h"
#include "predict/model_batches.h"

namespace geomix {

// labels : tuple, one per class;  contributions : float64 array (n_planes, n_columns) whose
// products with the standardised row explain a plane's score, or None;
// explanation : called as explanation(label, plane, probability, score, contributions);
// reader : reads rows of raw cells; null where rows are numbers.
PyObject* new_scorer(std::shared_ptr<const OwnedModel> model, PyObject* labels,
                     PyObject* contributions, PyObject* explanation,
                     std::shared_ptr<const RowReader> reader);

}  // namespace geomix
