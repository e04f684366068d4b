// The parts of the module, one per bind_*.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace geomix {

void bind_spline(nanobind::module_& m);
void bind_rows(nanobind::module_& m);
void bind_adam(nanobind::module_& m);
void bind_prediction(nanobind::module_& m);
void bind_clustering(nanobind::module_& m);
void bind_row_reader(nanobind::module_& m);
void bind_frame_reader(nanobind::module_& m);
bool ready_scorer_type();  // false with a Python error set

}  // namespace geomix
