// What one answer of /metrics says, reduced to what the page shows.

// Sums of a metric's samples by the value of a label; of those with other labels as given.
const SUMS = {
  inFlight: ["opserve_requests_in_flight", "device"],
  waiting: ["opserve_queue_depth", "device"],
  oldestAge: ["opserve_queue_oldest_age_seconds", "device"],
  memoryUsed: ["opserve_device_memory_used_bytes", "device"],
  memoryTotal: ["opserve_device_memory_total_bytes", "device"],
  poolReserved: ["opserve_workspace_pool_reserved_bytes", "device"],
  poolAllocated: ["opserve_workspace_pool_allocated_bytes", "device"],
  poolRetired: ["opserve_workspace_pool_retired_bytes", "device"],
  poolIdle: ["opserve_workspace_pool_idle_bytes", "device"],
  utilization: ["opserve_device_utilization_ratio", "device"],
  laneSeconds: ["opserve_tenant_device_seconds_total", "device"],
  requestsByDevice: ["opserve_requests_total", "device"],
  requestsByCode: ["opserve_requests_total", "code"],
  requestsByTenant: ["opserve_requests_total", "tenant"],
  refusalsByReason: ["opserve_admission_rejections_total", "reason"],
  refusalsByTenant: ["opserve_admission_rejections_total", "tenant"],
  tenantSeconds: ["opserve_tenant_device_seconds_total", "tenant"],
  tenantDeviceMemory: ["opserve_tenant_memory_bytes", "tenant", { kind: "hbm" }],
  tenantPinnedMemory: ["opserve_tenant_memory_bytes", "tenant", { kind: "pinned" }],
  pressure: ["opserve_overload_pressure_ratio", "monitor"],
  overloadActions: ["opserve_overload_action_active", "action"],
  reloads: ["opserve_config_reloads_total", "result"],
  certificateExpiry: ["opserve_tls_certificate_expiry_timestamp_seconds", "listener"],
};

// `time`: when it was read, in milliseconds. Each of SUMS is a map; `states` has the state of each
// device, `wrongOperators` the operators of a device that it does not offer, `durations` histograms by operator and stage.
function readingOf(samples, time) {
  const reading = { time, build: samples.get("opserve_build_info")?.[0]?.labels ?? {} };
  for (const [key, [name, label, others = {}]] of Object.entries(SUMS)) {
    reading[key] = sumBy(samples.get(name) ?? [], label, others);
  }
  const ofClients = (samples.get("opserve_connections") ?? []).filter(
    ({ labels }) => labels.listener === "unix" || labels.listener === "tcp");
  reading.connections =
    ofClients.length > 0 ? ofClients.reduce((sum, { value }) => sum + value, 0) : null;
  reading.states = statesOf(samples.get("opserve_device_state") ?? []);
  reading.wrongOperators = wrongOperatorsOf(samples.get("opserve_operator_unavailable") ?? []);
  reading.durations = durationsOf(samples.get("opserve_request_duration_seconds_bucket") ?? []);
  return reading;
}

function sumBy(samples, label, others) {
  const sums = new Map();
  for (const { labels, value } of samples) {
    if (Object.entries(others).some(([name, wanted]) => labels[name] !== wanted)) continue;
    sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  }
  return sums;
}

function statesOf(samples) {
  return new Map(
    samples.filter(({ value }) => value === 1).map(({ labels }) => [labels.device, labels.state]));
}

function wrongOperatorsOf(samples) {
  const wrong = new Map();
  for (const { labels, value } of samples) {
    if (value !== 1) continue;
    wrong.set(labels.device, [...(wrong.get(labels.device) ?? []), labels.operator]);
  }
  return wrong;
}

function durationsOf(samples) {
  const operators = new Map();
  for (const sample of samples) {
    const { operator, stage } = sample.labels;
    if (!operators.has(operator)) operators.set(operator, new Map());
    const stages = operators.get(operator);
    if (!stages.has(stage)) stages.set(stage, []);
    stages.get(stage).push(sample);
  }
  for (const stages of operators.values()) {
    for (const [stage, buckets] of stages) stages.set(stage, histogramOf(buckets));
  }
  return operators;
}
