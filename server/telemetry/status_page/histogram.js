// Histograms as Prometheus has them: {bounds, counts}, where counts[i] values are at most bounds[i];
// the last bound is Infinity.

// Of samples with the label `le`.
function histogramOf(samples) {
  const buckets = samples
    .map(({ labels, value }) => ({ bound: parseNumber(labels.le), count: value }))
    .sort((a, b) => a.bound - b.bound);
  return { bounds: buckets.map((b) => b.bound), counts: buckets.map((b) => b.count) };
}

// What has come since `before`; everything, if there was nothing or the daemon has been restarted.
function histogramSince(now, before) {
  const last = now.counts.length - 1;
  if (before === undefined || before.counts[last] > now.counts[last]) return now;
  return { bounds: now.bounds, counts: now.counts.map((count, i) => count - before.counts[i]) };
}

// Of histograms with the same bounds.
function histogramSum(histograms) {
  const [first, ...others] = histograms;
  const sum = (i) => others.reduce((total, other) => total + other.counts[i], first.counts[i]);
  return { bounds: first.bounds, counts: first.counts.map((_, i) => sum(i)) };
}

function histogramCount({ counts }) {
  return counts[counts.length - 1];
}

// An estimate, straight between the bounds of a bucket; beyond the last finite bound that bound.
// Null if there are no values.
function quantile(part, { bounds, counts }) {
  const rank = part * counts[counts.length - 1];
  if (!(rank > 0)) return null;
  const i = counts.findIndex((count) => count >= rank);
  const [lower, below] = i === 0 ? [0, 0] : [bounds[i - 1], counts[i - 1]];
  if (bounds[i] === Infinity) return lower;
  return lower + ((bounds[i] - lower) * (rank - below)) / (counts[i] - below);
}
