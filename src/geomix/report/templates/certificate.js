// How far the numbers of a row may move, in any direction, before the answer can change.
//
// Distances are Euclidean, in standard deviations of the training rows (`units`); categories and
// missing cells stay. The radius is a proved lower bound, made as geomix.geometry.certificate does:
// closed forms where planes are straight, and otherwise the largest radius whose bound of the
// margin's fall, column by column, leaves a margin.

const ROUNDING = 1e-9; // taken off every margin, relative to its size
const LARGEST_RADIUS = 1e6;

/** The certified radius, or null for a model without one (Fourier, pairs). */
function certifiedRadius(model, cells, found, units) {
  if (!hasPieces(model)) return null;
  const straight = model.members === 1 && model.terms.every((term) => term.kind !== "curve");
  const radius = straight
    ? radiusByPlanes(model, cells, found, units)
    : radiusByColumns(model, cells, found, units);
  return clip(radius, 0, LARGEST_RADIUS);
}

function lessRounding(margin) {
  return margin - ROUNDING * (1 + Math.abs(margin));
}

/** Terms of the numbers that are there. */
function movable(model, cells) {
  const isThere = (term) => term.kind !== "levels" && cells[term.column] !== null;
  return model.terms.filter(isThere);
}

// --- straight planes ---

function radiusByPlanes(model, cells, found, units) {
  const lines = movable(model, cells);
  const slopes = found.z.map((_, p) =>
    lines.map((term) => (term.weights[p] / term.scale) * units[term.column]),
  );
  const rate = (p, q) => {
    const size = Math.hypot(...slopes[p].map((slope, i) => slope - slopes[q][i]));
    return Math.max(size, Number.MIN_VALUE);
  };
  const classOf = planeClasses(model);
  const perClass = found.scores.map((_, c) => model.class_start[c + 1] - model.class_start[c]);
  const own = classOf.flatMap((c, p) => (c === found.code ? [p] : []));
  const others = classOf.flatMap((c, p) => (c === found.code ? [] : [p]));
  let byPlane = -Infinity; // the region of one plane
  const fastest = found.scores.map(() => Number.MIN_VALUE);
  for (const p of own) {
    let nearest = Infinity;
    for (const q of others) {
      const slack = Math.log(perClass[classOf[q]]) / model.sharpness;
      const between = rate(p, q);
      nearest = Math.min(nearest, lessRounding(found.z[p] - found.z[q] - slack) / between);
      fastest[classOf[q]] = Math.max(fastest[classOf[q]], between);
    }
    byPlane = Math.max(byPlane, nearest);
  }
  let byRate = Infinity; // the rate of a soft-OR
  found.scores.forEach((score, c) => {
    if (c === found.code) return;
    byRate = Math.min(byRate, lessRounding(found.scores[found.code] - score) / fastest[c]);
  });
  return Math.max(byPlane, byRate);
}

// --- curves and committees: the margin's fall by columns ---

function radiusByColumns(model, cells, found, units) {
  const terms = movable(model, cells);
  let radius = LARGEST_RADIUS;
  found.scores.forEach((score, rival) => {
    if (rival === found.code) return;
    const margin = lessRounding(found.scores[found.code] - score);
    const falls = terms.map((term) =>
      [-1, 1].map((sign) =>
        fallAlong(model, term, cells[term.column], found.code, rival, units[term.column], sign),
      ),
    );
    radius = Math.min(radius, largestRadius(falls, margin, radius));
  });
  return radius;
}

/** How much moving one column by t to one side may take off the margin: linear between points. */
function fallAlong(model, term, x, code, rival, unit, sign) {
  const isCurve = term.kind === "curve";
  const knots = (isCurve ? term.knots : [term.mean]).filter((knot) => sign * knot > sign * x);
  if (sign < 0) knots.reverse();
  const cellsAt = (at) => {
    const cells = [];
    cells[term.column] = at;
    return cells;
  };
  const start = added(term, cellsAt(x));
  const changes = knots.map((knot) => {
    const row = added(term, cellsAt(knot));
    return row.map((value, p) => value - start[p]);
  });
  const zero = start.map(() => 0);
  const beyond = isCurve ? zero : term.weights.map((weight) => (sign * weight * unit) / term.scale);
  const fallOf = (change) =>
    memberExtreme(model, change, rival, Math.max) - memberExtreme(model, change, code, Math.min);
  return {
    t: [0, ...knots.map((knot) => (sign * (knot - x)) / unit)],
    fall: [zero, ...changes].map(fallOf),
    after: fallOf(beyond),
  };
}

/** Mean over members of the largest or smallest number of a class's planes. */
function memberExtreme(model, numbers, c, choose) {
  const size = (model.class_start[c + 1] - model.class_start[c]) / model.members;
  let total = 0;
  for (let from = model.class_start[c]; from < model.class_start[c + 1]; from += size) {
    total += choose(...numbers.slice(from, from + size));
  }
  return total / model.members;
}

function fallAt({ t, fall, after }, r) {
  const last = t.length - 1;
  if (r > t[last]) return fall[last] + after * (r - t[last]);
  const i = Math.max(t.findIndex((point) => point >= r), 1);
  if (last === 0) return fall[0];
  return fall[i - 1] + ((fall[i] - fall[i - 1]) * (r - t[i - 1])) / (t[i] - t[i - 1]);
}

/** Largest fall per distance within r: of chords, at their ends. */
function fallRate(side, r) {
  let most = r > 0 ? Math.max(fallAt(side, r) / r, 0) : 0;
  side.t.forEach((point, i) => {
    if (point > 0 && point <= r) most = Math.max(most, side.fall[i] / point);
  });
  return most;
}

/** The largest r whose fall leaves a margin; that fall only grows with r. */
function largestRadius(falls, margin, most) {
  if (margin <= 0) return 0;
  const fall = (r) => r * Math.hypot(...falls.map((sides) => Math.max(...sides.map((side) => fallRate(side, r)))));
  if (fall(most) < margin) return most;
  let low = 0;
  let high = most;
  for (let i = 0; i < 50 && high - low > 1e-6 * high; i++) {
    // In proportion first: radii lie many powers of ten below the largest.
    const middle = low > 0 ? Math.sqrt(low * high) : high / 16;
    if (fall(middle) < margin) low = middle;
    else high = middle;
  }
  return low;
}
