// The states of devices over time: a bar per device, and the state in words.

const STATE_SIGNS = {
  ready: "✓", starting: "…", draining: "↓", drained: "□", quarantined: "!", failed: "✕",
};

class StateTimeline {
  #rows = element("tbody");
  #devices = new KeyedChildren(this.#rows, (device) => new StateRow(device));

  constructor() {
    this.element = element("figure", { class: "chart wide" },
      element("figcaption", {}, element("h3", {}, "States"),
        element("p", {}, "The state each device was in; where the bar is high, it was not ready.")),
      element("table", { class: "states" },
        element("thead", { class: "unseen" }, element("tr", {},
          element("th", { scope: "col" }, "device"),
          element("th", { scope: "col" }, "state"),
          element("th", { scope: "col" }, "over time"))),
        this.#rows));
  }

  update(readings, span) {
    const rows = this.#devices.update([...readings.at(-1).states.keys()].sort(inNaturalOrder));
    for (const [device, row] of rows) row.draw(device, readings, span);
  }
}

class StateRow {
  #state = element("td");
  #bar = svgElement("svg", {
    class: "timeline", viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", "aria-hidden": "true" });

  constructor(device) {
    this.element = element("tr", {},
      element("th", { scope: "row" }, `device ${device}`), this.#state, element("td", {}, this.#bar));
  }

  draw(device, readings, span) {
    const state = readings.at(-1).states.get(device);
    const wrong = readings.at(-1).wrongOperators.get(device)?.length ?? 0;
    setText(this.#state, `${STATE_SIGNS[state] ?? "?"} ${state}${
      wrong > 0 ? `, ${quantity(wrong, "operator")} wrong` : ""}`);
    this.#state.className = `state state-${state}`;
    this.#bar.replaceChildren(...stateRuns(device, readings).map((run) => {
      const x = (time) => Math.max(0, WIDTH * span.x(time));
      const height = run.state === "ready" ? 4 : 10;
      return svgElement("rect", { class: `state-${run.state}`, x: x(run.from), y: 10 - height,
        width: Math.max(1, x(run.to) - x(run.from)), height });
    }));
  }
}

// Of readings that follow each other with the same state: {state, from, to}.
function stateRuns(device, readings) {
  const runs = [];
  for (const { time, states } of readings) {
    const state = states.get(device) ?? "unknown";
    const last = runs.at(-1);
    if (last !== undefined && time - last.to <= MAX_GAP) last.to = time;
    if (last === undefined || last.state !== state || last.to !== time) {
      runs.push({ state, from: time, to: time });
    }
  }
  return runs;
}
