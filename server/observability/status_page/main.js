// Reads /metrics again and again, and shows what came of it.

const ANSWER_WITHIN = 5000; // milliseconds

const recentHistory = new ReadingHistory();
const page = new StatusPage();
let daemonTime = Date.now();

async function read() {
  const response = await fetch("metrics", { cache: "no-store", signal: AbortSignal.timeout(ANSWER_WITHIN) });
  if (!response.ok) throw new Error(`HTTP status ${response.status}`);
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

run();
