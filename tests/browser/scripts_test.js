// Tests of the status page's scripts; scripts_test.py runs them.

const TESTS = {
  "samples have names, labels and values": () => {
    const samples = parseExposition([
      "# HELP a_total What it is.", "# TYPE a_total counter", "", "a_total 3",
      'b{x="1",y="two"} 1.5e-3', 'b{x="2"} 7 1700000000000', ""].join("\n"));
    same(samples.get("a_total"), [{ labels: {}, value: 3 }]);
    same(samples.get("b"), [
      { labels: { x: "1", y: "two" }, value: 0.0015 }, { labels: { x: "2" }, value: 7 }]);
  },

  "labels may have anything": () => {
    const label = (text) => parseExposition(`a{l="${text}",m="x"} 1`).get("a")[0].labels.l;
    same(label(""), "");
    same(label("}"), "}");
    same(label('\\"} 5'), '"} 5');
    same(label("a,b=\\\\"), "a,b=\\");
    same(label("two\\nlines"), "two\nlines");
    same(label("<b>"), "<b>");
    same(parseExposition('a{__proto__="x"} 1').get("a")[0].labels.constructor, undefined);
  },

  "numbers may be special": () => {
    const value = (text) => parseExposition(`a ${text}`).get("a")[0].value;
    same(value("+Inf"), Infinity);
    same(value("-Inf"), -Infinity);
    same(Number.isNaN(value("NaN")), true);
    same(value("-0.5"), -0.5);
  },

  "what is no exposition is refused": () => {
    for (const text of ["<html>", "a", "a{b} 1", 'a{b="c} 1', "a one", 'a{b="c"d="e"} 1']) {
      throws(() => parseExposition(text), text);
    }
  },

  "quantiles lie between the bounds": () => {
    const histogram = { bounds: [1, 2, 4, Infinity], counts: [10, 20, 20, 20] };
    same(quantile(0.25, histogram), 0.5);
    same(quantile(0.5, histogram), 1);
    same(quantile(0.75, histogram), 1.5);
    same(quantile(1, histogram), 2);
  },

  "a quantile beyond the bounds is the last of them": () => {
    same(quantile(0.99, { bounds: [1, 2, Infinity], counts: [0, 1, 10] }), 2);
  },

  "nothing has no quantile": () => {
    same(quantile(0.5, { bounds: [1, Infinity], counts: [0, 0] }), null);
  },

  "histograms are read from samples in any order": () => {
    const samples = parseExposition('h{le="+Inf"} 9\nh{le="0.5"} 2\nh{le="10"} 4').get("h");
    same(histogramOf(samples), { bounds: [0.5, 10, Infinity], counts: [2, 4, 9] });
  },

  "histograms differ by what came since": () => {
    const before = { bounds: [1, Infinity], counts: [3, 5] };
    const now = { bounds: [1, Infinity], counts: [4, 9] };
    same(histogramSince(now, before).counts, [1, 4]);
    same(histogramSince(now, undefined).counts, [4, 9]);
    same(histogramSince(before, now).counts, [3, 5]); // restarted
  },

  "histograms are summed": () => {
    const one = { bounds: [1, Infinity], counts: [3, 5] };
    same(histogramSum([one]).counts, [3, 5]);
    same(histogramSum([one, one, one]).counts, [9, 15]);
  },

  "samples are summed by a label": () => {
    const reading = read(0, 'opserve_queue_depth{device="0",tenant="a"} 2',
      'opserve_queue_depth{device="0",tenant="b"} 3', 'opserve_queue_depth{device="1",tenant="a"} 4',
      'opserve_tenant_memory_bytes{tenant="a",kind="hbm"} 5',
      'opserve_tenant_memory_bytes{tenant="a",kind="pinned"} 6');
    same([...reading.waiting], [["0", 5], ["1", 4]]);
    same([...reading.tenantDeviceMemory], [["a", 5]]);
    same([...reading.tenantPinnedMemory], [["a", 6]]);
  },

  "rates are increases by seconds, also across a restart": () => {
    const history = new ReadingHistory();
    [10, 14, 3].forEach((count, i) =>
      history.add(read(i * 2000, `opserve_requests_total{code="OK"} ${count}`)));
    same(history.rates("requestsByCode")[0].points.map(({ value }) => value), [null, 2, 1.5]);
    same([...history.increases("requestsByCode", 10_000)], [["OK", 3]]);
    same([...history.increases("requestsByCode", 2000)], [["OK", 3]]);
  },

  "a history forgets": () => {
    const history = new ReadingHistory();
    const end = 2 * LONGEST_SPAN;
    for (let time = 0; time <= end; time += READ_EVERY) history.add(read(time));
    const times = history.readings.map(({ time }) => time);
    same(times[0] >= end - LONGEST_SPAN && times[0] <= end - LONGEST_SPAN + COARSE, true);
    const gaps = times.slice(1).map((time, i) => time - times[i]);
    same(gaps.slice(-FINE_READINGS + 1).every((gap) => gap === READ_EVERY), true);
    const coarse = gaps.slice(0, -FINE_READINGS - 1);
    same(coarse.every((gap) => gap === COARSE), true);
    same(coarse.length > 50, true);
  },

  "rates are not over a moment": () => {
    const history = new ReadingHistory();
    [[0, 10], [10_000, 30], [10_050, 31], [12_050, 35]].forEach(([time, count]) =>
      history.add(read(time, `opserve_requests_total{code="OK"} ${count}`)));
    same(history.readings.map(({ time }) => time), [0, 10_050, 12_050]);
    same(history.rates("requestsByCode")[0].points.at(-1).value, 2);
  },

  "the daemon's history is readings": () => {
    const answer = { now: 1_000_000, times: [980_000, 990_000], series: [
      ["requestsByCode", "OK", [5, 25]], ["waiting", "0", 7], ["waiting", "1", [null, 3]],
      ["states", "0", "ready", [null, 1]], ["states", "0", "starting", [1, null]],
      ["wrongOperators", "0", "Add", [null, 1]], ["wrongOperators", "0", "Mul", 1],
      ["durations", "Add", "1", [0, 10]], ["durations", "Add", "+Inf", [0, 20]],
      ["stageDurations", "queue", "1", 4], ["stageDurations", "queue", "+Inf", 5],
      ["stageDurations", "total", "1", 0], ["stageDurations", "total", "+Inf", [0, 20]]] };
    const [first, second] = readingsOf(answer, 2_000_000);
    same([first.time, second.time], [1_980_000, 1_990_000]);
    same([[...first.waiting], [...second.waiting]], [[["0", 7]], [["0", 7], ["1", 3]]]);
    same([[...first.states], [...second.states]], [[["0", "starting"]], [["0", "ready"]]]);
    same([first, second].map(({ wrongOperators }) => wrongOperators.get("0")), [["Mul"], ["Add", "Mul"]]);
    same(second.durations.get("Add").get("total"), { bounds: [1, Infinity], counts: [10, 20] });
    same(allOperators(second, "total").counts, [10, 20]);
    same(allOperators(second, "queue").counts, [4, 5]);
    const history = new ReadingHistory();
    [first, second].forEach((reading) => history.add(reading));
    history.add(read(1_992_000, 'opserve_requests_total{code="OK"} 27',
      'opserve_request_duration_seconds_bucket{operator="Add",stage="total",le="1"} 10',
      'opserve_request_duration_seconds_bucket{operator="Add",stage="total",le="+Inf"} 30'));
    same(history.rates("requestsByCode")[0].points.map(({ value }) => value), [null, 2, 1]);
    same(history.recent(({ durations }) => durations.get("Add")?.get("total")).counts, [10, 30]);
    same(operatorsOf(history), ["Add"]);
  },

  "a daemon without a history has no readings": () => {
    same(readingsOf({ now: 5, times: [], series: [] }, 7), []);
  },

  "quantiles are of the last moments only": () => {
    const history = new ReadingHistory();
    const add = (time, fast, all) => history.add(read(time,
      `opserve_request_duration_seconds_bucket{operator="a",stage="total",le="1"} ${fast}`,
      `opserve_request_duration_seconds_bucket{operator="a",stage="total",le="2"} ${all}`,
      `opserve_request_duration_seconds_bucket{operator="a",stage="total",le="+Inf"} ${all}`));
    const total = ({ durations }) => durations.get("a").get("total");
    add(0, 1000, 1000);
    same(history.recent(total), null);
    add(QUANTILE_WINDOW, 1000, 1010);
    add(2 * QUANTILE_WINDOW, 1000, 1020);
    same(history.recent(total).counts, [0, 10, 10]);
    same(history.quantiles("a", 0.5, total).points.map(({ value }) => value), [null, 1.5, 1.5]);
  },

  "what is well is not found": () => {
    same(found(read(0, ...HEALTHY)), []);
  },

  "what is wrong is found, the worst first": () => {
    const state = (device, name) => `opserve_device_state{device="${device}",state="${name}"} 1`;
    const day = 86_400;
    const expiry = (days) => `opserve_tls_certificate_expiry_timestamp_seconds{listener="tcp"} ${days * day}`;
    const cases = [
      [[...HEALTHY, state(1, "quarantined")], ["critical: Device 1 is quarantined, not ready."]],
      [[...HEALTHY, state(1, "draining")], ["warning: Device 1 is draining, not ready."]],
      [[state(0, "failed")], ["critical: No device is ready: no request can be served.",
        "critical: Device 0 is failed, not ready."]],
      [[...HEALTHY, 'opserve_queue_oldest_age_seconds{device="0"} 6'],
        ["warning: A request has waited 6 s for device 0."]],
      [[...HEALTHY, 'opserve_queue_oldest_age_seconds{device="0"} 5'], []],
      [[...HEALTHY, 'opserve_overload_action_active{action="refuse_requests"} 1',
        'opserve_overload_action_active{action="refuse_connections"} 0'],
        ["warning: Overloaded: refuse requests."]],
      [[...HEALTHY, expiry(15)], []],
      [[...HEALTHY, expiry(13)], ["warning: The certificate of the tcp listener expires in 13 days."]],
      [[...HEALTHY, expiry(1)], ["critical: The certificate of the tcp listener expires in 24 h."]],
      [[...HEALTHY, expiry(-1)], ["critical: The certificate of the tcp listener has expired."]],
      [[...HEALTHY, expiry(1), state(1, "draining")], [
        "critical: The certificate of the tcp listener expires in 24 h.",
        "warning: Device 1 is draining, not ready."]],
      [[...HEALTHY, 'opserve_config_reloads_total{result="failure"} 2'],
        ["warning: A reload of the configuration failed since the daemon's start; the log says why."]],
      [[...HEALTHY, 'opserve_config_reloads_total{result="would_lose_tenants"} 1'],
        ["critical: A reload was refused since the daemon's start: the configuration has lost its tenants."]],
    ];
    for (const [lines, expected] of cases) same(found(read(0, ...lines)), expected);
  },

  "refusals and failures are found while they are new": () => {
    const counts = (ok, internal, full) => [...HEALTHY,
      `opserve_requests_total{code="OK"} ${ok}`, `opserve_requests_total{code="INTERNAL"} ${internal}`,
      `opserve_admission_rejections_total{tenant="a",reason="queue_full"} ${full}`];
    const before = read(0, ...counts(100, 50, 7));
    same(found(before), []);
    same(found(before, read(2000, ...counts(200, 50, 7))), []);
    same(found(before, read(2000, ...counts(190, 60, 7))), ["critical: 10 % of requests fail: INTERNAL 10."]);
    same(found(before, read(2000, ...counts(200, 50, 8))),
      ["warning: Within a minute 1 request refused: queue_full 1; of tenants a 1."]);
    same(found(before, read(2000, ...counts(200, 50, 9)), read(70_000, ...counts(300, 50, 9)),
      read(72_000, ...counts(300, 50, 9))), []);
  },

  "operators that a device computes wrong are named": () => {
    const wrong = (count, value) => Array.from({ length: count }, (_, i) =>
      `opserve_operator_unavailable{operator="Op${i}",device="0"} ${value}`);
    same(found(read(0, ...HEALTHY, ...wrong(4, 0))), []);
    same(found(read(0, ...HEALTHY, ...wrong(1, 1))),
      ["warning: Device 0 does not offer Op0, which it computes wrong."]);
    same(found(read(0, ...HEALTHY, ...wrong(5, 1))),
      ["warning: Device 0 does not offer Op0, Op1, Op2 and 2 more, which it computes wrong."]);
  },

  "a reload that works ends the warning": () => {
    const reloads = (success, failure) => [...HEALTHY,
      `opserve_config_reloads_total{result="success"} ${success}`,
      `opserve_config_reloads_total{result="failure"} ${failure}`];
    const failed = [read(0, ...reloads(1, 0)), read(2000, ...reloads(1, 1))];
    same(found(...failed).length, 1);
    same(found(...failed, read(4000, ...reloads(2, 1))), []);
  },

  "lines are interrupted where nothing was read": () => {
    const point = (time, value) => ({ time, value });
    const runs = unbroken([point(0, 1), point(2000, 2), point(4000, null), point(6000, 3),
      point(60_000, 4)]);
    same(runs.map((run) => run.map(({ value }) => value)), [[1, 2], [3], [4]]);
  },

  "what is drawn becomes longer up to the whole": () => {
    const history = new ReadingHistory();
    history.add(read(0));
    same([10_000, 90_000, 900_000].map((now) => history.span(now).milliseconds),
      [60_000, 120_000, LONGEST_SPAN]);
    same([-20_000, 10_000, 40_000].map(history.span(40_000).x), [0, 0.5, 1]);
  },

  "states are runs": () => {
    const readings = [[0, "starting"], [2000, "ready"], [4000, "ready"], [90_000, "ready"]].map(
      ([time, state]) => read(time, `opserve_device_state{device="0",state="${state}"} 1`));
    same(stateRuns("0", readings), [{ state: "starting", from: 0, to: 2000 },
      { state: "ready", from: 2000, to: 4000 }, { state: "ready", from: 90_000, to: 90_000 }]);
  },

  "each state has a sign of its own": () => {
    const states = ["starting", "ready", "draining", "drained", "quarantined", "failed"];
    same(new Set(states.map((state) => STATE_SIGNS[state] ?? "?")).size, states.length);
  },

  "a chart draws few lines of many": () => {
    const line = (i) => ({ name: `tenant ${i}`, points: [{ time: 0, value: i }, { time: 1, value: i }] });
    const chart = new LineChart("Title", "Explanation.", { text: String, stacked: true });
    const span = { milliseconds: 1, x: (time) => time };
    chart.update(Array.from({ length: 200 }, (_, i) => line(i)), span);
    const rows = [...chart.element.querySelectorAll("tbody tr")].map((row) => row.textContent);
    same(rows.length, MAX_LINES);
    same(rows[0], "tenant 193193193");
    same(rows.at(-1), "193 others (sum)1852818528");
    const slots = [...chart.element.querySelectorAll("path.line")].map((path) => path.classList[1]);
    same(new Set(slots).size, MAX_LINES);
    chart.update([line(195)], span);
    same([...chart.element.querySelectorAll("path.line")].map((path) => path.classList[1]), [slots[2]]);
  },

  "numbers are short": () => {
    const cases = [
      [countText(null), "–"], [countText(0), "0"], [countText(12.345), "12.3"], [countText(12345), "12.3k"],
      [bytesText(0), "0 B"], [bytesText(1536), "1.5 KiB"], [bytesText(1023 * 1024), "1023 KiB"],
      [bytesText(64 * 1024 ** 3), "64 GiB"],
      [secondsText(0), "0 s"], [secondsText(25e-6), "25 µs"], [secondsText(0.0123), "12.3 ms"],
      [secondsText(5.678), "5.68 s"], [secondsText(600), "10 min"],
      [percentText(0), "0 %"], [percentText(0.5), "50 %"], [percentText(1), "100 %"],
      [percentText(0.0123), "1.2 %"],
    ];
    for (const [text, expected] of cases) same(text, expected);
  },
};

const HEALTHY = ['opserve_device_state{device="0",state="ready"} 1',
  'opserve_device_state{device="0",state="failed"} 0'];

function read(time, ...lines) {
  return readingOf(parseExposition(lines.join("\n")), time);
}

function found(...readings) {
  const history = new ReadingHistory();
  for (const reading of readings) history.add(reading);
  return findingsOf(history, 0).map(({ severity, text }) => `${severity}: ${text}`);
}

function same(actual, expected) {
  const all = (_, value) => (typeof value === "number" || value === undefined ? String(value) : value);
  const [is, should] = [actual, expected].map((value) => JSON.stringify(value, all));
  if (is !== should) throw new Error(`is ${is}, should be ${should}`);
}

function throws(action, what) {
  try {
    action();
  } catch {
    return;
  }
  throw new Error(`accepted: ${what}`);
}

// By name what is wrong, null if nothing.
function runTests() {
  return Object.fromEntries(Object.entries(TESTS).map(([name, test]) => {
    try {
      test();
      return [name, null];
    } catch (error) {
      return [name, `${error.message}\n${error.stack}`];
    }
  }));
}
