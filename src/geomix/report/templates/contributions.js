// What each column gives to the margin log(p_winner / p_runner-up) of an answer.
//
// A soft-OR is its planes' scores weighted by their responsibilities, plus their entropy over the
// sharpness. Planes are sums over columns, hence margin = sum of contributions + bias + pooling,
// exactly. Under a Fourier lift they are not: there the parts are those of the tangent at the row, a
// local approximation, and the bias is what is left.
//
// `missingShares` holds, for each column, the share of training rows where a standardised number
// was missing: the export keeps what such a number adds when it is there in the bias, while a
// contribution counts from the average cell.

function contributions(model, cells, found, missingShares) {
  const { code, rival } = found;
  const margin = (found.scores[code] - found.scores[rival]) / model.temperature;
  const weights = planeWeights(model, found);
  const rates = model.fourier ? sumRates(model, found.sums, weights) : weights;
  const byColumn = new Array(model.columns.length).fill(0);
  let bias = model.fourier ? 0 : dot(rates, model.bias);
  for (const term of model.terms) {
    const row = added(term, cells);
    const given = row === null ? 0 : dot(rates, row);
    const columns = term.kind === "grid" ? term.columns : [term.column];
    for (const j of columns) byColumn[j] += given / columns.length;
    if (term.kind === "line" && term.missing && missingShares[term.column] > 0) {
      const average = missingShares[term.column] * dot(rates, term.missing);
      byColumn[term.column] -= average;
      bias += average;
    }
  }
  if (model.fourier) bias = margin - byColumn.reduce((a, b) => a + b, 0);
  const pooling = model.fourier ? 0 : entropyPart(model, found, weights);
  return { byColumn, bias, pooling, margin, isExact: !model.fourier };
}

/** D: responsibility over temperature, negative for the runner-up, zero for other classes. */
function planeWeights(model, found) {
  const start = model.class_start;
  const within = (p, c) => start[c] <= p && p < start[c + 1];
  return found.shares.map((share, p) => {
    const sign = within(p, found.code) ? 1 : within(p, found.rival) ? -1 : 0;
    return (sign * share) / model.temperature;
  });
}

function entropyPart(model, found, weights) {
  let total = 0;
  found.shares.forEach((share, p) => {
    if (share > 0) total -= (weights[p] * Math.log(model.members * share)) / model.sharpness;
  });
  return total;
}

/** How fast the margin grows with each of the sums, under a Fourier lift. */
function sumRates(model, sums, weights) {
  const m = sums.length;
  const mixed = new Array(2 * m).fill(0);
  model.fourier.weights.forEach((row, p) => {
    if (weights[p] !== 0) for (let i = 0; i < 2 * m; i++) mixed[i] += weights[p] * row[i];
  });
  return sums.map((h, o) => Math.cos(h) * mixed[m + o] - Math.sin(h) * mixed[o]);
}

function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}
