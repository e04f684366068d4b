// How far the numbers of a row may move, in any direction, before the answer can change.
//
// Distances are Euclidean, in standard deviations of the training rows (`units`); categories and
// missing cells stay. The radius is a proved lower bound, made as geomix.geometry.certificate does:
// closed forms where planes are straight. For curves and committees the margin's fall is bounded
// column by column, and the shortest way to make it fall by the whole margin by Lagrange duality:
// for every multiplier l >= 0 its square is at least l margin + sum_j min_t (t^2 - l fall_j(t)).

const ROUNDING = 1e-9; // taken off every margin, relative to its size
const LARGEST_RADIUS = 1e6;
const FAR = 1e4; // deviations beyond the knots: no further is looked
const DUAL_STEPS = 40;

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
    const columns = terms.map((term) =>
      [-1, 1].flatMap((sign) =>
        fallAlong(model, term, cells[term.column], found.code, rival, units[term.column], sign),
      ),
    );
    radius = Math.min(radius, shortestFall(columns, margin));
  });
  return radius;
}

/** How much moving one column by t to one side may take off the margin: segments of lines. */
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
  const zero = start.map(() => 0);
  const changes = knots.map((knot) => {
    const row = added(term, cellsAt(knot));
    return row.map((value, p) => value - start[p]);
  });
  const distances = [0, ...knots.map((knot) => (sign * (knot - x)) / unit)];
  if (!isCurve) {
    // A line goes on beyond its mean; a curve is flat beyond its knots.
    const last = changes.length ? changes[0] : zero;
    const step = (FAR * sign * unit) / term.scale;
    changes.push(last.map((change, p) => change + step * term.weights[p]));
    distances.push(distances[distances.length - 1] + FAR);
  }
  const falls = [zero, ...changes].map(
    (change) =>
      memberExtreme(model, change, rival, Math.max) - memberExtreme(model, change, code, Math.min),
  );
  const stay = { from: 0, to: 0, fall: 0, slope: 0, end: 0 };
  const moved = distances.slice(1).map((to, i) => {
    const from = distances[i];
    const slope = (falls[i + 1] - falls[i]) / (to - from);
    return { from, to, fall: falls[i], slope, end: falls[i + 1] };
  });
  return [stay, ...moved];
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

/** A lower bound of the distance at which the columns together take off the margin. */
function shortestFall(columns, margin) {
  if (margin <= 0) return 0;
  const most = columns.reduce(
    (sum, segments) => sum + Math.max(...segments.map(({ fall, end }) => Math.max(fall, end))),
    0,
  );
  if (most < margin) {
    const reachesFar = columns.some((segments) => segments.some(({ to }) => to >= FAR));
    return reachesFar ? FAR : Infinity;
  }
  let best = 0;
  const missing = (multiplier) => {
    const [value, needed] = dual(columns, margin, multiplier);
    best = Math.max(best, value);
    return needed;
  };
  let low = 0;
  let high = 1e-3;
  while (missing(high) > 0 && high < 1e12) [low, high] = [high, 4 * high];
  for (let i = 0; i < DUAL_STEPS && high - low > 1e-6 * high; i++) {
    const middle = (low + high) / 2;
    if (missing(middle) > 0) low = middle;
    else high = middle;
  }
  return Math.min(Math.sqrt(best * (1 - ROUNDING)), FAR);
}

/** Value of the bound at a multiplier, and how much of the margin is still left there. */
function dual(columns, margin, multiplier) {
  let value = multiplier * margin;
  let needed = margin;
  for (const segments of columns) {
    let least = Infinity;
    let gained = 0;
    for (const { from, to, fall, slope } of segments) {
      const t = clip(0.5 * multiplier * slope, from, to);
      const there = fall + slope * (t - from);
      const cost = t * t - multiplier * there;
      if (cost < least) [least, gained] = [cost, there];
    }
    value += least;
    needed -= gained;
  }
  return [value, needed];
}
