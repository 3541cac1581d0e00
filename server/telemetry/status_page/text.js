// Numbers as people read them.

const NOTHING = "–";

function scaled(number, units, step, decimals = 3) {
  let value = number;
  let unit = 0;
  while (Math.abs(value) >= step && unit + 1 < units.length) {
    value /= step;
    ++unit;
  }
  return [value >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(decimals))), units[unit]];
}

function countText(number) {
  return number === null ? NOTHING : scaled(number, ["", "k", "M", "G"], 1000).join("");
}

function rateText(perSecond) {
  return perSecond === null ? NOTHING : `${countText(perSecond)}/s`;
}

function bytesText(bytes) {
  if (bytes === null) return NOTHING;
  return scaled(bytes, ["B", "KiB", "MiB", "GiB", "TiB"], 1024).join(" ");
}

function percentText(ratio) {
  if (ratio === null || Number.isNaN(ratio)) return NOTHING;
  return `${Number((ratio * 100).toPrecision(ratio < 0.1 ? 2 : 3))} %`;
}

function secondsText(seconds) {
  if (seconds === null) return NOTHING;
  if (seconds === 0) return "0 s";
  if (seconds < 1) return scaled(seconds * 1e6, ["µs", "ms"], 1000).join(" ");
  if (seconds < 120) return `${Number(seconds.toPrecision(3))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

function clockText(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

function quantity(number, what) {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
