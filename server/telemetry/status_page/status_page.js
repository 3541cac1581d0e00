// The whole page: how the daemon answers, what is wrong, the numbers that matter first, the sections.

const SIGNS = { critical: "✕", warning: "!", good: "✓" };

class StatusPage {
  #answering = document.getElementById("answering");
  #build = document.getElementById("build");
  #findings = document.getElementById("findings");
  #tiles = element("dl", { class: "tiles" });
  #sections = makeSections();

  constructor() {
    document.querySelector("main").append(this.#tiles, ...this.#sections.map(({ title, panels }) =>
      element("section", {}, element("h2", {}, title),
        element("div", { class: "panels" }, ...panels.map((panel) => panel.element)))));
  }

  // `failure`: why the last attempt to read brought nothing; null: it did. `daemonTime`: the
  // daemon's clock at the latest reading. Both times in milliseconds.
  update(history, failure, now, daemonTime) {
    const { latest } = history;
    document.body.classList.toggle("stale", failure !== null);
    setText(this.#answering, answeringText(failure, latest, now));
    this.#showFindings(
      failure === null ? findingsOf(history, daemonTime) : [noAnswerFinding(failure, latest)]);
    if (latest === undefined) return;
    setText(this.#build, buildText(latest.build));
    this.#showTiles(history);
    const span = history.span(now);
    for (const { panels } of this.#sections) panels.forEach((panel) => panel.update(history, span));
  }

  #showFindings(findings) {
    const worst = findings[0]?.severity ?? "good";
    document.title = `${SIGNS[worst]} opserved ${location.host}`;
    this.#findings.className = worst;
    const texts = findings.length > 0
      ? findings.map(({ severity, text }) => [severity, `${severity}: ${text}`])
      : [["good", "Nothing is wrong that can be seen here."]];
    const lines = texts.map(([severity, text]) => `${SIGNS[severity]} ${text}`);
    // Rewritten only if something has changed: it is read out.
    if (lines.join("\n") === [...this.#findings.children].map((p) => p.textContent).join("\n")) return;
    this.#findings.replaceChildren(
      ...lines.map((line, i) => element("p", { class: texts[i][0] }, line)));
  }

  #showTiles(history) {
    const { latest } = history;
    const lastSum = (key) => {
      const values = history.rates(key).map(({ points }) => points.at(-1).value);
      return values.includes(null) ? null : sumOf(values);
    };
    const recent = history.recent((reading) => allOperators(reading, "total"));
    const ready = [...latest.states.values()].filter((state) => state === "ready").length;
    const tiles = [
      ["devices ready", `${ready} of ${latest.states.size}`],
      ["answers", rateText(lastSum("requestsByCode"))],
      ["refused", rateText(lastSum("refusalsByReason"))],
      ["latency p50", secondsText(recent && quantile(0.5, recent))],
      ["latency p99", secondsText(recent && quantile(0.99, recent))],
      ["in flight", countText(sumOf(latest.inFlight.values()))],
      ["waiting", countText(sumOf(latest.waiting.values()))],
      ["oldest", secondsText(Math.max(0, ...latest.oldestAge.values()))],
      ["connections", countText(latest.connections)],
    ];
    const texts = tiles.map(([name, text]) => element("div", {},
      element("dt", {}, name), element("dd", {}, text)));
    this.#tiles.replaceChildren(...texts);
  }
}

function buildText({ version, backend, soc, runtime_version: runtime }) {
  const where = backend === "host-cann" ? "host CANN (this machine's processor), as " : "";
  return `${version} on ${where}${soc}, runtime ${runtime}, at ${location.host}`;
}

function answeringText(failure, latest, now) {
  if (failure === null) return `${SIGNS.good} live, read at ${clockText(latest.time)}`;
  const ago = latest && `, last one ${secondsText(Math.round((now - latest.time) / 1000))} ago`;
  return `${SIGNS.critical} no answer${ago ?? ""}`;
}

function noAnswerFinding(failure, latest) {
  return critical(latest === undefined
    ? `No answer yet (${failure}).`
    : `No answer since ${clockText(latest.time)} (${failure}). What is below is of then.`);
}
