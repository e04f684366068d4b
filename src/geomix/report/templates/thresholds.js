// The values of one number at which the answer flips while the rest of the row is held.
//
// Between two knots every plane's score is linear in the column, so every class's score is convex
// there: below its chord, above its tangents, with a slope between those at the ends. That proves
// where two classes cannot cross, or cross at most once; otherwise the interval is halved. It is the
// method of geomix.geometry.thresholds. A pair of columns adds a constant between its cuts, so the
// column is cut there too. Models without such pieces (Fourier) are scanned.

const MOST_HALVINGS = 60;
const MOST_DOUBLINGS = 60;
const SCAN_POINTS = 96;

/** Whether the model has pairs of columns. */
function hasGrids(model) {
  return model.terms.some((term) => term.kind === "grid");
}

/** Cuts of a number in all pairs that it is in. */
function cutsOf(model, j) {
  const grids = model.terms.filter((term) => term.kind === "grid" && term.columns.includes(j));
  return distinct(grids.flatMap((term) => term.cuts[term.columns.indexOf(j)] ?? []));
}

/** {flips, codes, isExact}: where the answer changes along column j, and the answers between. */
function thresholds(model, cells, j, unit, range) {
  const term = model.terms.find((one) => one.kind !== "grid" && one.column === j);
  const cuts = cutsOf(model, j);
  if (model.fourier || (!term && cuts.length)) return scanned(model, cells, j, range);
  if (!term) return { flips: [], codes: [answer(model, cells).code], isExact: true };
  const line = lineAlong(model, cells, j, term);
  const roots = [...cuts];
  for (let i = 0; i + 1 < line.knots.length; i++) {
    const [first, last] = [line.knots[i], line.knots[i + 1]];
    const rise = line.values[i + 1].map((value, p) => value - line.values[i][p]);
    const slope = rise.map((one) => one / (last - first));
    const points = [first, ...cuts.filter((cut) => first < cut && cut < last), last];
    for (let k = 0; k + 1 < points.length; k++) {
      roots.push(...rootsOn(model, line.at(points[k]), slope, points[k], points[k], points[k + 1]));
    }
  }
  if (line.slope.some((one) => one !== 0)) {
    roots.push(...rootsOnRay(model, line.at(line.knots[0]), line.slope, line.knots[0], -1, unit));
    const last = line.knots[line.knots.length - 1];
    roots.push(...rootsOnRay(model, line.at(last), line.slope, last, 1, unit));
  }
  return { ...trueFlips(model, cells, j, distinct(roots), line.knots, unit), isExact: true };
}

/** A column's knots, its values there, its slope beyond them, and all planes' scores at x. */
function lineAlong(model, cells, j, term) {
  const isCurve = term.kind === "curve";
  const zero = new Array(model.class_start[model.class_start.length - 1]).fill(0);
  return {
    knots: isCurve ? term.knots : [term.mean],
    values: isCurve ? term.values : [zero],
    slope: isCurve ? zero : term.weights.map((weight) => weight / term.scale),
    at: (x) => sumsOf(model, cells.map((cell, i) => (i === j ? x : cell))),
  };
}

/** Scores of the classes and their slopes at x, where z = Z + slope (x - at). */
function scoresAt(model, Z, slope, at, x) {
  const { scores, shares } = pool(model, Z.map((z, p) => z + slope[p] * (x - at)));
  const rates = scores.map((_, c) => {
    let rate = 0;
    for (let p = model.class_start[c]; p < model.class_start[c + 1]; p++) {
      rate += shares[p] * slope[p];
    }
    return rate;
  });
  return { x, scores, rates };
}

function rootsOn(model, Z, slope, at, a, b) {
  const found = [];
  const evaluate = (x) => scoresAt(model, Z, slope, at, x);
  walk(evaluate, evaluate(a), evaluate(b), null, 0, found);
  return found;
}

/** Crossings, on [left.x, right.x], of any two classes that may both win there. */
function walk(evaluate, left, right, pairs, depth, found) {
  const [a, b] = [left.x, right.x];
  if (!(b > a)) return;
  const open = [];
  for (const [c, k] of pairs ?? pairsThatMayWin(left, right)) {
    const first = left.scores[c] - left.scores[k];
    const last = right.scores[c] - right.scores[k];
    if (first > 0 === last > 0 && keptApart(c, k, left, right)) continue;
    const slowest = left.rates[c] - right.rates[k];
    const fastest = right.rates[c] - left.rates[k];
    if (slowest >= 0 || fastest <= 0) {
      // The difference only rises, or only falls.
      if (first * last <= 0 && first !== last) found.push(rootBetween(evaluate, c, k, a, b));
      continue;
    }
    open.push([c, k]);
  }
  if (open.length === 0) return;
  const middle = a / 2 + b / 2;
  if (depth >= MOST_HALVINGS || !(a < middle && middle < b)) {
    found.push(middle); // a touch, or two crossings closer than numbers resolve
    return;
  }
  const half = evaluate(middle);
  walk(evaluate, left, half, open, depth + 1, found);
  walk(evaluate, half, right, open, depth + 1, found);
}

function pairsThatMayWin(left, right) {
  const width = right.x - left.x;
  const floor = left.scores.map((score, c) =>
    Math.max(
      Math.min(score, score + left.rates[c] * width),
      Math.min(right.scores[c], right.scores[c] - right.rates[c] * width),
    ),
  );
  const needed = Math.max(...floor);
  const may = floor.map((_, c) => c);
  const kept = may.filter((c) => Math.max(left.scores[c], right.scores[c]) >= needed);
  return kept.flatMap((c, i) => kept.slice(i + 1).map((k) => [c, k]));
}

/** Whether chord and tangents prove that two classes do not meet. */
function keptApart(c, k, left, right) {
  const [upper, lower] = left.scores[c] < left.scores[k] ? [k, c] : [c, k];
  const proves = (here, there) => {
    const near = here.scores[upper] - here.scores[lower];
    const far = here.scores[upper] + here.rates[upper] * (there.x - here.x) - there.scores[lower];
    return near > 0 && far > 0;
  };
  return proves(left, right) || proves(right, left);
}

/** The one crossing of two classes, by halving down to neighbouring numbers. */
function rootBetween(evaluate, c, k, a, b) {
  const difference = (x) => {
    const { scores } = evaluate(x);
    return scores[c] - scores[k];
  };
  return halved(difference, a, b);
}

function halved(difference, a, b) {
  const start = difference(a);
  if (start === 0) return a;
  for (let i = 0; i < 200; i++) {
    const middle = a / 2 + b / 2;
    if (!(a < middle && middle < b)) break;
    const value = difference(middle);
    if (value === 0) return middle;
    if (value > 0 === start > 0) a = middle;
    else b = middle;
  }
  return b;
}

/** Roots from `start` outwards in doubling steps, until nothing can change any more. */
function rootsOnRay(model, Z, slope, start, sign, unit) {
  const roots = [];
  let near = 0;
  let step = unit;
  for (let i = 0; i < MOST_DOUBLINGS; i++) {
    const ends = [start + sign * near, start + sign * (near + step)].sort((p, q) => p - q);
    roots.push(...rootsOn(model, Z, slope, start, ...ends));
    near += step;
    step *= 2;
    if (isSettled(model, Z, slope, start, sign, near)) break;
  }
  return roots;
}

/** Whether the winner's tangent rises at least as fast as every rival ever will. */
function isSettled(model, Z, slope, start, sign, far) {
  const { scores, rates } = scoresAt(model, Z, slope, start, start + sign * far);
  const winner = largest(scores);
  return scores.every((score, c) => {
    if (c === winner) return true;
    return sign * rates[winner] >= steepest(model, slope, sign, c) && scores[winner] > score;
  });
}

/** Mean over members of the steepest of a class's planes. */
function steepest(model, slope, sign, c) {
  const size = (model.class_start[c + 1] - model.class_start[c]) / model.members;
  let total = 0;
  for (let from = model.class_start[c]; from < model.class_start[c + 1]; from += size) {
    let most = -Infinity;
    for (let p = from; p < from + size; p++) most = Math.max(most, sign * slope[p]);
    total += most;
  }
  return total / model.members;
}

function distinct(numbers) {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Of all crossings those where the winner changes; asked half-way between crossings. */
function trueFlips(model, cells, j, roots, knots, unit) {
  const at = winnerAlong(model, cells, j);
  if (roots.length === 0) return { flips: [], codes: [at(knots[0])] };
  const reach = Math.max(unit, knots[knots.length - 1] - knots[0]);
  const probes = [Math.min(roots[0], knots[0]) - reach];
  for (let i = 0; i + 1 < roots.length; i++) probes.push(roots[i] / 2 + roots[i + 1] / 2);
  probes.push(Math.max(roots[roots.length - 1], knots[knots.length - 1]) + reach);
  const winners = probes.map(at);
  const flips = roots.filter((_, i) => winners[i] !== winners[i + 1]);
  const codes = winners.filter((code, i) => i === 0 || code !== winners[i - 1]);
  return { flips, codes };
}

/** Flips between neighbouring points of a scan over the range; narrow stretches may be missed. */
function scanned(model, cells, j, [low, high]) {
  const at = winnerAlong(model, cells, j);
  const flips = [];
  const codes = [at(low)];
  for (let i = 1; i <= SCAN_POINTS; i++) {
    const [a, b] = [i - 1, i].map((n) => low + ((high - low) * n) / SCAN_POINTS);
    const code = at(b);
    const before = codes[codes.length - 1];
    if (code === before) continue;
    flips.push(halved((x) => (at(x) === before ? 1 : -1), a, b));
    codes.push(code);
  }
  return { flips, codes, isExact: false };
}

/** The answer as a function of column j; what the other columns add is summed up once. */
function winnerAlong(model, cells, j) {
  const moves = (term) => (term.kind === "grid" ? term.columns.includes(j) : term.column === j);
  const rest = sumsOf({ ...model, terms: model.terms.filter((term) => !moves(term)) }, cells);
  const own = model.terms.filter(moves);
  const row = [...cells];
  return (x) => {
    row[j] = x;
    const sums = sumsOf({ ...model, bias: rest, terms: own }, row);
    return largest(pool(model, planeScores(model, sums)).scores);
  };
}
