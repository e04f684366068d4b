// How far the numbers of a row may move, in any direction, before the answer can change.
//
// Distances are Euclidean, in standard deviations of the training rows (`units`); categories and
// missing cells stay. The radius is a proved lower bound, made as geomix.geometry.certificate does:
// closed forms where planes are straight. For curves and ensembles, the margin falls by at most the
// rise of one plane of the rival less that of the tangent of the predicted class, summed over
// columns. The shortest way to make it fall by the whole margin is bounded by Lagrange duality: for
// every multiplier l >= 0 its square is at least l margin + sum_j min_t (t^2 - l fall_j(t)). Among
// moves of at most R in each column the bound is tighter, and any other move is longer than R.

const ROUNDING = 1e-9; // taken off every margin, relative to its size
const LARGEST_RADIUS = 1e6;
const FAR = 1e4; // deviations beyond the knots: no further is looked
const DUAL_STEPS = 40;
const COARSE = 0.02; // relative error of the largest r within which no column moves far enough
const REACHES = [1.5, 3, 1e9]; // R, as multiples of that r

/** The certified radius, or null where the page has none (Fourier, pairs). */
function certifiedRadius(model, cells, found, units) {
  if (model.fourier || hasGrids(model)) return null;
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

// --- curves and ensembles: the margin's fall by columns ---

function radiusByColumns(model, cells, found, units) {
  const terms = movable(model, cells);
  let radius = LARGEST_RADIUS;
  found.scores.forEach((score, rival) => {
    if (rival === found.code) return;
    const margin = lessRounding(found.scores[found.code] - score);
    const ways = risesOf(model, rival).map((rise) =>
      terms.map((term) =>
        [-1, 1].flatMap((sign) =>
          fallAlong(model, term, cells[term.column], found, rise, units[term.column], sign),
        ),
      ),
    );
    radius = Math.min(radius, radiusAgainst(ways, margin));
  });
  return radius;
}

/** Upper bounds of the rise of a class's score, of which one holds: the rise of each plane. */
function risesOf(model, c) {
  if (model.members > 1) return [(change) => memberLargest(model, change, c)];
  const planes = range(model.class_start[c], model.class_start[c + 1]);
  return planes.map((p) => (change) => change[p]);
}

function range(from, to) {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

/** The best bound of the distance over a few R; ways : columns of segments, one set per rise. */
function radiusAgainst(ways, margin) {
  if (margin <= 0) return 0;
  if (mostOf(ways) < margin) return reachesFar(ways) ? FAR : Infinity;
  let [low, high] = [0, FAR];
  for (let i = 0; i < 50 && high - low > COARSE * high; i++) {
    const middle = low > 0 ? Math.sqrt(low * high) : high / 16;
    if (mostOf(within(ways, middle)) < margin) low = middle;
    else high = middle;
  }
  let best = low;
  for (const R of REACHES.map((times) => low * times)) {
    if (low > 0) best = Math.max(best, Math.min(R, shortestOf(within(ways, R), margin)));
  }
  return best;
}

function mostOf(ways) {
  return Math.max(...ways.map(largestFall));
}

/** The most that all columns together take off. */
function largestFall(columns) {
  const largest = (segments) => Math.max(...segments.map(({ fall, end }) => Math.max(fall, end)));
  return columns.reduce((sum, segments) => sum + largest(segments), 0);
}

function reachesFar(ways) {
  return ways.some((columns) => columns.some((segments) => segments.some(({ to }) => to >= FAR)));
}

/** The segments up to a distance R in every column. */
function within(ways, R) {
  const cut = (segment) => {
    if (segment.to <= R) return segment;
    const end = segment.at(R);
    return { ...segment, to: R, end, slope: (end - segment.fall) / (R - segment.from || 1) };
  };
  const near = (segments) => segments.filter(({ from }) => from <= R).map(cut);
  return ways.map((columns) => columns.map(near));
}

function shortestOf(ways, margin) {
  return Math.min(...ways.map((columns) => shortestFall(columns, margin)));
}

/** How much moving one column by t to one side may take off the margin: segments of lines. */
function fallAlong(model, term, x, found, rise, unit, sign) {
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
  const tangent = (change) => {
    const own = range(model.class_start[found.code], model.class_start[found.code + 1]);
    return own.reduce((sum, p) => sum + found.shares[p] * change[p], 0);
  };
  const fallOf = (change) => rise(change) - tangent(change);
  const ends = [zero, ...changes];
  const falls = ends.map(fallOf);
  const stay = { from: 0, to: 0, fall: 0, slope: 0, end: 0 };
  const moved = distances.slice(1).map((to, i) => {
    const from = distances[i];
    const slope = (falls[i + 1] - falls[i]) / (to - from);
    const at = (t) => {
      const part = (t - from) / (to - from);
      return fallOf(ends[i].map((value, p) => value + part * (ends[i + 1][p] - value)));
    };
    return { from, to, fall: falls[i], slope, end: falls[i + 1], at };
  });
  return [stay, ...moved];
}

/** Mean over members of the largest number of a class's planes. */
function memberLargest(model, numbers, c) {
  const size = (model.class_start[c + 1] - model.class_start[c]) / model.members;
  let total = 0;
  for (let from = model.class_start[c]; from < model.class_start[c + 1]; from += size) {
    total += Math.max(...numbers.slice(from, from + size));
  }
  return total / model.members;
}

/** A lower bound of the distance at which the columns together take off the margin. */
function shortestFall(columns, margin) {
  if (largestFall(columns) < margin) return reachesFar([columns]) ? FAR : Infinity;
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
