// A chart of lines over time, or of areas on top of each other, with a legend that has the numbers.

const MAX_LINES = 8;
const WIDTH = 400; // in the drawing's own units: it is stretched to the place there is
const HEIGHT = 120;
const MARGIN = 2; // for half of a line at the bottom and at the top
// Longer without a reading: the line is interrupted.
const MAX_GAP = 3 * COARSE;

class LineChart {
  #options;
  #plot = svgElement("svg", {
    class: "plot", viewBox: `0 ${-MARGIN} ${WIDTH} ${HEIGHT + 2 * MARGIN}`, preserveAspectRatio: "none", role: "img" });
  #ticks = [element("span"), element("span"), element("span")];
  #start = element("span");
  #rows = element("tbody");
  #legend = new KeyedChildren(this.#rows, (name) => new LegendRow(name, this.#slots.get(name)));
  #paths = new KeyedChildren(this.#plot, (name) => new Path(this.#slots.get(name), this.#options.stacked));
  #slots = new Map(); // a line keeps its colour for as long as it is drawn

  // `text`: of a number. `stacked`: lines are parts of a whole. `logarithmic`: for numbers of very
  // different sizes. `most`: what many lines together have, their "sum" or the "highest".
  // `top`: the axis goes at least to there. `binary`: it ends at a power of two.
  constructor(title, explanation, options) {
    this.#options = { most: "sum", top: 0, ...options };
    this.#plot.setAttribute("aria-label", `${title}, of the last minutes; now: see the table`);
    this.element = element("figure", { class: "chart" },
      element("figcaption", {}, element("h3", {}, title), element("p", {}, explanation)),
      element("div", { class: "frame" },
        element("div", { class: "ticks", "aria-hidden": "true" }, ...this.#ticks),
        this.#plot),
      element("div", { class: "times", "aria-hidden": "true" },
        this.#start, element("span", {}, "now")),
      element("table", { class: "legend" },
        element("thead", {}, element("tr", {},
          element("th", { scope: "col" }, "name"),
          element("th", { scope: "col" }, "now"),
          element("th", { scope: "col" }, "most"))),
        this.#rows));
  }

  // Lines with the most are drawn, the rest become one. The axis of time is `span`.
  update(lines, span) {
    const drawn = this.#options.stacked ? stack(this.#fewer(lines)) : this.#fewer(lines);
    this.#assignSlots(drawn);
    const names = drawn.map(({ name }) => name);
    const scale = this.#scale(drawn);
    const paths = this.#paths.update(names);
    const legend = this.#legend.update(names);
    for (const line of drawn) {
      paths.get(line.name).draw(line.points, span, scale);
      legend.get(line.name).show(line, this.#options.text);
    }
    scale.ticks.forEach((value, i) => setText(this.#ticks[i], this.#options.text(value)));
    setText(this.#start, `${secondsText(span.milliseconds / 1000)} ago`);
  }

  #fewer(lines) {
    if (lines.length <= MAX_LINES) return lines;
    const byMost = [...lines].sort((a, b) => mostOf(b.points) - mostOf(a.points));
    const kept = new Set(byMost.slice(0, MAX_LINES - 1));
    const rest = lines.filter((line) => !kept.has(line));
    const combine = this.#options.most === "sum" ? sumOf : (values) => Math.max(...values);
    const points = rest[0].points.map(({ time }, i) => {
      const values = rest.map((line) => line.points[i].value).filter((value) => value !== null);
      return { time, value: values.length === 0 ? null : combine(values) };
    });
    return [...lines.filter((line) => kept.has(line)),
      { name: `${rest.length} others (${this.#options.most})`, points }];
  }

  #assignSlots(lines) {
    const before = this.#slots;
    this.#slots = new Map(lines.filter(({ name }) => before.has(name))
      .map(({ name }) => [name, before.get(name)]));
    const used = new Set(this.#slots.values());
    const free = [...Array(MAX_LINES).keys()].filter((slot) => !used.has(slot));
    for (const { name } of lines) {
      if (!this.#slots.has(name)) this.#slots.set(name, free.shift());
    }
  }

  #scale(lines) {
    const most = Math.max(this.#options.top, ...lines.map(({ points }) => mostOf(points)));
    if (!this.#options.logarithmic || most === 0) return linearScale(most, this.#options.binary);
    const least = Math.min(...lines.flatMap(({ points }) => points.map(({ value }) => value || most)));
    return logarithmicScale(least, most);
  }
}

class LegendRow {
  #now = element("td");
  #most = element("td");

  constructor(name, slot) {
    const line = svgElement("line", { class: `line slot${slot}`, x1: 0, y1: 5, x2: 26, y2: 5 });
    this.element = element("tr", {},
      element("th", { scope: "row" },
        svgElement("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" }, line), name),
      this.#now, this.#most);
  }

  show({ points, own = points }, text) {
    setText(this.#now, text(own.at(-1)?.value ?? null));
    setText(this.#most, text(own.some(({ value }) => value !== null) ? mostOf(own) : null));
  }
}

class Path {
  #area;

  constructor(slot, isArea) {
    this.#area = isArea ? svgElement("path", { class: `area slot${slot}` }) : null;
    this.line = svgElement("path", { class: `line slot${slot}` });
    this.element = svgElement("g", {}, ...(isArea ? [this.#area] : []), this.line);
  }

  draw(points, span, { y }) {
    const at = (time, value) => `${(WIDTH * span.x(time)).toFixed(1)} ${(HEIGHT * (1 - y(value))).toFixed(1)}`;
    const runs = unbroken(points);
    this.line.setAttribute("d",
      runs.map((run) => `M${run.map((p) => at(p.time, p.value)).join("L")}`).join(""));
    this.#area?.setAttribute("d", runs.map((run) => {
      const back = [...run].reverse().map((p) => at(p.time, p.base));
      return `M${[...run.map((p) => at(p.time, p.value)), ...back].join("L")}Z`;
    }).join(""));
  }
}

// Each line on top of those before it: `base` and `value` of points are where it lies; `own` are the
// points as they were.
function stack(lines) {
  const height = new Map();
  return lines.map(({ name, points }) => ({
    name,
    own: points,
    points: points.map(({ time, value }) => {
      const base = height.get(time) ?? 0;
      height.set(time, base + (value ?? 0));
      return { time, base, value: value === null ? null : base + value };
    }),
  }));
}

function unbroken(points) {
  const runs = [];
  let last = null;
  for (const point of points) {
    if (point.value === null) {
      last = null;
      continue;
    }
    if (last === null || point.time - last.time > MAX_GAP) runs.push([]);
    runs.at(-1).push(point);
    last = point;
  }
  return runs;
}

function mostOf(points) {
  return points.reduce((most, { value }) => Math.max(most, value ?? 0), 0);
}

// {y, ticks}: where a number is, from 0 to 1; the numbers at the top, in the middle, at the bottom.
function linearScale(most, isBinary) {
  const top = isBinary ? 2 ** Math.ceil(Math.log2(Math.max(1, most))) : roundUp(most);
  return { y: (value) => value / top, ticks: [top, top / 2, 0] };
}

function logarithmicScale(least, most) {
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const y = (value) => Math.max(0, (Math.log10(value) - low) / (high - low));
  return { y, ticks: [10 ** high, 10 ** ((high + low) / 2), 10 ** low] };
}

// To 1, 2 or 5 times a power of ten.
function roundUp(number) {
  if (number <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(number));
  return [1, 2, 5, 10].find((factor) => factor * power >= number) * power;
}
