// What the page shows of a history: each section is {title, panels}, a panel {element, update(history, span)}.

const STAGES = ["total", "read", "validate", "queue", "h2d", "prepare", "execute", "d2h", "write"];

function makeSections() {
  return [
    { title: "Requests", panels: [
      chart("Answers by outcome", "Requests answered per second, by gRPC code.",
        { text: rateText, stacked: true }, (history) => history.rates("requestsByCode")),
      chart("Refusals by reason", "Requests turned away per second.",
        { text: rateText, stacked: true }, (history) => history.rates("refusalsByReason").filter(isNotZero)),
    ] },
    { title: "Latency", panels: [
      chart("Latency by operator", `Of successful requests, inside the daemon; ${WINDOW_TEXT}.`,
        { text: secondsText, logarithmic: true, most: "highest" }, latencyByOperator),
      chart("Latency by stage", `Of all operators, 99 %; ${WINDOW_TEXT}.`,
        { text: secondsText, logarithmic: true, most: "highest" }, latencyByStage),
      table("Latency by operator and stage", `p50 / p99, ${WINDOW_TEXT}; bars: the part of the total's p50.`,
        ["operator", "answered", ...STAGES], latencyRows),
    ] },
    { title: "Devices", panels: [
      timeline(),
      table("Now", "Requests that run and wait, memory in use by anybody, and what the pool has lent.",
        ["device", "requests", "busy lanes", "in flight", "waiting", "oldest", "memory", "pool lent"],
        deviceRows),
      chart("Busy lanes", "How many lanes had a request, on average.",
        { text: countText }, (history) => deviceLines(history.rates("laneSeconds"))),
      chart("In flight", "Requests that lanes are executing.",
        { text: countText }, (history) => deviceLines(history.gauges("inFlight"))),
      chart("Utilization", "Part of the last seconds in which a lane was executing.",
        { text: percentText, most: "highest", top: 1 }, (history) => deviceLines(history.gauges("utilization"))),
      chart("Memory in use", "Of each device's memory, by anybody.",
        { text: percentText, most: "highest", top: 1 },
        (history) => deviceLines(history.ratios("memoryUsed", "memoryTotal"))),
    ] },
    { title: "Queues", panels: [
      chart("Waiting", "Requests that wait for a lane.",
        { text: countText }, (history) => deviceLines(history.gauges("waiting"))),
      chart("Oldest request", "How long the request has waited that has waited longest.",
        { text: secondsText, most: "highest" }, (history) => deviceLines(history.gauges("oldestAge"))),
      chart("Pressure", "How much of a bound is used, where it is used most.",
        { text: percentText, most: "highest", top: 1 }, (history) => history.gauges("pressure")),
    ] },
    { title: "Tenants", panels: [
      table("Now", "Those with the most device time first.",
        ["tenant", "device time", "answers", "refused", "device memory", "page-locked memory"], tenantRows),
      chart("Share of device time", "What each tenant got of all lane time.",
        { text: percentText, stacked: true, top: 1 }, (history) => history.shares("tenantSeconds")),
      chart("Device memory", "Of tenants' requests and resident tensors, on all devices.",
        { text: bytesText, stacked: true, binary: true }, (history) => history.gauges("tenantDeviceMemory")),
      chart("Refusals by tenant", "Requests turned away per second; _nobody: callers without a tenant.",
        { text: rateText, stacked: true }, (history) => history.rates("refusalsByTenant").filter(isNotZero)),
    ] },
    { title: "Memory pools", panels: [
      chart("Reserved", "What each pool has taken from its device.",
        { text: bytesText, stacked: true, binary: true }, (history) => deviceLines(history.gauges("poolReserved"))),
      chart("What it is used for", "Of all pools: lent to requests, kept for a lane that used it, idle.",
        { text: bytesText, stacked: true, binary: true }, poolUses),
      chart("Lent by device", "Allocated by requests that run, and by resident tensors.",
        { text: bytesText, stacked: true, binary: true }, (history) => deviceLines(history.gauges("poolAllocated"))),
    ] },
  ];
}

const WINDOW_TEXT = `of the ${QUANTILE_WINDOW / 1000} s before`;

function chart(title, explanation, options, linesOf) {
  const made = new LineChart(title, explanation, options);
  return { element: made.element, update: (history, span) => made.update(linesOf(history), span) };
}

function table(title, explanation, columns, rowsOf) {
  const made = new BarTable(title, explanation, columns);
  return { element: made.element, update: (history) => made.update(rowsOf(history)) };
}

function timeline() {
  const made = new StateTimeline();
  return { element: made.element, update: ({ readings }, span) => made.update(readings, span) };
}

function isNotZero({ points }) {
  return mostOf(points) > 0;
}

function deviceLines(lines) {
  return lines.map(({ name, points }) => ({ name: `device ${name}`, points }));
}

function poolUses(history) {
  const uses = { lent: "poolAllocated", kept: "poolRetired", idle: "poolIdle" };
  return Object.entries(uses).map(([name, key]) => ({
    name,
    points: history.readings.map((reading) => ({ time: reading.time, value: sumOf(reading[key].values()) })),
  }));
}

function operatorsOf(history) {
  return [...history.latest.durations.keys()].sort(inNaturalOrder);
}

function latencyByOperator(history) {
  return operatorsOf(history).flatMap((operator) => [[0.5, "p50"], [0.99, "p99"]].map(([part, text]) =>
    history.quantiles(`${operator} ${text}`, part, ({ durations }) => durations.get(operator)?.get("total"))))
    .filter(isNotZero);
}

function latencyByStage(history) {
  return STAGES.map((stage) =>
    history.quantiles(stage, 0.99, (reading) => allOperators(reading, stage))).filter(isNotZero);
}

function allOperators({ durations }, stage) {
  const histograms = [...durations.values()].flatMap((stages) => stages.get(stage) ?? []);
  return histograms.length === 0 ? undefined : histogramSum(histograms);
}

function latencyRows(history) {
  const row = (name, histogramOfStage) => {
    const recent = STAGES.map((stage) => history.recent((reading) => histogramOfStage(reading, stage)));
    const median = (histogram) => histogram && quantile(0.5, histogram);
    const total = median(recent[0]);
    return { name, cells: [
      { text: countText(recent[0] && histogramCount(recent[0])) },
      ...recent.map((histogram) => ({
        text: [median(histogram), histogram && quantile(0.99, histogram)].map(firmSecondsText).join(" / "),
        part: total ? median(histogram) / total : undefined })),
    ] };
  };
  return [
    row("all", allOperators),
    ...operatorsOf(history).map((operator) =>
      row(operator, ({ durations }, stage) => durations.get(operator)?.get(stage))),
  ];
}

// A number stays with its unit where a narrow column breaks the text.
function firmSecondsText(seconds) {
  return secondsText(seconds).replace(" ", "\u00a0");
}

// The last value of each line, by name.
function lastOf(lines) {
  return new Map(lines.map(({ name, points }) => [name, points.at(-1).value]));
}

function deviceRows(history) {
  const now = history.latest;
  const requests = lastOf(history.rates("requestsByDevice"));
  const lanes = lastOf(history.rates("laneSeconds"));
  const amount = (part, whole) => (
    { text: `${bytesText(part ?? null)} of ${bytesText(whole ?? null)}`, part: whole ? part / whole : 0 });
  return [...now.states.keys()].sort(inNaturalOrder).map((device) => ({
    name: `device ${device}`,
    cells: [
      { text: rateText(requests.get(device) ?? null) },
      { text: countText(lanes.get(device) ?? null) },
      { text: countText(now.inFlight.get(device) ?? null) },
      { text: countText(now.waiting.get(device) ?? null) },
      { text: secondsText(now.oldestAge.get(device) ?? null) },
      amount(now.memoryUsed.get(device), now.memoryTotal.get(device)),
      amount(now.poolAllocated.get(device), now.poolReserved.get(device)),
    ],
  }));
}

function tenantRows(history) {
  const now = history.latest;
  const shares = lastOf(history.shares("tenantSeconds"));
  const answers = lastOf(history.rates("requestsByTenant"));
  const refusals = lastOf(history.rates("refusalsByTenant"));
  const memory = sumOf(now.tenantDeviceMemory.values());
  const names = new Set(["tenantDeviceMemory", "requestsByTenant", "refusalsByTenant"].flatMap(
    (key) => [...now[key].keys()]));
  const share = (name) => shares.get(name) ?? 0;
  return [...names].sort((a, b) => share(b) - share(a) || inNaturalOrder(a, b)).map((name) => ({
    name,
    cells: [
      { text: percentText(share(name)), part: share(name) },
      { text: rateText(answers.get(name) ?? 0) },
      { text: rateText(refusals.get(name) ?? 0) },
      { text: bytesText(now.tenantDeviceMemory.get(name) ?? 0),
        part: memory ? (now.tenantDeviceMemory.get(name) ?? 0) / memory : 0 },
      { text: bytesText(now.tenantPinnedMemory.get(name) ?? 0) },
    ],
  }));
}
