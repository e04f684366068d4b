// The functions that exist once per CPU level, as one table of pointers, and what they work on.
//
// Panels. Rows travel in groups of `lanes` (8 double, 16 float), stored column by column:
// panel[group][column][lane], so that one pack holds the same column of `lanes` rows. Plane
// scores, class scores and lifted rows have the same layout with their own "columns".
#pragma once

#include <cstddef>
#include <cstdint>

namespace geomix {

using Index = std::int64_t;

constexpr int PACK_BYTES = 64;
constexpr int DOUBLES = 8;  // rows in a group of doubles

template <class T>
constexpr int rows_in_group = PACK_BYTES / static_cast<int>(sizeof(T));

// Planes and the loss they are trained on. weights : (n_planes, n_inputs).
template <class T>
struct Problem {
    const T* weights;
    const T* biases;
    const std::int32_t* class_start;
    Index n_planes, n_inputs, n_classes;
    T sharpness, label_smoothing;
};

// Rows in panels with their class codes and weights as numbers of the same type; the rows that
// fill up the last group have weight 0.
template <class T>
struct PanelRows {
    const T* X;
    const T* y;
    const T* weight;
    Index n_groups;
};

// Sums over rows. The arrays are added to, not overwritten.
struct Sums {
    double* weights_gradient;  // (n_planes, n_inputs)
    double* biases_gradient;   // (n_planes,)
    double* usage;             // (n_planes,)
    double loss, row_weight;
};

// A strided matrix of rows to pack: row i, column j at data[i * row_step + j * column_step].
template <class T>
struct Strided {
    const T* data;
    Index row_step, column_step;
};

// A matrix (n_outputs, n_inputs) for one row at a time: transposed, padded to `width` outputs
// (whole packs), in strips of COLUMN_STRIP outputs so that a pass over it reads memory in order.
// One row reuses no number, so its cost is that of reading them. Numbers whose lower 32 bits are all zero
// are `halved`: of each two packs of a column the second lives in the lower halves of the first,
// which halves the reading and changes no result.
constexpr Index COLUMN_STRIP = 64;
template <class T>
struct ColumnsOf {
    const T* numbers;
    Index width, segment;
    bool halved;  // never of floats
};
using Columns = ColumnsOf<double>;

// Sums run over this many columns at a time (see simd/multiply.h). Over few columns a quarter of them:
// one row has few sums, and each step of a long sum waits for the one before.
constexpr Index SEGMENT = 128;
static inline Index short_segment(Index n_inputs)
{
    return n_inputs > SEGMENT ? SEGMENT : n_inputs < 32 ? 8 : (n_inputs + 3) / 4;
}

// Rows of a sparse matrix (CSR): row i holds values[k] in columns[k], k from start[i] to
// start[i + 1], its columns rising. `order` lists the rows; null: all of them, in order.
struct Sparse {
    const double* values;
    const std::int32_t* columns;
    const Index* start;
    const Index* order;
    Index n_rows;
};

// Planes over centred sparse rows: weights by columns, never halved, and the constant part of
// the scores, constants = b - W shift, padded to the width of the columns.
struct SparsePlanes {
    Problem<double> problem;
    Columns columns;
    const double* constants;
};

// A block of rows of a spline lift: codes[part][row], each a byte or (wide) two, parts `stride`
// codes apart.
struct CodedRows {
    const void* codes;
    Index stride, n_rows;
    bool wide;
};

// Planes of a spline lift go in tiles: as many of the widest as are full, and the rest in the
// narrowest that holds it, whose tables are smaller. Each plane is added up by itself, so the width
// of a tile changes no result.
constexpr Index WIDEST_TILE = 16;
// The width of the tile for this many planes, or of the first one where they need several.
static inline Index width_of_tile(Index n_planes)
{
    return n_planes <= 2 ? 2 : n_planes <= 4 ? 4 : n_planes <= 8 ? 8 : WIDEST_TILE;
}
static inline Index n_tiles(Index n_planes) { return (n_planes + WIDEST_TILE - 1) / WIDEST_TILE; }
static inline Index width_of_all_tiles(Index n_planes)
{
    const Index in_full_ones = (n_tiles(n_planes) - 1) * WIDEST_TILE;
    return in_full_ones + width_of_tile(n_planes - in_full_ones);
}

// A part of a spline lift: its steps and bins among those of all parts, and the mean of each step.
// curve : the interval of each bin but the last, and where in it;  pair : bins of each side, with
// that of missing cells, and whether they have an order.
struct PartOfSpline {
    enum Kind { curve, levels, pair };
    Kind kind;
    Index first_step, n_steps, first_bin, n_bins;
    bool has_missing;
    const double* mean;
    const std::int32_t* interval;
    const double* fraction;
    Index n_first, n_second;
    bool first_ordered, second_ordered;
};

// All parts of a spline lift; unit : (n_steps,) a factor on each step.
struct PartsOfSpline {
    const PartOfSpline* parts;
    const double* unit;
    Index n_parts, n_steps, n_bins;
};

// A value for each plane in each bin: numbers[tile of planes][bin][plane of the tile], the bins of
// all parts one after another.
struct SplineTables {
    const float* numbers;
    const PartsOfSpline& lift;
};

// A number's curve: its inner knots for searching (filled up with NaN to 2 half - 1), and of each
// interval left * unit and width * unit, unit being 1 but where the width would overflow.
struct CurveSpan {
    double left, width, unit;
};
struct ModelCurve {
    Index column;
    const double* edges;
    Index half;
    const CurveSpan* spans;
    Index n_intervals, first;
    double low, high;
};

// A column's cells: between the edges of a number (n_levels -1), or the levels of a category.
struct ModelSide {
    Index column;
    const double* edges;
    Index half, n_levels, missing, unknown;
};
// A category, or a pair of columns, whose cell is first * factor + second.
struct ModelCells {
    ModelSide sides[2];
    Index n_sides, factor, first;
};

// Planes over a spline lift. Tables of curves and cells begin at numbers[first]; every number of
// one is for all planes side by side, padded to `width`. constants : the biases, padded.
struct ModelSpline {
    const ModelCurve* curves;
    const ModelCells* cells;
    const double *numbers, *constants;
    Index n_curves, n_cells, width;
};

// A model, ready for prediction. Matrices hold one output per row: rotation (n_rotated, n_kept),
// frequencies (n_frequencies, n_rotated), weights (n_planes, n_lifted).
struct Model {
    const Index* kept;
    const double *mean, *inverse_scale;
    const double *rotation, *frequencies, *weights, *biases;
    Columns rotation_columns, frequency_columns, weight_columns;
    const std::int32_t* class_start;
    Index n_columns, n_kept, n_rotated, n_frequencies, n_lifted, n_planes, n_classes;
    bool keeps_all;
    double sharpness, inverse_sharpness, inverse_temperature, lift_scale;
    // For sparse rows of a model without frequencies: the place of each column among the kept
    // ones, or -1, and b - W (mean / scale), padded to whole packs.
    const std::int32_t* place;
    const double* sparse_constants;
    // Scores are pooled over each class's planes of each member, then averaged over the members:
    // pool_start (n_pools + 1,), the class_start of one member.
    const std::int32_t* pool_start;
    Index n_members, n_pools;
    const ModelSpline* spline;  // or null; then there are neither kept columns nor weights
    // The same frequencies and weights for features in float32, or null. Rows with a standardised
    // value beyond `reach` have features in float64 (see predict/fourier32.h).
    const float *frequencies32, *weights32;
    ColumnsOf<float> frequency_columns32, weight_columns32;
    double reach;
};

// Where the answers to a block of rows go, all row-major; null means not wanted.
struct Answers {
    double *plane_scores, *responsibilities, *class_scores, *probabilities;
};

struct AdamRates {
    double learning_rate, mean_decay, square_decay, unbias_mean, unbias_square, epsilon;
};

template <class T>
struct TypedKernels {
    // Rows order[0..n_rows) (or 0..n_rows when order is null) into groups of panels.
    void (*pack)(Strided<T> from, const Index* order, Index n_rows, Index n_columns, T* panel);
    // Loss, gradients and usage; scratch holds terms_scratch(problem, n_groups) numbers.
    void (*terms)(const Problem<T>&, const PanelRows<T>&, Sums&, T* scratch);
    // Sum of weight * -log p of the true class; scratch as for terms.
    double (*cross_entropy)(const Problem<T>&, const PanelRows<T>&, T* scratch);
    // Class scores of the first n_rows rows, row-major (n_rows, n_classes); scratch as for terms.
    void (*class_scores)(const Problem<T>&, const PanelRows<T>&, Index n_rows, double* out,
                         T* scratch);
    // panel [group][n_inputs] times weights (n_outputs, n_inputs) into out [group][n_outputs].
    void (*multiply)(const T* weights, const T* biases, Index n_outputs, Index n_inputs,
                     const T* panel, Index n_groups, T* out);
};

// The same over sparse rows, at most ROWS_PER_BLOCK of them; `labels` holds no X, and scratch
// sparse_scratch(problem) numbers. Sums::weights_gradient is not written: `gradient` adds it up.
struct SparseKernels {
    // slopes : (n_rows, width); columns beyond the planes are not written.
    void (*terms)(const SparsePlanes&, const Sparse&, const PanelRows<double>& labels, Sums&,
                  double* slopes, double* scratch);
    double (*cross_entropy)(const SparsePlanes&, const Sparse&, const PanelRows<double>& labels,
                            double* scratch);
    void (*class_scores)(const SparsePlanes&, const Sparse&, double* out, double* scratch);
    // Adds slopes times rows, of the columns from `low` up to `high`, row after row; any number
    // of rows. gradient : laid out like the numbers of `Columns`.
    void (*gradient)(const Sparse&, const double* slopes, Index width, Index n_inputs, Index low,
                     Index high, double* gradient);
    // As Kernels::answer; scratch holds score_scratch(model) numbers.
    void (*answer)(const Model&, const Sparse& X, const Answers&, double* scratch);
};

// Tables of a tile of planes and a part are a cell, counted tile by tile: those from first to end.
struct Cells {
    Index first, end;
};

// The same over rows of codes, at most ROWS_PER_CODED_BLOCK of them; scratch holds coded_scratch
// numbers. Problem::weights is not read: the tables hold the weights. Sums::weights_gradient is
// not written: `scatter` adds the slopes to tables, and `collect` adds those to the gradient.
struct CodedKernels {
    // Loss, slopes (at the beginning of the scratch), gradient of the biases, usage.
    void (*slopes)(const Problem<float>&, const SplineTables&, const CodedRows&,
                   const PanelRows<float>& labels, Sums&, float* scratch);
    // Slopes added to the cells of `gradient`; room for a tile of the rows.
    void (*scatter)(const PartsOfSpline&, Index n_planes, const CodedRows&, const float* slopes,
                    Cells, float* gradient, float* room);
    double (*cross_entropy)(const Problem<float>&, const SplineTables&, const CodedRows&,
                            const PanelRows<float>& labels, float* scratch);
    void (*class_scores)(const Problem<float>&, const SplineTables&, const CodedRows&, double* out,
                         float* scratch);
    // weights (n_planes, n_steps) -> tables;  room for expand_room numbers, on a cache line
    void (*expand)(const PartsOfSpline&, const float* weights, Index n_planes, Cells,
                   float* tables, double* room);
    // tables -> weights, by the transposed matrix, added; the tables become zero; room as for expand
    void (*collect)(const PartsOfSpline&, float* tables, Index n_planes, Cells, double* weights,
                    double* room);
};

// Sums over rows of the negative log-likelihood of softmax(b s) and what its derivatives need.
struct Likelihood {
    double loss, slope, curvature;
};

struct Kernels {
    const char* name;
    TypedKernels<double> f64;
    TypedKernels<float> f32;
    SparseKernels sparse;
    CodedKernels coded;
    // n_rows <= ROWS_PER_BLOCK rows; scratch holds answer_scratch(model) numbers.
    void (*answer)(const Model&, Strided<double> X, Index n_rows, const Answers&, double* scratch);
    // One row; scratch holds row_scratch(model) numbers.
    void (*answer_row)(const Model&, const double* x, const Answers&, double* scratch);
    // What each column adds to the score of a plane over a spline lift; scratch as for answer_row.
    void (*contributions)(const Model&, const double* x, Index plane, double* scratch,
                          double* by_column);
    // phi = scale [cos(V w); sin(V w)] of a block of rows, row-major; scratch as for answer.
    void (*fourier_f64)(const Model&, Strided<double> V, Index n_rows, double* phi,
                        double* scratch);
    void (*fourier_f32)(const Model&, Strided<double> V, Index n_rows, float* phi, double* scratch);
    // Squared distances of the rows of panels to n_centres points (n_centres, n_columns):
    // out[centre][row], as many rows as the panels have lanes.
    void (*squared_distances)(const double* panel, Index n_groups, const double* centres,
                              Index n_centres, Index n_columns, double* out);
    // S holds class scores [group][class][lane] minus the maximum of each row.
    Likelihood (*likelihood)(const PanelRows<double>& S, Index n_classes, double b);
    // Products and sums of flat arrays, in 32 partial sums added up in a fixed tree.
    double (*dot)(const double* a, const double* b, Index n);
    void (*add_scaled)(double* a, double t, const double* d, Index n);  // a += t d
    // The same with a vector in float32: v . a;  v . a and v . b;  a += t d.
    double (*narrow_dot)(const float* v, const double* a, Index n);
    void (*narrow_dots)(const float* v, const double* a, const double* b, Index n, double* out);
    void (*add_narrow)(double* a, double t, const float* d, Index n);
    void (*adam_step)(const AdamRates&, const double* gradient, Index n, double* mean,
                      double* square, double* x);
    // Lane-wise elementary functions, for tests of their accuracy.
    void (*exponential_f64)(const double* x, Index n, double* out);
    void (*exponential_f32)(const float* x, Index n, float* out);
    void (*logarithm_f64)(const double* x, Index n, double* out);
    void (*logarithm_f32)(const float* x, Index n, float* out);
    void (*sine_cosine_f64)(const double* x, Index n, double* sine, double* cosine);
    void (*sine_cosine_f32)(const float* x, Index n, float* sine, float* cosine);
};

// Floats up to this angle lie at most 3e-5 apart.
constexpr double SINGLE_ANGLE = 0x1p9;

constexpr Index ROWS_PER_BLOCK = 64;
constexpr Index ROWS_PER_CODED_BLOCK = 1024;

static inline Index padded(Index n, Index to) { return (n + to - 1) / to * to; }

template <class T>
static inline Index terms_scratch(const Problem<T>& problem, Index n_groups)
{
    return rows_in_group<T> *
           (n_groups * problem.n_planes + 3 * problem.n_planes + 2 * problem.n_classes);
}

// Scores of a block and a row of them for every lane.
static inline Index sparse_scratch(const Problem<double>& problem)
{
    return terms_scratch(problem, ROWS_PER_BLOCK / DOUBLES) +
           DOUBLES * padded(problem.n_planes, DOUBLES);
}

// Scores of a block and a tile of them for every row.
static inline Index coded_scratch(const Problem<float>& problem)
{
    return terms_scratch(problem, ROWS_PER_CODED_BLOCK / rows_in_group<float>) +
           ROWS_PER_CODED_BLOCK * width_of_tile(problem.n_planes);
}

// Tables of all planes, and the steps of a tile with as many numbers to work on.
static inline Index table_numbers(const PartsOfSpline& lift, Index n_planes)
{
    return width_of_all_tiles(n_planes) * lift.n_bins;
}
static inline Index expand_room(const PartsOfSpline& lift, Index n_planes)
{
    return 2 * width_of_tile(n_planes) * lift.n_steps;
}

static inline Index score_scratch(const Model& m)
{
    return ROWS_PER_BLOCK * (2 * m.n_planes + 2 * m.n_classes) + DOUBLES * m.n_pools;
}

// Where the cells of n_rows rows lie, and their scores.
static inline Index spline_scratch(const Model& m, Index n_rows)
{
    if (!m.spline) return 0;
    return n_rows * padded(2 * m.spline->n_curves + m.spline->n_cells, DOUBLES) +
           n_rows * m.spline->width;
}

// Scratch for one row: its values up to the plane scores.
static inline Index lifted_scratch(const Model& m)
{
    const Index n = DOUBLES;
    return padded(m.n_kept, n) + padded(m.n_rotated, n) + padded(m.n_frequencies, n) +
           padded(m.n_lifted, n) + n;
}

// Floats of a block in the room of doubles, and a row in float64.
static inline Index scratch32(const Model& m)
{
    if (!m.frequencies32) return 0;
    return ROWS_PER_BLOCK * (m.n_rotated + m.n_frequencies + m.n_lifted + m.n_planes) / 2 +
           lifted_scratch(m) + padded(m.n_planes, DOUBLES);
}

static inline Index answer_scratch(const Model& m)
{
    return ROWS_PER_BLOCK * (m.n_kept + m.n_rotated + m.n_lifted + m.n_frequencies) +
           score_scratch(m) + spline_scratch(m, DOUBLES) + scratch32(m);
}

// Floats of one row in the room of doubles.
static inline Index row_scratch32(const Model& m)
{
    if (!m.frequencies32) return 0;
    const Index n = rows_in_group<float>;
    return (padded(m.n_rotated, n) + padded(m.n_frequencies, n) + padded(m.n_lifted, n) + n +
            padded(m.n_planes, n)) / 2;
}

static inline Index row_scratch(const Model& m)
{
    const Index n = DOUBLES;
    return spline_scratch(m, 1) + lifted_scratch(m) + padded(m.n_frequencies, n) +
           2 * padded(m.n_planes, n) + 4 * padded(m.n_pools, n) + row_scratch32(m);
}

// The functions of the best level of this CPU, or of the one named in GEOMIX_SIMD.
const Kernels& kernels();

}  // namespace geomix
