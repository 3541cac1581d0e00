// Reads the daemon's history once and /metrics again and again, and shows them.

const ANSWER_WITHIN = 5000; // milliseconds

const recentHistory = new ReadingHistory();
const page = new StatusPage();
let daemonTime = Date.now();

async function ask(path) {
  const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN) });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
  return response;
}

async function readHistory() {
  const answer = await (await ask("history")).json();
  readingsOf(answer, Date.now()).forEach((reading) => recentHistory.add(reading));
}

async function read() {
  const response = await ask("metrics");
  const samples = parseExposition(await response.text());
  daemonTime = Date.parse(response.headers.get("Date"));
  recentHistory.add(readingOf(samples, Date.now()));
}

async function run() {
  const next = Date.now() + READ_EVERY;
  const failure = await read().then(() => null, (error) => error.message);
  setTimeout(run, Math.max(0, next - Date.now()));
  page.update(recentHistory, failure, Date.now(), daemonTime);
}

// Without a history the page begins with its own readings.
readHistory().catch(() => {}).then(run);
