// Frames of polars and Arrow as numbers and codes, from their buffers: a second writing of
// Schema.encode (table/schema.py) for columns of numbers, booleans, text and dictionaries of text.
//
// A column of another type, and one with anything to refuse or to warn of, is left to Python.
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "bind/arrays.h"
#include "bind/arrow_stream.h"
#include "bind/module.h"

namespace geomix {
namespace {

constexpr double NOTHING = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t LARGEST_EXACT = std::uint64_t{1} << 53;  // beyond it Python warns

// --- levels ---

// Codes of texts, by open addressing: a cell costs one hash and one comparison.
class Levels {
  public:
    double unseen = NOTHING;

    void add(std::string text, double code) { texts_.push_back({std::move(text), code}); }

    void finish()
    {
        std::size_t size = 8;
        while (size < 2 * texts_.size()) size *= 2;
        slots_.assign(size, 0);
        for (std::size_t k = 0; k < texts_.size(); ++k) {
            std::size_t at = place(texts_[k].text);
            while (slots_[at] != 0) at = (at + 1) & (size - 1);
            slots_[at] = static_cast<std::uint32_t>(k + 1);
        }
    }

    double code(std::string_view text) const
    {
        for (std::size_t at = place(text); slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
            if (texts_[slots_[at] - 1].text == text) return texts_[slots_[at] - 1].code;
        return unseen;
    }

  private:
    struct Level {
        std::string text;
        double code;
    };

    static std::uint64_t mixed(std::uint64_t hash, std::uint64_t word)
    {
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;  // 2**64 over the golden ratio
        return hash ^ (hash >> 32);
    }

    std::size_t place(std::string_view text) const
    {
        std::uint64_t hash = text.size(), word = 0;
        std::size_t i = 0;
        for (; i + 8 <= text.size(); i += 8) {
            std::memcpy(&word, text.data() + i, 8);
            hash = mixed(hash, word);
        }
        word = 0;
        if (i < text.size()) std::memcpy(&word, text.data() + i, text.size() - i);
        return static_cast<std::size_t>(mixed(hash, word)) & (slots_.size() - 1);
    }

    std::vector<Level> texts_;
    std::vector<std::uint32_t> slots_;  // 0: empty;  k + 1: level k
};

// --- cells ---

// Cells of one column of one batch, without the rows before the batch's offset.
struct Cells {
    const ArrowCells& array;
    std::int64_t first, length;

    const void* buffer(std::int64_t k) const
    {
        return k < array.n_buffers ? array.buffers[k] : nullptr;
    }
    bool is_missing(std::int64_t row) const
    {
        const auto* bits = static_cast<const std::uint8_t*>(buffer(0));
        return bits != nullptr && !((bits[(first + row) >> 3] >> ((first + row) & 7)) & 1);
    }
};

// Where the encoded cells of a column go: every `step`-th double.
struct Place {
    double* at;
    Index step;
    double& operator[](std::int64_t row) const { return at[row * step]; }
};

// Whether a float64 is sure to represent the number.
template <class T>
bool is_exact(T value)
{
    if constexpr (sizeof(T) == 8 && std::is_integral_v<T>) {
        const auto size = static_cast<std::uint64_t>(value);
        return size <= LARGEST_EXACT || (std::is_signed_v<T> && 0 - size <= LARGEST_EXACT);
    }
    return true;
}

template <class T>
bool read_numbers(const Cells& cells, const Place& to)
{
    const auto* values = static_cast<const T*>(cells.buffer(1));
    if (values == nullptr) return false;
    for (std::int64_t row = 0; row < cells.length; ++row) {
        const T value = values[cells.first + row];
        if (!cells.is_missing(row) && !is_exact(value)) return false;
        to[row] = cells.is_missing(row) ? NOTHING : static_cast<double>(value);
    }
    return true;
}

bool read_bools(const Cells& cells, const Place& to)
{
    const auto* bits = static_cast<const std::uint8_t*>(cells.buffer(1));
    if (bits == nullptr) return false;
    for (std::int64_t row = 0; row < cells.length; ++row) {
        const std::int64_t k = cells.first + row;
        to[row] = cells.is_missing(row) ? NOTHING : (bits[k >> 3] >> (k & 7)) & 1;
    }
    return true;
}

template <class Offset, class Use>
bool each_text(const Cells& cells, Use use)
{
    const auto* offsets = static_cast<const Offset*>(cells.buffer(1));
    const auto* bytes = static_cast<const char*>(cells.buffer(2));
    if (offsets == nullptr) return false;
    for (std::int64_t row = 0; row < cells.length; ++row) {
        const Offset start = offsets[cells.first + row], end = offsets[cells.first + row + 1];
        if (start < 0 || end < start || (bytes == nullptr && start < end)) return false;
        if (cells.is_missing(row)) continue;
        use(row, std::string_view(start < end ? bytes + start : "",
                                  static_cast<std::size_t>(end - start)));
    }
    return true;
}

// Text of up to 12 bytes lies in the view itself, longer text in one of the other buffers, whose
// lengths are in the last one.
struct View {
    std::int32_t length;
    union {
        char text[12];
        struct {
            char beginning[4];
            std::int32_t buffer, offset;
        } far;
    };
};
static_assert(sizeof(View) == 16, "A view has 16 bytes.");

template <class Use>
bool each_view(const Cells& cells, Use use)
{
    const auto* views = static_cast<const View*>(cells.buffer(1));
    const std::int64_t n_far = cells.array.n_buffers - 3;
    const auto* lengths = static_cast<const std::int64_t*>(cells.buffer(n_far + 2));
    if (views == nullptr || n_far < 0) return false;
    for (std::int64_t row = 0; row < cells.length; ++row) {
        if (cells.is_missing(row)) continue;
        const View& view = views[cells.first + row];
        if (view.length < 0) return false;
        const auto length = static_cast<std::size_t>(view.length);
        if (length <= sizeof(view.text)) {
            use(row, std::string_view(view.text, length));
            continue;
        }
        const auto [beginning, buffer, offset] = view.far;
        if (buffer < 0 || buffer >= n_far || offset < 0 ||
            lengths[buffer] < std::int64_t{offset} + view.length)
            return false;
        use(row, std::string_view(static_cast<const char*>(cells.buffer(2 + buffer)) + offset,
                                  length));
    }
    return true;
}

bool read_texts(std::string_view format, const Cells& cells, const Levels& levels, const Place& to)
{
    for (std::int64_t row = 0; row < cells.length; ++row)
        if (cells.is_missing(row)) to[row] = NOTHING;
    const auto use = [&](std::int64_t row, std::string_view text) { to[row] = levels.code(text); };
    if (format == "u") return each_text<std::int32_t>(cells, use);
    if (format == "U") return each_text<std::int64_t>(cells, use);
    return format == "vu" && each_view(cells, use);
}

template <class T>
bool read_codes(const Cells& cells, const Vector& code_of, const Place& to)
{
    const auto* codes = static_cast<const T*>(cells.buffer(1));
    if (codes == nullptr) return false;
    for (std::int64_t row = 0; row < cells.length; ++row) {
        to[row] = NOTHING;
        if (cells.is_missing(row)) continue;
        const auto code = static_cast<std::uint64_t>(codes[cells.first + row]);
        if (code >= code_of.size()) return false;  // as a negative one is
        to[row] = code_of[code];
    }
    return true;
}

// Calls `work` with a zero of the type of whole numbers that a format names; false for another.
template <class Work>
bool by_integer(char format, Work work)
{
    switch (format) {
        case 'c': return work(std::int8_t{});
        case 'C': return work(std::uint8_t{});
        case 's': return work(std::int16_t{});
        case 'S': return work(std::uint16_t{});
        case 'i': return work(std::int32_t{});
        case 'I': return work(std::uint32_t{});
        case 'l': return work(std::int64_t{});
        case 'L': return work(std::uint64_t{});
        default: return false;
    }
}

bool read_number_column(const ArrowType& type, const Cells& cells, const Place& to)
{
    const std::string_view format(type.format);
    if (format.size() != 1 || type.dictionary != nullptr) return false;
    if (format == "f") return read_numbers<float>(cells, to);
    if (format == "g") return read_numbers<double>(cells, to);
    if (format == "b") return read_bools(cells, to);
    return by_integer(format[0], [&](auto zero) { return read_numbers<decltype(zero)>(cells, to); });
}

// The levels of a dictionary are looked up once, its cells by their position in it.
bool read_dictionary(const ArrowType& type, const Cells& cells, const Levels& levels,
                     const Place& to)
{
    const ArrowCells* dictionary = cells.array.dictionary;
    if (dictionary == nullptr || std::strlen(type.format) != 1) return false;
    Vector code_of(static_cast<std::size_t>(dictionary->length));
    const Cells values{*dictionary, dictionary->offset, dictionary->length};
    if (!read_texts(type.dictionary->format, values, levels, {code_of.data(), 1})) return false;
    return by_integer(type.format[0], [&](auto zero) {
        return read_codes<decltype(zero)>(cells, code_of, to);
    });
}

// Whether the format is only how cells of another type are stored. Metadata are a number of pairs,
// then for each its key and its value, with their lengths before them.
bool is_extension(const ArrowType& type)
{
    const char* at = type.metadata;
    const auto next = [&at] {
        std::int32_t number;
        std::memcpy(&number, at, sizeof number);
        at += sizeof number;
        return number;
    };
    for (std::int32_t left = at == nullptr ? 0 : next(); left > 0; --left) {
        const std::int32_t length = next();
        const std::string_view key(at, static_cast<std::size_t>(length));
        if (key == "ARROW:extension:name") return true;
        at += length;
        const std::int32_t of_value = next();
        at += of_value;
    }
    return false;
}

// --- the reader ---

class FrameReader {
  public:
    struct Column {
        bool is_category, has_text;  // has_text : text is among the levels, or there are none
        Levels levels;
    };

    explicit FrameReader(std::vector<Column> columns) : columns_(std::move(columns)) {}

    Index n_columns() const { return static_cast<Index>(columns_.size()); }

    // Fills the columns of `out` (n_rows, n_columns); those that Python has to read are returned.
    std::vector<Index> fill(ArrowStream& given, double* out, Index n_rows) const
    {
        Lent<ArrowStream> stream;
        static_cast<ArrowStream&>(stream) = given;
        given.release = nullptr;  // the stream is ours now
        std::vector<bool> is_read(columns_.size(), true);
        if (!fill(stream, out, n_rows, is_read)) is_read.assign(columns_.size(), false);
        std::vector<Index> left;
        for (std::size_t j = 0; j < is_read.size(); ++j)
            if (!is_read[j]) left.push_back(static_cast<Index>(j));
        return left;
    }

  private:
    bool fill(ArrowStream& stream, double* out, Index n_rows, std::vector<bool>& is_read) const
    {
        Lent<ArrowType> type;
        const auto n_columns = static_cast<std::int64_t>(columns_.size());
        if (stream.get_type(&stream, &type) != 0) return false;
        if (std::strcmp(type.format, "+s") != 0 || type.n_children != n_columns) return false;
        Index done = 0;
        while (true) {
            Lent<ArrowCells> batch;
            if (stream.get_next(&stream, &batch) != 0) return false;
            if (batch.release == nullptr) return done == n_rows;
            if (batch.n_children != n_columns || batch.length < 0 || batch.length > n_rows - done ||
                (batch.n_missing != 0 && batch.n_buffers > 0 && batch.buffers[0] != nullptr))
                return false;
            nb::gil_scoped_release released;
            for (std::size_t j = 0; j < columns_.size(); ++j) {
                const Place to{out + done * n_columns + static_cast<Index>(j), n_columns};
                is_read[j] = is_read[j] && read(columns_[j], *type.children[j], batch, j, to);
            }
            done += batch.length;
        }
    }

    static bool read(const Column& column, const ArrowType& type, const ArrowCells& batch,
                     std::size_t j, const Place& to)
    {
        if (is_extension(type)) return false;
        const ArrowCells& array = *batch.children[j];
        if (array.length < batch.offset + batch.length) return false;
        const Cells cells{array, array.offset + batch.offset, batch.length};
        if (!column.is_category) return read_number_column(type, cells, to);
        if (!column.has_text) return false;
        if (type.dictionary != nullptr) return read_dictionary(type, cells, column.levels, to);
        return read_texts(type.format, cells, column.levels, to);
    }

    std::vector<Column> columns_;
};

FrameReader::Column category(const nb::dict& code_of, double unseen)
{
    FrameReader::Column column{true, code_of.size() == 0, {}};
    column.levels.unseen = unseen;
    for (const auto& [level, code] : code_of) {
        if (!PyUnicode_Check(level.ptr())) continue;
        column.has_text = true;
        Py_ssize_t length = 0;
        const char* text = PyUnicode_AsUTF8AndSize(level.ptr(), &length);
        if (text == nullptr)
            PyErr_Clear();  // a lone surrogate, which no Arrow text has
        else
            column.levels.add(std::string(text, static_cast<std::size_t>(length)),
                              nb::cast<double>(code));
    }
    column.levels.finish();
    return column;
}

}  // namespace

void bind_frame_reader(nb::module_& m)
{
    nb::class_<FrameReader>(m, "FrameReader")
        .def("__init__",
             [](FrameReader* self, nb::tuple codes, In1<double> unseen) {
                 need(codes.size() == unseen.size(), "codes and unseen differ in length.");
                 std::vector<FrameReader::Column> columns;
                 for (std::size_t j = 0; j < codes.size(); ++j)
                     columns.push_back(
                         codes[j].is_none()
                             ? FrameReader::Column{}
                             : category(nb::cast<nb::dict>(codes[j]), unseen.data()[j]));
                 new (self) FrameReader(std::move(columns));
             })
        .def(
            "fill",
            [](const FrameReader& self, nb::capsule stream,
               nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
                need(static_cast<Index>(out.shape(1)) == self.n_columns(),
                     "out has another number of columns.");
                auto* given = static_cast<ArrowStream*>(
                    PyCapsule_GetPointer(stream.ptr(), "arrow_array_stream"));
                if (given == nullptr) throw nb::python_error();
                need(given->release != nullptr, "The stream has been read already.");
                return self.fill(*given, out.data(), static_cast<Index>(out.shape(0)));
            },
            nb::arg("stream"), nb::arg("out").noconvert());
}

}  // namespace geomix
