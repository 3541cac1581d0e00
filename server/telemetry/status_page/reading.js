// What one answer of /metrics says, reduced to what the page shows.

// FIGURES (figures.json) with one label are sums of a metric's samples by that label's value.
const SUMS = Object.entries(FIGURES).filter(([, { labels }]) => labels.length === 1);
// The operator whose histograms are sums of all operators', in readings of the daemon's history.
const ALL_OPERATORS = "";

// `time`: when it was read, in milliseconds. Each of SUMS is a map; `states` has the state of each
// device, `wrongOperators` the operators of a device that it does not offer, `durations` histograms by operator and stage.
function readingOf(samples, time) {
  const reading = { time, build: samples.get("opserve_build_info")?.[0]?.labels ?? {} };
  for (const [key, { metric, labels: [label], where = [] }] of SUMS) {
    reading[key] = sumBy(samples.get(metric) ?? [], label, where);
  }
  const ofClients = (samples.get("opserve_connections") ?? []).filter(
    ({ labels }) => labels.listener === "unix" || labels.listener === "tcp");
  reading.connections =
    ofClients.length > 0 ? ofClients.reduce((sum, { value }) => sum + value, 0) : null;
  reading.states = statesOf(samples.get(FIGURES.states.metric) ?? []);
  reading.wrongOperators = wrongOperatorsOf(samples.get(FIGURES.wrongOperators.metric) ?? []);
  reading.durations = durationsOf(samples.get(`${FIGURES.durations.metric}_bucket`) ?? []);
  return reading;
}

// Readings of an answer of /history, the oldest first, as far as the page draws them over time: of
// single operators only the total durations. `now`: this page's time when it was read.
function readingsOf({ now: daemonNow, times, series }, now) {
  const readings = times.map((time) => {
    const reading = readingOf(new Map(), now - (daemonNow - time));
    reading.buckets = [];
    return reading;
  });
  for (const [key, ...rest] of series) {
    const values = rest.pop();
    readings.forEach((reading, i) => {
      const value = Array.isArray(values) ? values[i] : values;
      if (value !== null) addToReading(reading, key, rest, value);
    });
  }
  for (const reading of readings) {
    reading.durations = durationsOf(reading.buckets);
    delete reading.buckets;
  }
  return readings;
}

function addToReading(reading, key, [first, second], value) {
  if (key === "states") {
    reading.states.set(first, second);
  } else if (key === "wrongOperators") {
    reading.wrongOperators.set(first, [...(reading.wrongOperators.get(first) ?? []), second]);
  } else if (key === "durations") {
    reading.buckets.push({ labels: { operator: first, stage: "total", le: second }, value });
  } else if (key === "stageDurations") {
    // The sum of the operators' totals is there already.
    if (first === "total") return;
    reading.buckets.push({ labels: { operator: ALL_OPERATORS, stage: first, le: second }, value });
  } else {
    reading[key].set(first, value);
  }
}

function sumBy(samples, label, [name, wanted]) {
  const sums = new Map();
  for (const { labels, value } of samples) {
    if (name !== undefined && labels[name] !== wanted) continue;
    sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  }
  return sums;
}

function statesOf(samples) {
  return new Map(
    samples.filter(({ value }) => value === 1).map(({ labels }) => [labels.device, labels.state]));
}

function wrongOperatorsOf(samples) {
  const wrong = new Map();
  for (const { labels, value } of samples) {
    if (value !== 1) continue;
    wrong.set(labels.device, [...(wrong.get(labels.device) ?? []), labels.operator]);
  }
  return wrong;
}

function durationsOf(samples) {
  const operators = new Map();
  for (const sample of samples) {
    const { operator, stage } = sample.labels;
    if (!operators.has(operator)) operators.set(operator, new Map());
    const stages = operators.get(operator);
    if (!stages.has(stage)) stages.set(stage, []);
    stages.get(stage).push(sample);
  }
  for (const stages of operators.values()) {
    for (const [stage, buckets] of stages) stages.set(stage, histogramOf(buckets));
  }
  return operators;
}
