// The living part of the page: controls for a row, and its prediction.
//
// `state.cells` is the row, encoded; every change of a control changes it and calls `show`.
// `window.geomix` offers the same to the console and to tests.

const { model, reading, effects } = JSON.parse(document.getElementById("page-data").textContent);
const COLUMNS_FIRST_SHOWN = 12;
const MOST_BARS = 8;
const CHANGES_SHOWN = 5;
const STEPS_SHOWN = 7;
const KINDS = {
  Typical: "correct, with the usual confidence of its class",
  Surprising: "wrong, and the model was confident",
  Wrong: "wrong, with the usual confidence of wrong predictions",
  Unsure: "the two best classes are nearly level",
  Any: "drawn at random",
};
reading.classes = reading.classes.map(leftToRight);
reading.planes = reading.planes.map(leftToRight);
for (const column of reading.columns) {
  column.name = leftToRight(column.name);
  column.levels = column.levels.map(leftToRight);
}
const units = reading.columns.map((column) => column.unit);
const missingShares = reading.columns.map((column) => column.missing_share);
const state = { cells: [], row: null, isEdited: false, showsAll: false };
const controls = new Map(); // by column: the elements that show it

function byId(id) {
  return document.getElementById(id);
}

// --- choosing a row ---

function buildChooser() {
  const chooser = byId("row");
  chooser.append(element("option", { value: "middle" }, "Middle of every column"));
  const groups = new Map();
  reading.rows.forEach((row, i) => {
    const label = `${row.kind}: ${KINDS[row.kind]}`;
    if (!groups.has(row.kind)) groups.set(row.kind, element("optgroup", { label }));
    const found = answer(model, row.cells);
    const given = found.code === row.true ? "" : `, predicted ${reading.classes[found.code]}`;
    const text = `Row ${row.place}: ${reading.classes[row.true]}${given} (${percent(found.probabilities[found.code])})`;
    groups.get(row.kind).append(element("option", { value: String(i) }, text));
  });
  chooser.append(...groups.values());
  chooser.value = reading.rows.length ? "0" : "middle";
  chooser.addEventListener("change", chooseRow);
  byId("reset").addEventListener("click", chooseRow);
}

function chooseRow() {
  const chosen = byId("row").value;
  state.row = chosen === "middle" ? null : reading.rows[Number(chosen)];
  state.cells = state.row === null ? reading.columns.map(middleCell) : [...state.row.cells];
  state.isEdited = false;
  byId("kind").textContent = state.row === null ? "" : `${state.row.kind}: ${KINDS[state.row.kind]}.`;
  buildControls();
  for (const j of controls.keys()) showCell(j);
  show();
}

function middleCell(column, j) {
  if (model.columns[j].kind === "category") return column.levels.length ? 0 : null;
  const middle = column.low / 2 + column.high / 2;
  return column.step >= 1 ? Math.round(middle) : Number(middle.toPrecision(4));
}

function change(j, cell) {
  state.cells[j] = cell;
  state.isEdited = true;
  showCell(j);
  show();
}

// --- controls ---

function visibleColumns() {
  return state.showsAll ? reading.order : reading.order.slice(0, COLUMNS_FIRST_SHOWN);
}

function buildControls() {
  const body = byId("controls").tBodies[0];
  for (const j of visibleColumns()) {
    if (controls.has(j)) continue;
    const isNumber = model.columns[j].kind === "number";
    const parts = isNumber ? numberControl(j) : levelControl(j);
    const made = {
      ...parts,
      strip: element("div"),
      flips: element("div", { className: "flips" }),
      give: element("div", { className: "give" }),
    };
    const name = element("th", { scope: "row" }, reading.columns[j].name);
    const value = element("td", {}, parts.box);
    const along = element("td", {}, made.strip, made.flips);
    const give = element("td", {}, made.give);
    body.append(element("tr", {}, name, value, along, give));
    controls.set(j, made);
    showCell(j);
  }
  const hidden = reading.order.length - visibleColumns().length;
  byId("more").hidden = hidden === 0;
  byId("more").textContent = hidden === 1 ? "Show the other column" : `Show the other ${hidden} columns`;
}

function numberControl(j) {
  const column = reading.columns[j];
  const range = { type: "range", min: column.low, max: column.high, step: column.step };
  const slider = element("input", range);
  slider.setAttribute("aria-label", column.name);
  const field = element("input", { type: "number", step: "any" });
  field.setAttribute("aria-label", `${column.name}, exact value`);
  const absent = element("input", { type: "checkbox" });
  const box = element("div", { className: "value" }, slider, field);
  if (column.can_be_missing) box.append(element("label", {}, absent, " missing"));
  slider.addEventListener("input", () => change(j, slider.valueAsNumber));
  field.addEventListener("input", () => {
    if (Number.isFinite(field.valueAsNumber)) change(j, field.valueAsNumber);
  });
  absent.addEventListener("change", () => {
    change(j, absent.checked ? null : slider.valueAsNumber);
  });
  return { box, slider, field, absent };
}

function levelControl(j) {
  const column = reading.columns[j];
  const menu = element("select");
  menu.setAttribute("aria-label", column.name);
  column.levels.forEach((level, code) => {
    menu.append(element("option", { value: String(code) }, level));
  });
  if (!model.columns[j].other) menu.append(element("option", { value: "-1" }, "(never seen)"));
  menu.append(element("option", { value: "missing" }, "(missing)"));
  menu.addEventListener("change", () => {
    change(j, menu.value === "missing" ? null : Number(menu.value));
  });
  return { box: element("div", { className: "value" }, menu), menu };
}

function showCell(j) {
  const { slider, field, absent, menu } = controls.get(j) ?? {};
  const cell = state.cells[j];
  if (menu) menu.value = cell === null ? "missing" : String(cell);
  if (!slider) return;
  absent.checked = cell === null;
  if (cell === null) {
    field.value = "";
    return;
  }
  slider.value = String(cell);
  // What is being typed must not be rewritten under the cursor.
  if (document.activeElement !== field) field.value = fieldNumber(cell, units[j]);
}

// --- the prediction and its reasons ---

function show() {
  const found = answer(model, state.cells);
  const parts = contributions(model, state.cells, found, missingShares);
  const flips = new Map(visibleColumns().map((j) => [j, flipsAlong(j)]));
  showAnswer(found);
  byId("bars").replaceChildren(
    ...probabilityBars(found.probabilities, reading.classes, MOST_BARS),
  );
  byId("reasons").replaceChildren(
    ...[planeSentence(found), certificateSentence(found), nearestFlip(flips)].flat(),
    ...counterfactualPart(found),
  );
  showWaterfall(found, parts);
  showColumns(found, parts, flips);
}

/** The largest contributions one after another; the rest in one step. */
function showWaterfall(found, parts) {
  const order = parts.byColumn.map((_, j) => j).sort((a, b) => {
    return Math.abs(parts.byColumn[b]) - Math.abs(parts.byColumn[a]);
  });
  // The line of a single other column is better its own.
  const nShown = order.length === STEPS_SHOWN + 1 ? order.length : STEPS_SHOWN;
  const shown = order.slice(0, nShown);
  const steps = shown.map((j) => {
    const name = `${reading.columns[j].name} = ${cellText(j, state.cells[j])}`;
    return { name, value: parts.byColumn[j] };
  });
  const rest = order.slice(nShown).reduce((sum, j) => sum + parts.byColumn[j], 0);
  if (order.length > nShown) steps.push({ name: `${order.length - nShown} other columns`, value: rest });
  if (Math.abs(parts.pooling ?? 0) > 0.005) steps.push({ name: "several planes", value: parts.pooling });
  const against = `${reading.classes[found.code]} over ${reading.classes[found.rival]}`;
  const title = element("p", { className: "note" }, `Why: log-odds of ${against}`);
  const names = { start: "average row", end: "this row" };
  byId("waterfall").replaceChildren(title, waterfall(steps, parts.bias, parts.margin, names));
}

function flipsAlong(j) {
  const column = reading.columns[j];
  if (model.columns[j].kind === "number") {
    return thresholds(model, state.cells, j, units[j], [column.low, column.high]);
  }
  const codes = column.levels.map((_, level) => {
    return answer(model, state.cells.map((cell, i) => (i === j ? level : cell))).code;
  });
  return { flips: [], codes, isExact: true };
}

function showAnswer(found) {
  const { code, rival, probabilities } = found;
  const label = element("p", { className: "label" }, reading.classes[code]);
  const sure = `${percent(probabilities[code])}; runner-up ${reading.classes[rival]}, ${percent(probabilities[rival])}.`;
  const lines = [label, element("p", {}, sure)];
  if (state.row !== null && !state.isEdited) {
    const truth = state.row.true === code ? "That is right." : "That is wrong:";
    const note = state.row.true === code ? truth : `${truth} the row is ${reading.classes[state.row.true]}.`;
    lines.push(element("p", { className: "note" }, note));
  } else {
    const origin = state.row === null ? "No row of the table." : `Row ${state.row.place}, changed by you.`;
    lines.push(element("p", { className: "note" }, origin));
  }
  byId("answer").replaceChildren(...lines);
}

function planeSentence({ plane, shares, scores }) {
  if (model.class_start[model.class_start.length - 1] === scores.length * model.members) return [];
  const share = percent(shares[plane] * model.members);
  const name = reading.planes[plane];
  const of = model.members > 1 ? `carries ${share} of its member's score for the class` : `carries ${share} of its class's score`;
  return element("p", {}, element("strong", {}, `Plane ${name}`), ` ${of}.`);
}

function certificateSentence(found) {
  const radius = certifiedRadius(model, state.cells, found, units);
  const title = element("strong", {}, "Certificate");
  if (radius === null) {
    const why = hasGrids(model) ? "model.certify(row) computes it for pairs of columns." : "this kind of model has none.";
    return element("p", {}, title, `: ${why}`);
  }
  if (radius >= LARGEST_RADIUS) {
    return element("p", {}, title, ": no change of the numbers alone can change the prediction.");
  }
  const text = `: no change of the numbers within ${shortNumber(radius)} standard deviations, in all of them together (Euclidean distance), can change the prediction. It is a proved lower bound.`;
  return element("p", {}, title, text);
}

/** The smallest change of a single column that changes the prediction. */
function nearestFlip(flips) {
  let best = null;
  for (const [j, along] of flips) {
    const cell = state.cells[j];
    if (model.columns[j].kind !== "number" || cell === null) continue;
    along.flips.forEach((flip, i) => {
      const distance = Math.abs(flip - cell) / units[j];
      const code = flip > cell ? along.codes[i + 1] : along.codes[i];
      if (best === null || distance < best.distance) best = { j, flip, distance, code };
    });
  }
  const title = element("strong", {}, "Nearest threshold of one column");
  if (best === null) {
    return element("p", {}, title, ": none of the columns shown changes the prediction alone.");
  }
  const { j, flip, distance, code } = best;
  const [at, now] = [flip, state.cells[j]].map((x) => columnNumber(x, units[j]));
  const text = `: ${reading.columns[j].name} at ${at} (now ${now}, ${shortNumber(distance)} standard deviations away) makes it ${reading.classes[code]}.`;
  return element("p", {}, title, text);
}

/** What Python found for this row when the page was written. */
function counterfactualPart() {
  if (state.row === null || state.isEdited || !state.row.counterfactual) return [];
  const { status, distance, lower_bound: bound, is_nearest: isNearest, changes } = state.row.counterfactual;
  const title = element("strong", {}, "Nearest row of another class");
  if (status !== "found") {
    const text = status === "infeasible" ? ": there is none, proved." : ": none was found.";
    return [element("p", {}, title, text)];
  }
  const proof = isNearest ? "proved to be the nearest" : `none is nearer than ${shortNumber(bound)}`;
  const after = [...state.row.cells];
  for (const [j, cell] of changes) after[j] = cell;
  const becomes = reading.classes[answer(model, after).code];
  const text = `: ${becomes}, ${distanceText(distance, changes)} away (${proof}); computed when this page was written. `;
  const apply = element("button", { type: "button" }, "Show it");
  apply.addEventListener("click", () => {
    state.cells = after;
    state.isEdited = true;
    for (const j of controls.keys()) showCell(j);
    show();
  });
  const size = ([j, cell]) => {
    return model.columns[j].kind === "number" ? Math.abs(cell - state.row.cells[j]) / units[j] : 1;
  };
  const largestFirst = [...changes].sort((a, b) => size(b) - size(a));
  const list = largestFirst.slice(0, CHANGES_SHOWN).map(([j, cell]) => {
    return element("li", {}, `${reading.columns[j].name}: ${cellText(j, state.row.cells[j])} → ${cellText(j, cell)}`);
  });
  const rest = changes.length - list.length;
  if (rest > 0) list.push(element("li", {}, `and ${rest} more`));
  return [element("p", {}, title, text, apply), element("ul", { className: "changes" }, ...list)];
}

/** A distance in the units of what changes: deviations of numbers, levels, or both. */
function distanceText(distance, changes) {
  const nLevels = changes.filter(([j]) => model.columns[j].kind !== "number").length;
  if (nLevels === changes.length) return nLevels === 1 ? "one changed level" : `${nLevels} changed levels`;
  return `${shortNumber(distance)} standard deviations${nLevels > 0 ? " and changed levels" : ""}`;
}

function cellText(j, cell) {
  if (cell === null) return "missing";
  if (model.columns[j].kind === "number") return columnNumber(cell, units[j]);
  return cell < 0 ? "(never seen)" : reading.columns[j].levels[cell];
}

function showColumns(found, parts, flips) {
  const most = Math.max(...parts.byColumn.map(Math.abs), 1e-9);
  for (const [j, along] of flips) {
    const made = controls.get(j);
    const cell = state.cells[j];
    const column = reading.columns[j];
    const isNumber = model.columns[j].kind === "number";
    const strip = isNumber
      ? numberStrip(along, column.low, column.high, cell)
      : levelStrip(along.codes, cell);
    made.flips.textContent = isNumber ? flipText(along, cell, column, (x) => columnNumber(x, units[j])) : levelText(j, along, found.code);
    strip.setAttribute("role", "img");
    strip.setAttribute("aria-label", made.flips.textContent);
    made.strip.replaceChildren(strip);
    const given = parts.byColumn[j];
    made.give.replaceChildren(signedBar(given, most), element("span", {}, twoDecimals(given)));
  }
  showSums(parts, found);
}

/** The nearest flips on either side, as far as the strip shows them: within the rows' range. */
function flipText({ flips, codes }, cell, { low, high }, text) {
  if (flips.length === 0) return "never changes";
  const at = cell ?? flips[0];
  const [from, to] = [Math.min(low, at), Math.max(high, at)];
  const texts = [];
  const below = flips.filter((flip) => flip < at).length;
  if (below > 0 && flips[below - 1] >= from) {
    texts.push(`below ${text(flips[below - 1])}: ${reading.classes[codes[below - 1]]}`);
  }
  if (below < flips.length && flips[below] <= to) {
    texts.push(`above ${text(flips[below])}: ${reading.classes[codes[below + 1]]}`);
  }
  return texts.length > 0 ? texts.join("; ") : `the same from ${text(from)} to ${text(to)}`;
}

function levelText(j, { codes }, code) {
  const other = codes.flatMap((one, level) => (one === code ? [] : [level]));
  if (other.length === 0) return "never changes";
  const named = other.slice(0, 2).map((level) => {
    return `${reading.columns[j].levels[level]}: ${reading.classes[codes[level]]}`;
  });
  return named.join("; ") + (other.length > 2 ? `; ${other.length - 2} more` : "");
}

/** The lines below the columns: what is left, and that it all adds up to the margin. */
function showSums(parts, found) {
  const shown = new Set(visibleColumns());
  const rest = parts.byColumn.reduce((sum, given, j) => sum + (shown.has(j) ? 0 : given), 0);
  const lines = [];
  if (shown.size < parts.byColumn.length) lines.push(["columns not shown", rest]);
  lines.push(["bias: an average row", parts.bias]);
  if (parts.isExact && model.class_start[model.class_start.length - 1] > found.scores.length) {
    lines.push(["pooling of several planes", parts.pooling]);
  }
  const against = `log of ${reading.classes[found.code]} over ${reading.classes[found.rival]}`;
  lines.push([against, parts.margin]);
  byId("controls").tFoot.replaceChildren(
    ...lines.map(([name, value]) => {
      const cell = element("td", { colSpan: 3 }, name);
      const number = element("div", { className: "give" }, twoDecimals(value));
      return element("tr", {}, cell, element("td", {}, number));
    }),
  );
}

function buildMethod() {
  const exact = "Contributions are exact: they add up to the margin. Thresholds are exact too.";
  const approximate = "This model is not a sum over its columns: contributions are those of the tangent at the row, a local approximation, and thresholds come from a scan of the range, which may miss narrow stretches.";
  const pairs = "Contributions are exact; of what two columns give together, each has one half. Thresholds are exact too.";
  byId("method").textContent = model.fourier ? approximate : hasGrids(model) ? pairs : exact;
}

// --- start ---

byId("more").addEventListener("click", () => {
  state.showsAll = true;
  buildControls();
  show();
});
buildChooser();
buildMethod();
buildEffects(effects, reading.classes);
chooseRow();
byId("live").hidden = false;

window.geomix = {
  model,
  /** Probabilities of raw cells, in the order of the columns or by name. */
  predictProba: (raw) => answer(model, encode(model, raw)).probabilities,
  cells: () => [...state.cells],
  probabilities: () => answer(model, state.cells).probabilities,
};
