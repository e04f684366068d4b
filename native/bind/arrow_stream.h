// The Arrow C stream interface: the three structures that every Arrow library exchanges.
//
// Their layout is fixed by the Arrow specification; names of members are ours. A structure whose
// `release` is null has been given back.
#pragma once

#include <cstdint>

namespace geomix {

struct ArrowType {
    const char* format;  // one or two letters for the types that are read here
    const char *name, *metadata;
    std::int64_t flags, n_children;
    ArrowType **children, *dictionary;
    void (*release)(ArrowType*);
    void* owner;
};

// buffers[0] : validity bits, null where no cell is missing; then values, or offsets and bytes
struct ArrowCells {
    std::int64_t length, n_missing, offset, n_buffers, n_children;
    const void** buffers;
    ArrowCells **children, *dictionary;
    void (*release)(ArrowCells*);
    void* owner;
};

// Functions return 0, or an error number.
struct ArrowStream {
    int (*get_type)(ArrowStream*, ArrowType*);
    int (*get_next)(ArrowStream*, ArrowCells*);  // released cells at the end
    const char* (*last_error)(ArrowStream*);
    void (*release)(ArrowStream*);
    void* owner;
};

// Gives a structure back when it goes out of scope.
template <class T>
struct Lent : T {
    Lent() : T{} {}
    Lent(const Lent&) = delete;
    ~Lent()
    {
        if (this->release != nullptr) this->release(this);
    }
};

}  // namespace geomix
