"""The C code that is the same for every model: loops over the tables that ``c_source`` writes.

Only the pieces that a model needs are written, so that no compiler warns of unused code.
"""

from __future__ import annotations

ADD = """\
static void add(double *sum, const double *values, double factor)
{
    int i;
    for (i = 0; i < N_SUMS; i++)
        sum[i] += factor * values[i];
}

"""

LEVEL_CODE = """\
/* The code of a cell of so many levels, or -1 if it is none of them. */
static int level_code(double cell, int n_levels)
{
    return cell >= 0.0 && cell < (double)n_levels ? (int)cell : -1;
}

"""

GRID_CELL = """\
/* The cell of one side of a grid; the last one is for missing. */
static int grid_cell(double cell, int side)
{
    int n = grid_shape[side], i = grid_cut_start[side], count = 0;
    if (!grid_is_cut[side]) {
        int code = level_code(cell, n - 1);
        return code < 0 ? n - 1 : code;
    }
    if (isnan(cell))
        return n - 1;
    for (; i < grid_cut_start[side + 1]; i++)
        count += cell >= grid_cuts[i];
    return count;
}

"""

LOOPS = {
    "line": """\
    for (i = 0; i < N_LINES; i++) {
        double x = row[line_column[i]], u = (x - line_mean[i]) / line_scale[i];
        if (isnan(x)) {
            add(sum, line_missing + i * N_SUMS, 1.0);
            continue;
        }
        u = u > 1e150 ? 1e150 : u < -1e150 ? -1e150 : u;
        add(sum, line_weights + i * N_SUMS, u);
    }
""",
    "curve": """\
    for (i = 0; i < N_CURVES; i++) {
        double x = row[curve_column[i]], part;
        int low = curve_start[i], high = curve_start[i + 1] - 1;
        if (isnan(x)) {
            add(sum, curve_missing + i * N_SUMS, 1.0);
            continue;
        }
        x = x < curve_knots[low] ? curve_knots[low] : x > curve_knots[high] ? curve_knots[high] : x;
        while (high - low > 1) {
            int middle = low + (high - low) / 2;
            if (x >= curve_knots[middle])
                low = middle;
            else
                high = middle;
        }
        part = (x - curve_knots[low]) / (curve_knots[high] - curve_knots[low]);
        add(sum, curve_values + low * N_SUMS, 1.0 - part);
        add(sum, curve_values + high * N_SUMS, part);
    }
""",
    "levels": """\
    for (i = 0; i < N_LEVELS; i++) {
        double x = row[levels_column[i]];
        int code = level_code(x, levels_start[i + 1] - levels_start[i]);
        if (isnan(x))
            add(sum, levels_missing + i * N_SUMS, 1.0);
        else if (code >= 0)
            add(sum, levels_values + (levels_start[i] + code) * N_SUMS, 1.0);
    }
""",
    "grid": """\
    for (i = 0; i < N_GRIDS; i++) {
        int a = grid_cell(row[grid_column[2 * i]], 2 * i);
        int b = grid_cell(row[grid_column[2 * i + 1]], 2 * i + 1);
        int cell = grid_start[i] + a * grid_shape[2 * i + 1] + b;
        add(sum, grid_values + cell * N_SUMS, 1.0);
    }
""",
}

DIRECT = """\
static void plane_scores(const double *row, double *z)
{
    sums(row, z);
}
"""

ANGLES = """\
static void plane_scores(const double *row, double *z)
{
    double angle[N_SUMS];
    int p, i;
    sums(row, angle);
    for (p = 0; p < N_PLANES; p++)
        z[p] = fourier_biases[p];
    for (i = 0; i < N_SUMS; i++) {
        double c = cos(angle[i]), s = sin(angle[i]);
        for (p = 0; p < N_PLANES; p++) {
            z[p] += fourier_weights[2 * p * N_SUMS + i] * c;
            z[p] += fourier_weights[(2 * p + 1) * N_SUMS + i] * s;
        }
    }
}
"""

POOLING = """\
/* Soft-OR of each class, and the share of every plane in it, in the place of its score. */
static void pool(double *z, double *score)
{
    int c, m, p;
    for (c = 0; c < N_CLASSES; c++) {
        int size = (class_start[c + 1] - class_start[c]) / N_MEMBERS;
        score[c] = 0.0;
        for (m = 0; m < N_MEMBERS; m++) {
            double *own = z + class_start[c] + m * size;
            double top = own[0], total = 0.0;
            for (p = 1; p < size; p++)
                top = own[p] > top ? own[p] : top;
            for (p = 0; p < size; p++) {
                own[p] = exp(SHARPNESS * (own[p] - top));
                total += own[p];
            }
            for (p = 0; p < size; p++)
                own[p] /= total;
            score[c] += top + log(total) / SHARPNESS;
        }
        score[c] /= N_MEMBERS * TEMPERATURE;
    }
}

static int largest(const double *values, int n)
{
    int i, best = 0;
    for (i = 1; i < n; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}
"""

PUBLIC = """\
int @predict(const double *row, double *probabilities);
int @responsible_plane(const double *row);

int @predict(const double *row, double *probabilities)
{
    double z[N_PLANES], total = 0.0, top;
    int c, best;
    plane_scores(row, z);
    pool(z, probabilities);
    best = largest(probabilities, N_CLASSES);
    top = probabilities[best];
    for (c = 0; c < N_CLASSES; c++) {
        probabilities[c] = exp(probabilities[c] - top);
        total += probabilities[c];
    }
    for (c = 0; c < N_CLASSES; c++)
        probabilities[c] /= total;
    return best;
}

int @responsible_plane(const double *row)
{
    double z[N_PLANES], score[N_CLASSES];
    int c;
    plane_scores(row, z);
    pool(z, score);
    c = largest(score, N_CLASSES);
    return largest(z + class_start[c], class_start[c + 1] - class_start[c]);
}
"""
