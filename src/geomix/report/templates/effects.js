// The pictures of effects: values under the pointer, a larger view, and one scale for all.
//
// The pictures themselves are in the page; this only reads and moves them.

/** The place among sorted numbers that is nearest to x. */
function nearestPlace(numbers, x) {
  let best = 0;
  numbers.forEach((number, i) => {
    if (Math.abs(number - x) < Math.abs(numbers[best] - x)) best = i;
  });
  return best;
}

/** The tip of one point: the value of the column, and the effect with its band. */
function effectLines(name, effect, place, labels) {
  const range = Math.abs(effect.x[effect.x.length - 1] - effect.x[0]) || 1;
  const lines = [`${leftToRight(name)} = ${columnNumber(effect.x[place], range / 4)}`];
  effect.values.forEach((curve, i) => {
    const band = effect.lower
      ? ` (${effect.lower[i][place].toFixed(2)} to ${effect.upper[i][place].toFixed(2)})`
      : "";
    const label = effect.values.length > 1 ? `${labels[i]}: ` : "";
    const sign = curve[place] > 0 ? "+" : "";
    lines.push(`${label}${sign}${curve[place].toFixed(2)}${band}`);
  });
  return lines;
}

function buildEffects(effects, labels) {
  const box = document.getElementById("effects");
  if (box === null) return;
  const tip = element("div", { className: "tip", hidden: true });
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  for (const panel of box.querySelectorAll("svg.panel[data-column]")) {
    const effect = effects[panel.dataset.column];
    if (effect) followPointer(panel, effect, tip, labels);
  }
  for (const button of box.querySelectorAll("button.zoom")) {
    button.hidden = false;
    button.addEventListener("click", () => enlarge(button));
  }
  if (byId("scale-switch") === null) return;
  byId("scale-switch").hidden = false;
  byId("common-scale").addEventListener("change", (event) => setScale(box, event.target.checked));
}

function enlarge(button) {
  const figure = button.closest("figure");
  const isLarge = figure.classList.toggle("large");
  button.setAttribute("aria-expanded", String(isLarge));
  if (isLarge) figure.scrollIntoView({ block: "nearest" });
}

function setScale(box, isCommon) {
  box.classList.toggle("on-one-scale", isCommon);
  for (const group of box.querySelectorAll("g.moved")) {
    const { axis, factor, shift } = group.dataset;
    const move = axis === "y" ? `translate(0 ${shift}) scale(1 ${factor})` : `translate(${shift} 0) scale(${factor} 1)`;
    if (isCommon) group.setAttribute("transform", move);
    else group.removeAttribute("transform");
  }
}

function followPointer(panel, effect, tip, labels) {
  const cursor = panel.querySelector(".cursor");
  const frame = panel.querySelector(".frame");
  const [low, high] = [Number(panel.dataset.low), Number(panel.dataset.high)];
  const width = Number(panel.dataset.width);
  panel.addEventListener("pointermove", (event) => {
    const around = frame.getBoundingClientRect();
    const part = clip((event.clientX - around.left) / around.width, 0, 1);
    const place = nearestPlace(effect.x, low + part * (high - low));
    const at = clip(((effect.x[place] - low) / (high - low)) * width, 0, width);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.setAttribute("visibility", "visible");
    const lines = effectLines(panel.dataset.column, effect, place, labels);
    tip.replaceChildren(...lines.slice(0, 8).map((line) => element("div", {}, line)));
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(left, 4) + window.scrollX}px`;
    tip.style.top = `${event.clientY + window.scrollY + 16}px`;
  });
  panel.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tip.hidden = true;
  });
}
