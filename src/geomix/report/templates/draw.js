// Elements and small pictures. Texts are only ever set as text, so nothing in a name is markup.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element with properties and children (elements or texts). */
function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** An SVG element with attributes. */
function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** The colour of a class; the ninth class has that of the first in a lighter shade. */
function classColour(code) {
  return `c${code % 8}${["", " paler", " palest"][Math.floor(code / 8) % 3]}`;
}

/** Text in which a name of a right-to-left script moves nothing that follows it. */
function leftToRight(text) {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(text) ? `${text}\u200e` : text;
}

/** A number with about four digits. */
function shortNumber(x) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
  return text.replace("e+", "e").replaceAll("-", "\u2212");
}

/** As many digits as show a hundredth of `unit`, and four at least; whole numbers have all. */
function digitsFor(x, unit) {
  if (Number.isInteger(x) && Math.abs(x) < 1e12 && unit < 1e9) return 12;
  const needed = Math.round(Math.log10(Math.abs(x) / unit)) + 2;
  return clip(Number.isFinite(needed) ? needed : 4, 4, 15);
}

/** A number of a column whose standard deviation is `unit`. */
function columnNumber(x, unit) {
  const digits = digitsFor(x, unit);
  return digits === 4 ? shortNumber(x) : String(Number(x.toPrecision(digits))).replaceAll("-", "\u2212");
}

/** The same as a field for numbers takes it; long ones with an exponent. */
function fieldNumber(x, unit) {
  const number = Number(x.toPrecision(digitsFor(x, unit)));
  const [text, short] = [String(number), number.toExponential().replace("e+", "e")];
  return text.length > 9 && short.length < text.length ? short : text;
}

function percent(share) {
  if (share < 1 && share > 0.9995) return "over 99.9\u00a0%";
  if (share > 0 && share < 0.0005) return "under 0.1\u00a0%";
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

/** A number with two decimals and a minus sign as long as a digit; never "-0.00". */
function twoDecimals(x) {
  return Math.abs(x) < 0.005 ? "0.00" : `${x < 0 ? "\u2212" : ""}${Math.abs(x).toFixed(2)}`;
}

/** Bars of the probabilities, largest first. */
function probabilityBars(probabilities, names, most) {
  const order = probabilities.map((_, c) => c).sort((a, b) => probabilities[b] - probabilities[a]);
  return order.slice(0, most).map((c) => {
    const fill = element("div", { className: `fill ${classColour(c)}` });
    fill.style.width = `${100 * probabilities[c]}%`;
    return element(
      "div",
      { className: "prob" },
      element("span", { className: "name", title: names[c] }, names[c]),
      element("div", { className: "track" }, fill),
      element("span", { className: "n" }, percent(probabilities[c])),
    );
  });
}

/** Stretches of [low, high] coloured by their answers, and a mark where the row is. */
function numberStrip({ flips, codes }, low, high, cell) {
  const place = (x) => clip((150 * (x / 2 - low / 2)) / (high / 2 - low / 2), 0, 150);
  const ends = [low, ...flips.map((flip) => clip(flip, low, high)), high];
  const svg = drawn("svg", { viewBox: "0 0 150 16", preserveAspectRatio: "none", class: "strip" });
  codes.forEach((code, i) => {
    const [from, to] = [place(ends[i]), place(ends[i + 1])];
    const box = { x: from, y: 4, width: Math.max(to - from, 0), height: 8 };
    svg.append(drawn("rect", { ...box, class: classColour(code) }));
    if (i > 0 && to > from) svg.append(drawn("line", { x1: from, x2: from, y1: 4, y2: 12, class: "edge" }));
  });
  if (cell !== null) {
    svg.append(drawn("line", { x1: place(cell), x2: place(cell), y1: 0, y2: 16, class: "here" }));
  }
  return svg;
}

/** A box for each level, coloured by the answer with it; the row's own is marked. */
function levelStrip(codes, cell) {
  const svg = drawn("svg", { viewBox: "0 0 150 16", preserveAspectRatio: "none", class: "strip" });
  const step = 150 / Math.max(codes.length, 1);
  codes.forEach((code, level) => {
    const gap = Math.min(1, step / 4);
    const box = { x: level * step, y: 4, width: step - gap, height: 8 };
    svg.append(drawn("rect", { ...box, class: classColour(code) }));
    if (level === cell) {
      const middle = (level + 0.5) * step;
      svg.append(drawn("line", { x1: middle, x2: middle, y1: 0, y2: 16, class: "here" }));
    }
  });
  return svg;
}

/** A bar to the right for a positive contribution, to the left for a negative one. */
function signedBar(value, most) {
  const size = Math.min((44 * Math.abs(value)) / most, 44);
  const svg = drawn("svg", { viewBox: "-45 0 90 14", "aria-hidden": "true" });
  svg.append(drawn("line", { x1: 0, x2: 0, y1: 0, y2: 14, class: "zero" }));
  const box = { x: value < 0 ? -size : 0, y: 3, width: size, height: 8 };
  svg.append(drawn("rect", { ...box, class: value < 0 ? "bar minus" : "bar" }));
  return svg;
}

/** Contributions one after another, from an average row to the margin of this one. */
function waterfall(steps, start, end, names) {
  const ends = steps.map(((sum) => (step) => (sum += step.value))(start));
  const [low, high] = [Math.min(0, start, ...ends), Math.max(0, start, ...ends)];
  const place = (value) => (100 * (value - low)) / Math.max(high - low, 1e-9);
  const lines = [];
  const line = (name, from, to, text, kind) => {
    const svg = drawn("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" });
    svg.append(drawn("line", { x1: place(0), x2: place(0), y1: 0, y2: 14, class: "zero" }));
    const [a, b] = [Math.min(place(from), place(to)), Math.max(place(from), place(to))];
    svg.append(drawn("rect", { x: a, y: 3, width: Math.max(b - a, 0.4), height: 8, class: kind }));
    lines.push(
      element("span", { className: "name", title: name }, name),
      svg,
      element("span", { className: "n" }, text),
    );
  };
  const signed = (value) => `${value >= 0.005 ? "+" : ""}${twoDecimals(value)}`;
  line(names.start, 0, start, signed(start), "bar total");
  steps.forEach(({ name, value }, i) => {
    line(name, ends[i] - value, ends[i], signed(value), value < 0 ? "bar minus" : "bar");
  });
  line(names.end, 0, end, signed(end), "bar total");
  return element("div", { className: "waterfall" }, ...lines);
}
