// The page's warnings. LIMITS has the thresholds of the alerts in deploy/prometheus, where an alert warns of the same.

const MAX_FAILED = 0.01;
// How long an event is spoken of that is over at once.
const EVENT_WINDOW = 60_000; // milliseconds

const LOST_STATES = new Set(["quarantined", "failed"]);
const MAX_LISTED = 3;

// {severity, text}, critical ones first. `now`: milliseconds, by the daemon's clock.
function findingsOf(history, now) {
  const reading = history.latest;
  return [
    ...deviceFindings(reading),
    ...operatorFindings(reading),
    ...queueFindings(reading),
    ...overloadFindings(reading),
    ...requestFindings(history),
    ...certificateFindings(reading, now / 1000),
    ...reloadFindings(history),
  ].sort((a, b) => a.severity.localeCompare(b.severity)); // "critical" before "warning"
}

function critical(text) {
  return { severity: "critical", text };
}

function warning(text) {
  return { severity: "warning", text };
}

function deviceFindings({ states }) {
  const found = [...states].filter(([, state]) => state !== "ready").map(([device, state]) => {
    const finding = LOST_STATES.has(state) ? critical : warning;
    return finding(`Device ${device} is ${state}, not ready.`);
  });
  const none = found.length === states.size;
  return none ? [critical("No device is ready: no request can be served."), ...found] : found;
}

function operatorFindings({ wrongOperators }) {
  return [...wrongOperators].map(([device, operators]) => {
    const more = operators.length > MAX_LISTED ? ` and ${operators.length - MAX_LISTED} more` : "";
    return warning(`Device ${device} does not offer ${
      operators.slice(0, MAX_LISTED).join(", ")}${more}, which it computes wrong.`);
  });
}

function queueFindings({ oldestAge }) {
  return [...oldestAge].filter(([, age]) => age > LIMITS.queueSeconds).map(([device, age]) =>
    warning(`A request has waited ${secondsText(age)} for device ${device}.`));
}

function overloadFindings({ overloadActions }) {
  const active = [...overloadActions].filter(([, isActive]) => isActive > 0).map(([action]) => action);
  return active.length === 0 ? [] : [warning(`Overloaded: ${active.join(", ").replaceAll("_", " ")}.`)];
}

function requestFindings(history) {
  const answers = history.increases("requestsByCode", EVENT_WINDOW);
  const failures = new Map([...answers].filter(([code]) => LIMITS.failureCodes.includes(code)));
  const refusals = history.increases("refusalsByReason", EVENT_WINDOW);
  const found = [];
  const failed = sumOf(failures.values()) / sumOf(answers.values());
  if (failed > MAX_FAILED) {
    found.push(critical(`${percentText(failed)} of requests fail: ${largestFirst(failures)}.`));
  }
  if (refusals.size > 0) {
    const tenants = history.increases("refusalsByTenant", EVENT_WINDOW);
    found.push(warning(`Within a minute ${quantity(sumOf(refusals.values()), "request")} refused: ${
      largestFirst(refusals)}; of tenants ${largestFirst(tenants)}.`));
  }
  return found;
}

function certificateFindings({ certificateExpiry }, now) {
  return [...certificateExpiry].flatMap(([listener, expiry]) => {
    const left = expiry - now;
    if (left > LIMITS.certificateWarningSeconds) return [];
    const finding = left > LIMITS.certificateCriticalSeconds ? warning : critical;
    return finding(left > 0
      ? `The certificate of the ${listener} listener expires in ${secondsText(left)}.`
      : `The certificate of the ${listener} listener has expired.`);
  });
}

function reloadFindings(history) {
  return [
    ...failedReloads(history, "would_lose_tenants").map((when) =>
      critical(`A reload was refused ${when}: the configuration has lost its tenants.`)),
    ...failedReloads(history, "failure").map((when) =>
      warning(`A reload of the configuration failed ${when}; the log says why.`)),
  ];
}

// When the last reload that ended so was, unless one has succeeded after it: one element, or none.
function failedReloads({ readings, latest }, result) {
  const count = (reading, name) => reading.reloads.get(name) ?? 0;
  const failed = count(latest, result);
  const last = readings.find((reading) => count(reading, result) === failed);
  if (failed === 0 || count(latest, "success") > count(last, "success")) return [];
  return [last === readings[0] ? "since the daemon's start" : `at ${clockText(last.time)}`];
}

// "INTERNAL 12, UNKNOWN 3"
function largestFirst(counts) {
  const listed = [...counts].sort((a, b) => b[1] - a[1]);
  const texts = listed.slice(0, MAX_LISTED).map(([name, count]) => `${name} ${countText(count)}`);
  if (listed.length > MAX_LISTED) texts.push(`and ${listed.length - MAX_LISTED} more`);
  return texts.join(", ");
}
