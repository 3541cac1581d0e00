// The readings of the last minutes, and lines to draw of them: {name, points}, a point being
// {time, value}; null where there is no value.

const READ_EVERY = 2000; // milliseconds
const SHORTEST_SPAN = 60_000;
const LONGEST_SPAN = 15 * 60_000; // as the daemon's own history
// The latest readings are all kept, earlier ones as far apart as the daemon's history has them. As
// long as the daemon bounds its labels, so is the memory of these readings.
const FINE_READINGS = 150;
const COARSE = 10_000; // milliseconds
// Quantiles are of what came within this time: less would be few requests, more old news.
const QUANTILE_WINDOW = 30_000;

class ReadingHistory {
  readings = [];

  // `reading` is later than those before.
  add(reading) {
    const { readings } = this;
    // Of two that are close together the earlier goes: rates over so short a time say little.
    if (reading.time - this.latest?.time < READ_EVERY / 2) readings.pop();
    readings.push(reading);
    while (readings[0].time < reading.time - LONGEST_SPAN) readings.shift();
    // The one that is no longer among the latest stays only if the one before it is long ago; times
    // differ by some milliseconds.
    const i = readings.length - 1 - FINE_READINGS;
    if (i > 0 && readings[i].time - readings[i - 1].time < COARSE - READ_EVERY / 2) {
      readings.splice(i, 1);
    }
  }

  get latest() {
    return this.readings.at(-1);
  }

  // The time to draw: up to `now`, {milliseconds, x}; x says where a time is in it, from 0 to 1.
  span(now) {
    const wanted = Math.max(SHORTEST_SPAN, now - this.readings[0].time);
    const milliseconds = Math.min(LONGEST_SPAN, Math.ceil(wanted / SHORTEST_SPAN) * SHORTEST_SPAN);
    return { milliseconds, x: (time) => 1 - (now - time) / milliseconds };
  }

  gauges(key) {
    return this.#lines(key, (name, now) => now[key].get(name) ?? null);
  }

  // Per second.
  rates(key) {
    return this.#lines(key, (name, now, before) => before && rate(key, name, now, before));
  }

  // Each name's part of the sum of all their rates.
  shares(key) {
    return this.#lines(key, (name, now, before) => {
      if (before === null) return null;
      const all = [...now[key].keys()].reduce((sum, n) => sum + rate(key, n, now, before), 0);
      return all === 0 ? 0 : rate(key, name, now, before) / all;
    });
  }

  // Of a gauge to another.
  ratios(key, whole) {
    return this.#lines(key, (name, now) =>
      now[key].has(name) ? now[key].get(name) / now[whole].get(name) : null);
  }

  // `histogram`: of a reading, or undefined.
  quantiles(name, part, histogram) {
    return this.#line(name, (now) => {
      const since = this.#histogramSince(now, histogram);
      return since && quantile(part, since);
    });
  }

  // What came within QUANTILE_WINDOW before the latest reading; null: that cannot be known yet.
  recent(histogram) {
    return this.#histogramSince(this.latest, histogram);
  }

  // By how much counters have grown within that time; those that have, by name.
  increases(key, window) {
    const before = this.readings.find(({ time }) => time >= this.latest.time - window);
    return new Map(
      [...this.latest[key].keys()].map((name) => [name, increase(key, name, this.latest, before)])
        .filter(([, grown]) => grown > 0));
  }

  #lines(key, value) {
    const names = new Set(this.readings.flatMap((reading) => [...reading[key].keys()]));
    return [...names].sort(inNaturalOrder)
      .map((name) => this.#line(name, (now, before) => value(name, now, before)));
  }

  #line(name, value) {
    const points = this.readings.map((now, i) => (
      { time: now.time, value: value(now, i === 0 ? null : this.readings[i - 1]) }));
    return { name, points };
  }

  #histogramSince(now, histogram) {
    const start = this.readings.find((reading) => reading.time >= now.time - QUANTILE_WINDOW);
    const current = histogram(now);
    if (start === now || current === undefined) return null;
    return histogramSince(current, histogram(start));
  }
}

function increase(key, name, now, before) {
  const [value, earlier] = [now[key].get(name) ?? 0, before[key].get(name) ?? 0];
  return value >= earlier ? value - earlier : value; // less: the daemon was restarted
}

function rate(key, name, now, before) {
  return increase(key, name, now, before) / ((now.time - before.time) / 1000);
}

function inNaturalOrder(a, b) {
  return a.localeCompare(b, "en", { numeric: true });
}

function sumOf(values) {
  return [...values].reduce((sum, value) => sum + value, 0);
}
