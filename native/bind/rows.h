// Training rows for Python: rows of any kind, and the number of classes in y.
#pragma once

#include <algorithm>
#include <utility>

#include "bind/arrays.h"

namespace geomix {

constexpr Index MOST_CLASSES = Index(1) << 24;

template <class R>
struct TrainingRows {
    using Number = typename R::Number;
    R rows;
    Index n_named;  // the largest code in y, plus one

    template <class... Parts>
    explicit TrainingRows(const In1<Index>& y, Parts&&... parts)
        : rows(std::forward<Parts>(parts)...),
          n_named(length(y) ? *std::max_element(y.data(), y.data() + y.size()) + 1 : 0)
    {
    }

    void fit_for(const Planes<Number>& planes) const
    {
        need(planes.n_inputs == rows.n_columns(), "The planes have another number of columns.");
        need(n_named <= static_cast<Index>(planes.class_start.size()) - 1,
             "y holds a code that is no class.");
    }
};

}  // namespace geomix
