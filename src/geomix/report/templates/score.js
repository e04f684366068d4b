// The model itself: from the cells of a row to its probabilities.
//
// `model` is the document that geomix.export.to_json writes; docs/exports.md has these steps in
// words. `cells` holds for each column a number, the code of a level (-1: never seen), or null
// where it is missing.

const LARGEST_STANDARDIZED = 1e150;

/** Raw cells, in the order of the columns or by name, as numbers and codes. */
function encode(model, raw) {
  return model.columns.map((column, j) => {
    const cell = Array.isArray(raw) ? raw[j] : raw[column.name];
    if (cell === null || cell === undefined || Number.isNaN(cell)) return null;
    if (column.kind === "number") return Number(cell);
    const code = column.levels.findIndex((level) => level === cell || sameNumber(level, cell));
    if (code >= 0) return code;
    return column.other ? column.levels.length : -1;
  });
}

/** A level that is a truth value matches 0 and 1. */
function sameNumber(level, cell) {
  return typeof level !== "string" && typeof cell !== "string" && Number(level) === Number(cell);
}

/** What a term adds to each of the sums for these cells, or null where it adds nothing. */
function added(term, cells) {
  if (term.kind === "grid") return gridRow(term, cells);
  const cell = cells[term.column];
  if (cell === null) return term.missing ?? null;
  if (term.kind === "levels") return cell >= 0 ? term.values[cell] : null;
  if (term.kind === "curve") return curveAt(term, cell);
  const u = clip((cell - term.mean) / term.scale, -LARGEST_STANDARDIZED, LARGEST_STANDARDIZED);
  return term.weights.map((weight) => weight * u);
}

function gridRow(term, cells) {
  const [first, second] = term.columns.map((j, side) => {
    const cell = cells[j];
    const cuts = term.cuts[side];
    const last = term.shape[side] - 1;
    if (cell === null) return last;
    if (cuts === null) return cell >= 0 && cell < last ? cell : last;
    return cuts.filter((cut) => cut <= cell).length;
  });
  return term.values[first * term.shape[1] + second];
}

/** Linear between the knots, constant beyond them. */
function curveAt(term, cell) {
  const { knots, values } = term;
  const last = knots.length - 1;
  const x = clip(cell, knots[0], knots[last]);
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= x) low = middle;
    else high = middle;
  }
  // Knots may lie further apart than the largest number.
  const unit = Number.isFinite(knots[high] - knots[low]) ? 1 : 0.25;
  const part = (x * unit - knots[low] * unit) / (knots[high] * unit - knots[low] * unit);
  return values[low].map((value, o) => value * (1 - part) + values[high][o] * part);
}

/** h: the sums over all terms. Without a Fourier lift they are the plane scores. */
function sumsOf(model, cells) {
  const sums = model.bias.slice();
  for (const term of model.terms) {
    const row = added(term, cells);
    if (row !== null) for (let o = 0; o < sums.length; o++) sums[o] += row[o];
  }
  return sums;
}

/** z: the score of each plane. */
function planeScores(model, sums) {
  if (!model.fourier) return sums;
  const m = sums.length;
  const phi = [...sums.map(Math.cos), ...sums.map(Math.sin)];
  return model.fourier.weights.map((weights, p) => {
    let z = model.fourier.biases[p];
    for (let i = 0; i < 2 * m; i++) z += weights[i] * phi[i];
    return z;
  });
}

/** s: score of each class (before the temperature); shares: responsibility of each plane. */
function pool(model, z) {
  const { class_start: start, members, sharpness } = model;
  const scores = [];
  const shares = new Array(z.length);
  for (let c = 0; c + 1 < start.length; c++) {
    const size = (start[c + 1] - start[c]) / members;
    let score = 0;
    for (let from = start[c]; from < start[c + 1]; from += size) {
      score += poolOne(z, from, from + size, sharpness, members, shares);
    }
    scores.push(score / members);
  }
  return { scores, shares };
}

/** The soft-OR of planes from..to; fills their shares, divided by the number of members. */
function poolOne(z, from, to, sharpness, members, shares) {
  let top = -Infinity;
  for (let p = from; p < to; p++) top = Math.max(top, z[p]);
  let total = 0;
  for (let p = from; p < to; p++) {
    // The maximum is taken off first: exp(700) overflows, and sharpness multiplies the scores.
    shares[p] = Math.exp(sharpness * (z[p] - top));
    total += shares[p];
  }
  for (let p = from; p < to; p++) shares[p] /= total * members;
  return top + Math.log(total) / sharpness;
}

function softmax(scores) {
  const top = Math.max(...scores);
  const weights = scores.map((score) => Math.exp(score - top));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / total);
}

/** Everything the model computes for a row. */
function answer(model, cells) {
  const sums = sumsOf(model, cells);
  const z = planeScores(model, sums);
  const { scores, shares } = pool(model, z);
  const code = largest(scores);
  const rival = largest(scores.map((score, c) => (c === code ? -Infinity : score)));
  const own = shares.slice(model.class_start[code], model.class_start[code + 1]);
  return {
    sums,
    z,
    scores,
    shares,
    probabilities: softmax(scores.map((score) => score / model.temperature)),
    code,
    rival,
    plane: model.class_start[code] + largest(own),
  };
}

/** The class of each plane. */
function planeClasses(model) {
  const start = model.class_start;
  return Array.from({ length: start[start.length - 1] }, (_, p) =>
    start.findIndex((first, c) => first <= p && p < start[c + 1]),
  );
}

/** The place of the largest number; of equals the first. */
function largest(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}

function clip(x, low, high) {
  return Math.min(Math.max(x, low), high);
}
