#!/usr/bin/python3
"""Writes the dashboards beside it, one JSON file each: usage generate.py [--check].

--check writes nothing, and fails if the files are not what this says now.

They read a Prometheus that has loaded deploy/prometheus/rules; which one, and which of its jobs and
daemons, is chosen at the top of each dashboard.
"""

import dataclasses
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH = 24  # of a dashboard, in Grafana's columns
HEIGHT = 8


@dataclasses.dataclass
class Query:
    expression: str
    legend: str
    # Nothing to see is a good sign, or one of a feature that is not in use.
    may_be_empty: bool = False


@dataclasses.dataclass
class Panel:
    title: str
    explanation: str
    queries: list
    unit: str = "short"  # Grafana's names: s, bytes, Bps, reqps, percentunit, short, dateTimeFromNow
    kind: str = "timeseries"
    is_stacked: bool = False
    width: int = 8


@dataclasses.dataclass
class Dashboard:
    name: str
    title: str
    panels: list


def of(metric, labels=""):
    """The series of the chosen daemons."""
    return f'{metric}{{job=~"$job",instance=~"$instance"{"," if labels else ""}{labels}}}'


def recorded(series, labels=""):
    """A recorded series of the chosen jobs, which has no daemons any more."""
    return f'{series}{{job=~"$job"{"," if labels else ""}{labels}}}'


def total(by, metric, labels=""):
    return f"sum by ({by}) ({of(metric, labels)})"


def rate(by, metric, labels=""):
    return f"sum by ({by}) (rate({of(metric, labels)}[$__rate_interval]))"


def quantile(number, by, labels):
    buckets = rate(f"{by}, le", "opserve_request_duration_seconds_bucket", labels)
    return f"histogram_quantile({number}, {buckets})"


def quantiles(by, labels):
    return [Query(quantile(number, by, labels), name)
            for number, name in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))]


DEVICE = "{{instance}} device {{device}}"
TOTAL = 'stage="total"'
POOL = "opserve_workspace_pool_"

OVERVIEW = Dashboard("overview", "opserve: overview", [
    Panel("Daemons", "Those that Prometheus reaches.", [Query(f"sum({of('up')})", "reached")],
          kind="stat", width=4),
    Panel("Devices in service", "Devices that have passed their golden cases and take requests.",
          [Query("sum(" + of("opserve_device_state", 'state="ready"') + ")", "ready")],
          kind="stat", width=4),
    Panel("Requests", "All that were answered, whatever the answer.",
          [Query(f"sum({recorded('job:opserve_requests:rate5m')})", "requests")],
          unit="reqps", kind="stat", width=4),
    Panel("Failed, of a day's budget",
          "The part of requests that the service failed within six hours, divided by the 0.1 % that it "
          "may fail: above 1 the error budget will not last.",
          [Query(f"max({recorded('job:opserve_request_errors:ratio_rate6h')}) / 0.001", "burn rate")],
          kind="stat", width=4),
    Panel("Latency, 99 %", "Of successful requests, inside the daemon.",
          [Query(quantile(0.99, "job", TOTAL), "p99")], unit="s", kind="stat", width=4),
    Panel("Alerts", "Those that fire now; deploy/RUNBOOK.md explains each.",
          [Query('count(ALERTS{alertname=~"Opserve.*",alertstate="firing",job=~"$job"})', "firing",
                 may_be_empty=True)], kind="stat", width=4),
    Panel("Requests by operator", "Answered requests per second.",
          [Query(rate("operator", "opserve_requests_total"), "{{operator}}")],
          unit="reqps", is_stacked=True),
    Panel("Requests by outcome", "By gRPC status code.",
          [Query(rate("code", "opserve_requests_total"), "{{code}}")], unit="reqps", is_stacked=True),
    Panel("Failures", "The part of requests that the service failed, over several windows.", [
        Query(recorded(f"job:opserve_request_errors:ratio_rate{window}"), "{{job}} " + window)
        for window in ("5m", "1h", "6h", "3d")], unit="percentunit"),
    Panel("Latency", "Of successful requests, from their first byte to the last byte of the answer.",
          quantiles("job", TOTAL), unit="s"),
    Panel("Where the time goes", "Mean seconds of a request in each stage.", [
        Query(rate("stage", "opserve_request_duration_seconds_sum", 'stage!="total"')
              + " / on () group_left () sum(rate("
              + of("opserve_request_duration_seconds_count", TOTAL) + "[$__rate_interval]))",
              "{{stage}}")], unit="s", is_stacked=True),
    Panel("Refused, by reason", "Requests that were turned away per second.", [
        Query(rate("reason", "opserve_admission_rejections_total") + " > 0", "{{reason}}",
              may_be_empty=True)], unit="reqps", is_stacked=True),
    Panel("Oldest request", "How long the request has waited that has waited longest.",
          [Query(f"max by (instance) ({of('opserve_queue_oldest_age_seconds')})", "{{instance}}")],
          unit="s"),
    Panel("Late or given up", "Requests per second whose deadlines passed, or whose callers left, by how "
          "far they had come.", [
        Query(rate("stage", "opserve_deadline_misses_total"), "late in {{stage}}"),
        Query(rate("stage", "opserve_cancelled_requests_total"), "left in {{stage}}")], unit="reqps"),
    Panel("Pressure", "How much of each bound is used, where it is used most; at 1 requests are refused "
          "or wait.", [Query(f"max by (monitor) ({of('opserve_overload_pressure_ratio')})", "{{monitor}}")],
          unit="percentunit"),
    Panel("Bounds in effect", "What is done because a bound is reached, by how many daemons.", [
        Query(total("action", "opserve_overload_action_active"), "{{action}}")]),
    Panel("Told to wait", "Median of the time after which refused clients were told to come back.", [
        Query(f"histogram_quantile(0.5, {rate('reason, le', 'opserve_retry_pushback_seconds_bucket')})",
              "{{reason}}", may_be_empty=True)], unit="s"),
    Panel("Bytes", "Of requests as received and of answers as sent.", [
        Query(rate("job", "opserve_request_bytes_sum"), "received"),
        Query(rate("job", "opserve_response_bytes_sum"), "sent")], unit="Bps"),
    Panel("Versions", "What is running.", [
        Query(of("opserve_build_info"), "")], kind="table"),
])

DEVICES = Dashboard("devices", "opserve: devices", [
    Panel("States", "The state each device is in.", [
        Query(of("opserve_device_state") + " == 1", DEVICE + " {{state}}")],
          kind="state-timeline", width=24),
    Panel("Operators that are wrong", "Devices do not offer operators that they compute wrong.", [
        Query(of("opserve_operator_unavailable") + " == 1", DEVICE + " {{operator}}",
              may_be_empty=True)], width=24),
    Panel("Utilization", "The part of the time in which at least one lane was executing.",
          [Query(of("opserve_device_utilization_ratio"), DEVICE)], unit="percentunit"),
    Panel("Busy lanes", "How many lanes of a device had a request, on average.", [
        Query(rate("instance, device", "opserve_tenant_device_seconds_total"), DEVICE)]),
    Panel("Executing", "Requests that lanes are executing.",
          [Query(of("opserve_requests_in_flight"), DEVICE)]),
    Panel("Waiting", "Requests that wait for a lane.",
          [Query(total("instance, device", "opserve_queue_depth"), DEVICE)]),
    Panel("Oldest request", "How long the request has waited that has waited longest.",
          [Query(of("opserve_queue_oldest_age_seconds"), DEVICE)], unit="s"),
    Panel("Requests by device", "Answered requests per second; none: no device was chosen for them.",
          [Query(rate("instance, device", "opserve_requests_total"), DEVICE)], unit="reqps"),
    Panel("Failures by device", "Requests per second that a device failed.", [
        Query(rate("instance, device, code", "opserve_requests_total",
                   'code=~"UNKNOWN|DEADLINE_EXCEEDED|INTERNAL|UNAVAILABLE|DATA_LOSS"'),
              DEVICE + " {{code}}", may_be_empty=True)], unit="reqps"),
    Panel("Errors by kind", "In an hour. kernel, timeout: one crashed or hung; stream: one could not be "
          "stopped; memory, device: lost; self_check: a golden case crashed, hung, or none was right; "
          "set_up: not to be brought up.", [
        Query(f"sum by (instance, device, kind) (increase({of('opserve_device_errors_total')}[1h])) > 0",
              DEVICE + " {{kind}}", may_be_empty=True)]),
    Panel("Taken out, by kind", "Times in an hour that a device was taken out of service, by why.", [
        Query("sum by (instance, device, kind) (increase("
              + of("opserve_device_quarantines_total") + "[1h])) > 0",
              DEVICE + " {{kind}}", may_be_empty=True)]),
    Panel("Streams stopped", "In an hour, by why; abandoned: they could not be.", [
        Query(f"sum by (instance, device, kind) (increase({of('opserve_stream_aborts_total')}[1h])) > 0",
              DEVICE + " {{kind}}", may_be_empty=True)]),
    Panel("Run again", "Requests per second that were run again on another device (--shadow_check_ratio), "
          "and what came of it.", [
        Query(rate("result", "opserve_shadow_checks_total"), "{{result}}")], unit="reqps"),
    Panel("Which device is which", "For a join with Ascend's npu-exporter: id and pcie_bus_info are its "
          "labels too.", [Query(of("opserve_device_info"), "")], kind="table"),
    Panel("Memory in use", "Of each device, by anybody.", [
        Query(of("opserve_device_memory_used_bytes") + " / "
              + of("opserve_device_memory_total_bytes"), DEVICE)], unit="percentunit"),
    Panel("Memory beside the pool", "In use and not the pool's: of other processes, the driver, or lost.",
          [Query(of("instance_device:opserve_device_memory_outside_pool:bytes"), DEVICE)],
          unit="bytes"),
])

TENANTS = Dashboard("tenants", "opserve: tenants", [
    Panel("Share of lane time", "What each tenant got of all lane time.",
          [Query(recorded("job_tenant:opserve_device_seconds:share_rate5m"), "{{tenant}}")],
          unit="percentunit", is_stacked=True),
    Panel("Lane time", "Busy lanes by tenant.",
          [Query(rate("tenant", "opserve_tenant_device_seconds_total"), "{{tenant}}")], is_stacked=True),
    Panel("Waiting", "Requests that wait for a lane, of any device.",
          [Query(total("tenant", "opserve_queue_depth"), "{{tenant}}")], is_stacked=True),
    Panel("Waiting work", "Elements that a tenant's waiting requests will compute, on any device; "
          "--queue_work_per_tenant bounds them for each device.",
          [Query(total("tenant", "opserve_queue_work_elements"), "{{tenant}}")], is_stacked=True),
    Panel("Behind its share", "Lane time that a tenant which waits should have had and has not, where it "
          "is most.", [
        Query(f"max by (tenant) ({of('opserve_tenant_fairness_lag_seconds')})", "{{tenant}}")], unit="s"),
    Panel("Requests", "Answered requests per second.",
          [Query(rate("tenant", "opserve_requests_total"), "{{tenant}}")], unit="reqps"),
    Panel("Answered well", "The part of a tenant's requests with code OK.", [
        Query(rate("tenant", "opserve_requests_total", 'code="OK"') + " / "
              + rate("tenant", "opserve_requests_total"), "{{tenant}}")], unit="percentunit"),
    Panel("Refused", "Requests that were turned away per second; _nobody: callers without a tenant.", [
        Query(rate("tenant, reason", "opserve_admission_rejections_total") + " > 0",
              "{{tenant}} {{reason}}", may_be_empty=True)], unit="reqps"),
    Panel("Device memory", "Of tenants' requests and resident tensors, on all devices.", [
        Query(total("tenant", "opserve_tenant_memory_bytes", 'kind="hbm"'), "{{tenant}}")],
          unit="bytes", is_stacked=True),
    Panel("Page-locked memory", "Results that wait for tenants' clients to read them.", [
        Query(total("tenant", "opserve_tenant_memory_bytes", 'kind="pinned"'), "{{tenant}}")],
          unit="bytes", is_stacked=True),
    Panel("Shared memory", "Bytes that tenants' clients share with the daemon.", [
        Query(total("tenant", "opserve_shm_bytes"), "{{tenant}}", may_be_empty=True)],
          unit="bytes", is_stacked=True),
    Panel("Shared regions", "How many pieces that is.", [
        Query(total("tenant", "opserve_shm_regions"), "{{tenant}}", may_be_empty=True)]),
    Panel("Answers for repetitions", "Host memory of answers kept for idempotency keys.", [
        Query(total("tenant", "opserve_idempotency_bytes"), "{{tenant}}")],
          unit="bytes", is_stacked=True),
    Panel("Answers forgotten, not remembered", "Forgotten before their time to make room, and those without "
          "room: --idempotency_cache_bytes is small for these tenants.", [
        Query(rate("tenant", "opserve_idempotency_evictions_total"), "{{tenant}} forgotten"),
        Query(rate("tenant", "opserve_idempotency_unremembered_total"), "{{tenant}} not remembered")],
          unit="ops"),
])

MEMORY = Dashboard("memory", "opserve: memory", [
    Panel("Device memory", "In use by anybody.",
          [Query(of("opserve_device_memory_used_bytes"), DEVICE)], unit="bytes"),
    Panel("Pool", "What the pools have taken from their devices, and the most so far.", [
        Query(of(POOL + "reserved_bytes"), DEVICE),
        Query(of(POOL + "peak_bytes"), DEVICE + " peak")], unit="bytes"),
    Panel("What the pool does with it", "Lent to requests, kept for the lane that used it, or idle.", [
        Query(total("job", POOL + what + "_bytes"), what)
        for what in ("allocated", "retired", "idle")], unit="bytes", is_stacked=True),
    Panel("Lost to rounding", "The part of lent memory that nobody asked for.", [
        Query(f"1 - {of(POOL + 'requested_bytes')} / ({of(POOL + 'allocated_bytes')} > 0)", DEVICE,
              may_be_empty=True)], unit="percentunit"),
    Panel("Fragmentation", "The part of idle memory outside the largest idle block.",
          [Query(of(POOL + "fragmentation_ratio"), DEVICE)], unit="percentunit"),
    Panel("Largest idle block", "The most that one request gets without growth.",
          [Query(of(POOL + "largest_free_bytes"), DEVICE)], unit="bytes"),
    Panel("How allocations were served", "hit and split cost next to nothing; grow asks the device; oom "
          "found nothing.", [
        Query(rate("result", POOL + "allocations_total"), "{{result}}")],
          unit="ops", is_stacked=True),
    Panel("Given back and overwritten", "Bytes given back to devices, and bytes overwritten before "
          "another tenant got them.", [
        Query(rate("job", POOL + "trimmed_bytes_total"), "given back"),
        Query(rate("job", POOL + "scrubbed_bytes_total"), "overwritten")], unit="Bps"),
    Panel("Merged, trimmed, waited for", "Blocks that became one, times memory was given back, and "
          "allocations that waited for memory of other requests.", [
        Query(rate("job", POOL + "merges_total"), "merges"),
        Query(rate("job", POOL + "trims_total"), "trims"),
        Query(rate("job", POOL + "waits_total"), "waits")], unit="ops"),
    Panel("Time waited for memory", "Per second, of all allocations together.",
          [Query(rate("job", POOL + "wait_seconds_total"), "{{job}}")], unit="s"),
    Panel("Page-locked memory", "Taken from the system, and of it in use for results.", [
        Query(of("opserve_pinned_pool_reserved_bytes"), "{{instance}} reserved"),
        Query(of("opserve_pinned_pool_allocated_bytes"), "{{instance}} in use")], unit="bytes"),
    Panel("Results in ordinary memory", "Because the page-locked pool was in use.",
          [Query(rate("instance", "opserve_pinned_fallbacks_total"), "{{instance}}")], unit="ops"),
])

INTERNALS = Dashboard("internals", "opserve: internals", [
    Panel(f"Stage {stage}", explanation, quantiles("job", f'stage="{stage}"'), unit="s", width=6)
    for stage, explanation in {
        "read": "Taking the message apart.",
        "validate": "Checking names, shapes, types and sizes.",
        "queue": "Waiting for a lane.",
        "h2d": "Copying inputs to the device.",
        "prepare": "Stage one, or a cached plan, and memory.",
        "execute": "Stage two, on the stream.",
        "d2h": "Copying results from the device.",
        "write": "Handing the answer to gRPC.",
    }.items()
] + [
    Panel("Plan cache hits", "The part of invocations that found their plan.",
          [Query(recorded("job_operator:opserve_executor_cache_hits:ratio_rate15m"), "{{operator}}")],
          unit="percentunit"),
    Panel("Plans kept", "In all lanes.",
          [Query(total("operator", "opserve_executor_cache_entries"), "{{operator}}")]),
    Panel("Plans dropped, and not kept", "Dropped to make room; and invocations whose executor runs only "
          "once.", [
        Query(rate("operator", "opserve_executor_cache_evictions_total"), "{{operator}} dropped"),
        Query(rate("operator", "opserve_executor_cache_uncacheable_total"), "{{operator}} not kept")],
          unit="ops"),
    Panel("Copies", "Tensor bytes between host and devices; shm: those in shared memory that had to be "
          "copied all the same.", [
        Query(rate("direction, path", "opserve_host_copy_bytes_total"), "{{direction}} {{path}}")],
          unit="Bps"),
    Panel("Views copied", "On a device, for functions that take contiguous tensors only.", [
        Query(rate("instance", "opserve_contiguous_copies_total"), "{{instance}}")], unit="ops"),
    Panel("Connections", "By listener and by what they had: answers to a tenant's calls (identified), to others' (answered), none "
          "(silent).", [Query(total("instance, listener, state", "opserve_connections"), "{{instance}} {{listener}} {{state}}")]),
    Panel("Connections that ended", "Without a call in time (silent), to make room (evicted), likewise while they waited for "
          "their turn, since their peer flooded (waiting), since the client took nothing (stalled), or otherwise (closed).", [
        Query(rate("listener, reason", "opserve_ended_connections_total"), "{{listener}} {{reason}}")], unit="ops"),
    Panel("Connections refused, clients that stall", "In an hour: connections beyond a limit, and "
          "calls and connections ended after --write_stall_timeout.", [
        Query(f"sum by (instance, reason) (increase({of('opserve_rejected_connections_total')}[1h]))",
              "{{instance}} refused for {{reason}}"),
        Query(f"increase({of('opserve_write_stalls_total')}[1h])", "{{instance}} stalled {{kind}}")]),
    Panel("Log lines lost, left out, and waiting", "In an hour, and KiB that wait. Lost: the log's reader is slow or has "
          "stopped; left out by the bounds on what clients can cause, by event.", [
        Query(f"increase({of('opserve_log_lines_dropped_total')}[1h])", "{{instance}} lost"),
        Query(f"increase({of('opserve_log_lines_left_out_total')}[1h])", "{{instance}} {{event}} left out"),
        Query(of("opserve_log_queued_bytes") + " / 1024", "{{instance}} KiB waiting")]),
    Panel("Uploads ended", "Of resident tensors, in an hour, by result; stalled: the client sent too slowly.", [
        Query(f"increase({of('opserve_uploads_total')}[1h])", "{{instance}} {{result}}")]),
    Panel("Downloads ended", "Of resident tensors, snapshots included, in an hour, by result; and MiB of contents that "
          "those in progress hold, even if their tensors have others now.", [
        Query(f"increase({of('opserve_downloads_total')}[1h])", "{{instance}} {{result}}"),
        Query(of("opserve_download_held_bytes") + " / 1048576", "{{instance}} MiB held")]),
    Panel("Resident tensors changed", "Results that became resident tensors (kept) or the content of one "
          "(replaced), tensors that were given up (donated), and requests that failed to, in an hour.", [
        Query(f"increase({of('opserve_tensor_changes_total')}[1h])", "{{instance}} {{result}}")]),
    Panel("Resident tensors moved", "Tenants whose tensors left a device that drains (moved) or could not, in an hour; "
          "MiB that are moving, and that have no place on another device (stuck): requests that use those are refused.", [
        Query(f"increase({of('opserve_resident_moves_total')}[1h])", "{{instance}} {{result}}"),
        Query(f"increase({of('opserve_resident_moved_bytes_total')}[1h]) / 1048576", "{{instance}} MiB moved"),
        Query(of("opserve_resident_moving_bytes") + " / 1048576", "{{instance}} MiB moving"),
        Query(total("instance, device", "opserve_resident_stuck_bytes") + " / 1048576",
              "{{instance}} {{device}} MiB stuck")]),
    Panel("Resident tensors deposited", "Tensors and prepared programs of daemons that end, by direction (in: of others, "
          "out: of this one) and result, and the tensors' MiB, in an hour; and MiB of the batches that are coming.", [
        Query(f"increase({of('opserve_deposits_total')}[1h])", "{{instance}} {{direction}} {{result}}"),
        Query(f"increase({of('opserve_deposited_bytes_total')}[1h]) / 1048576",
              "{{instance}} MiB {{direction}}"),
        Query(of("opserve_deposit_held_bytes") + " / 1048576", "{{instance}} MiB coming"),
        Query(f"increase({of('opserve_deposited_programs_total')}[1h])",
              "{{instance}} programs {{direction}} {{result}}")]),
    Panel("Sessions", "Open ones, and what clients send in them a second: many frames to a message are cheap.", [
        Query(of("opserve_sessions"), "{{instance}} open"),
        Query(f"rate({of('opserve_session_frames_total')}[5m])", "{{instance}} frames"),
        Query(f"rate({of('opserve_session_messages_total')}[5m])", "{{instance}} messages")]),
    Panel("Requests in chunks", "Large requests whose payloads arrive now, and those that have arrived in an hour or "
          "never will, by result.", [
        Query(of("opserve_session_requests_arriving"), "{{instance}} arriving"),
        Query(f"increase({of('opserve_session_arrivals_total')}[1h])", "{{instance}} {{result}}")]),
    Panel("Results in parts", "Requests whose large results leave device memory now, and those whose results have left "
          "in an hour or never will, by result; expired: their clients read too slowly.", [
        Query(of("opserve_session_requests_departing"), "{{instance}} leaving"),
        Query(f"increase({of('opserve_session_departures_total')}[1h])", "{{instance}} {{result}}")]),
    Panel("Sessions that ended", "In an hour, by result; protocol: the client broke it.", [
        Query(f"increase({of('opserve_sessions_total')}[1h])", "{{instance}} {{result}}")]),
    Panel("Prepared programs", "Handles, and the host memory of their programs, which callers of a tenant share.", [
        Query(of("opserve_prepared_programs"), "{{instance}} handles"),
        Query(of("opserve_prepared_program_bytes") + " / 1048576", "{{instance}} MiB")]),
    Panel("Handles of prepared programs", "In an hour: made for a new program (prepared) or one that was there (shared), "
          "of another daemon (adopted), given up (released), ended by their lease (expired) or a tenant's limit "
          "(evicted), and calls that named one that is not known (unknown).", [
        Query(f"increase({of('opserve_prepared_program_events_total')}[1h])", "{{instance}} {{event}}")]),
    Panel("Captured programs", "Captured runs of prepared programs, which a device replays as one launch each, replays a "
          "second, and the device memory in MiB that they keep between their replays.", [
        Query(total("instance, device", "opserve_captured_programs"), "{{instance}} {{device}} captured runs"),
        Query(rate("instance, device", "opserve_captured_replays_total"), "{{instance}} {{device}} replays"),
        Query(total("instance, device", "opserve_captured_bytes") + " / 1048576", "{{instance}} {{device}} MiB")]),
    Panel("Captures of prepared programs", "In an hour, by result: full and tenant_full say that a limit keeps programs from "
          "being replayed; and those that ended, by reason.", [
        Query(f"sum by (instance, result) (increase({of('opserve_captures_total')}[1h]))", "{{instance}} {{result}}"),
        Query(f"sum by (instance, reason) (increase({of('opserve_captures_ended_total')}[1h]))",
              "{{instance}} ended: {{reason}}")]),
    Panel("Programs that are known", "Requests a second whose program was kept from an equal request (hit), or is "
          "from now on (miss). Many misses: shapes change all the time, so each request is checked anew.", [
        Query(f"rate({of('opserve_bound_program_requests_total')}[5m])", "{{instance}} {{result}}"),
        Query(of("opserve_bound_programs"), "{{instance}} kept")]),
    Panel("Waiting for a resident tensor", "Their turn comes when the request that changes the tensor has ended. A "
          "number that stays says that one hangs.", [
        Query(of("opserve_tensor_waiting_requests"), "{{instance}}")]),
    Panel("Booked by uploads, not written", "Device memory that uploads in progress keep for bytes that are "
          "still to come; and all that is booked.", [
        Query(total("device", "opserve_upload_unwritten_bytes"), "{{device}} not written"),
        Query(total("device", "opserve_workspace_pool_booked_bytes"), "{{device}} booked")],
          unit="bytes"),
    Panel("Floods", "In an hour: connections ended because of what they sent, by kind; and Health/Watch calls on "
          "connections without a call of a tenant.", [
        Query(f"increase({of('opserve_flooding_connections_total')}[1h])", "{{instance}} {{flood}}"),
        Query(f"increase({of('opserve_anonymous_streams_ended_total')}[1h])", "{{instance}} watch {{result}}"),
        Query(of("opserve_anonymous_streams"), "{{instance}} watching")]),
    Panel("Shared memory refused", "By reason.", [
        Query(rate("reason", "opserve_shm_rejections_total") + " > 0", "{{reason}}",
              may_be_empty=True)], unit="ops"),
    Panel("Certificates", "When they expire.", [
        Query(of("opserve_tls_certificate_expiry_timestamp_seconds") + " * 1000",
              "{{instance}} {{listener}}", may_be_empty=True)], unit="dateTimeFromNow", kind="stat"),
    Panel("Reloads", "Of the configuration, in a day.", [
        Query(f"increase({of('opserve_config_reloads_total')}[1d])", "{{instance}} {{result}}")]),
    Panel("Memory of the daemon", "What it has in RAM.",
          [Query(of("process_resident_memory_bytes"), "{{instance}}")], unit="bytes"),
    Panel("Processors", "How many the daemon keeps busy.",
          [Query(f"rate({of('process_cpu_seconds_total')}[$__rate_interval])", "{{instance}}")]),
    Panel("File descriptors", "Open, of those there may be.", [
        Query(of("process_open_fds") + " / " + of("process_max_fds"), "{{instance}}")],
          unit="percentunit"),
    Panel("Message sizes", "Of requests as received.", [
        Query(f"histogram_quantile({number}, {rate('le', 'opserve_request_bytes_bucket')})", name)
        for number, name in ((0.5, "p50"), (0.99, "p99"))], unit="bytes"),
    Panel("Answer sizes", "Of successful answers as sent.", [
        Query(f"histogram_quantile({number}, {rate('le', 'opserve_response_bytes_bucket')})", name)
        for number, name in ((0.5, "p50"), (0.99, "p99"))], unit="bytes"),
])

DASHBOARDS = [OVERVIEW, DEVICES, TENANTS, MEMORY, INTERNALS]


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": query,
            "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".+",
            "current": {"text": "All", "value": "$__all"}}


VARIABLES = [
    {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
    variable("job", "Job", "label_values(opserve_build_info, job)"),
    variable("instance", "Daemon", 'label_values(opserve_build_info{job=~"$job"}, instance)'),
]


def panel_json(panel, number, x, y):
    is_at_once = panel.kind in ("stat", "table")
    targets = [{"refId": chr(ord("A") + i), "datasource": SOURCE, "expr": query.expression,
                "legendFormat": query.legend, "instant": is_at_once, "range": not is_at_once,
                **({"format": "table"} if panel.kind == "table" else {})}
               for i, query in enumerate(panel.queries)]
    made = {"id": number, "type": panel.kind, "title": panel.title, "description": panel.explanation,
            "datasource": SOURCE, "gridPos": {"x": x, "y": y, "w": panel.width, "h": HEIGHT},
            "targets": targets, "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []}}
    if panel.kind == "timeseries":
        made["fieldConfig"]["defaults"]["min"] = 0
        made["fieldConfig"]["defaults"]["custom"] = {
            "fillOpacity": 30 if panel.is_stacked else 0,
            "stacking": {"mode": "normal" if panel.is_stacked else "none"}}
        made["options"] = {"tooltip": {"mode": "multi", "sort": "desc"}}
    return made


def dashboard_json(dashboard):
    panels, x, y = [], 0, 0
    for number, panel in enumerate(dashboard.panels, start=1):
        if x + panel.width > WIDTH:
            x, y = 0, y + HEIGHT
        panels.append(panel_json(panel, number, x, y))
        x += panel.width
    links = [{"type": "dashboards", "title": "opserve", "tags": ["opserve"], "asDropdown": False,
              "keepTime": True, "includeVars": True}]
    return {"uid": f"opserve-{dashboard.name}", "title": dashboard.title, "tags": ["opserve"],
            "schemaVersion": 37, "editable": True, "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "links": links,
            "templating": {"list": VARIABLES}, "panels": panels}


def main():
    is_check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not is_check:
        sys.exit(__doc__)
    for dashboard in DASHBOARDS:
        path = HERE / f"{dashboard.name}.json"
        text = json.dumps(dashboard_json(dashboard), indent=1) + "\n"
        if not is_check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what {__file__} makes; run that")


if __name__ == "__main__":
    main()
