// Prometheus's text exposition.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)/gy;
const SPECIAL_NUMBERS = { "+Inf": Infinity, "-Inf": -Infinity, NaN: NaN };

// Samples by name: arrays of {labels, value}. Throws if a line is not understood.
function parseExposition(text) {
  const samples = new Map();
  for (const line of text.split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const found = SAMPLE.exec(line);
    if (found === null) throw new Error(`no sample: ${line}`);
    const [, name, labels, value] = found;
    if (!samples.has(name)) samples.set(name, []);
    samples.get(name).push({ labels: parseLabels(labels ?? ""), value: parseNumber(value) });
  }
  return samples;
}

function parseLabels(text) {
  const labels = Object.create(null); // names are not ours: nothing is inherited
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const found = LABEL.exec(text);
    if (found === null) throw new Error(`no labels: ${text}`);
    labels[found[1]] = found[2].replace(/\\(.)/g, (_, escaped) => (escaped === "n" ? "\n" : escaped));
  }
  return labels;
}

function parseNumber(text) {
  if (Object.hasOwn(SPECIAL_NUMBERS, text)) return SPECIAL_NUMBERS[text];
  const number = Number(text);
  if (Number.isNaN(number)) throw new Error(`no number: ${text}`);
  return number;
}
