#include "server/config/flags.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

ABSL_FLAG(std::string, config, "",
          "File with the configuration, in protobuf text format: everything the flags say, and "
          "tenants. Flags override it. SIGHUP reads it again.");
ABSL_FLAG(std::string, listen, "",
          "Addresses to serve on, separated by commas or each with a flag of its own: unix:PATH, "
          "HOST:PORT, [IPV6]:PORT. "
          "Empty: a Unix socket in $XDG_RUNTIME_DIR/opserve, or in /tmp/opserve-UID. With "
          "--tls_cert, TCP is TLS.");
ABSL_FLAG(bool, insecure_allow_plaintext, false,
          "Allows --listen on an address that other machines can reach without --tls_cert. "
          "There is no encryption: whoever is on the way reads tensors and tokens.");
ABSL_FLAG(std::string, tls_cert, "",
          "Certificate chain of the server (PEM); with it, every TCP address of --listen is "
          "TLS.");
ABSL_FLAG(std::string, tls_key, "", "Its private key (PEM).");
ABSL_FLAG(std::string, tls_client_ca, "",
          "Authorities of clients' certificates (PEM). With it a client must show a "
          "certificate.");
ABSL_FLAG(std::string, tls_crl, "",
          "Revocation lists of --tls_client_ca (PEM): clients with these certificates are "
          "refused.");
ABSL_FLAG(absl::optional<absl::Duration>, tls_reload_interval, absl::nullopt,
          "How often the files of --tls_... are looked at again; a broken one is reported, and "
          "what was read before stays in use. Default: 60s.");
ABSL_FLAG(std::string, metrics_listen, "",
          "HOST:PORT where /metrics is for Prometheus and / a status page for browsers, live and "
          "drawn from /metrics; none for no such listener. Default: 127.0.0.1:9464.");
ABSL_FLAG(absl::optional<uint32_t>, metrics_max_tenants, absl::nullopt,
          "Tenants that metrics tell apart (1 to 200); those that come to be known after them are "
          "counted together, as _other. Default: 200.");
ABSL_FLAG(std::string, admin_listen, "",
          "unix:PATH for administrators (drain and resume devices, trim and inspect pools), "
          "which only this user can reach. Empty: the first Unix socket of --listen (or the "
          "default one) with .admin behind its path; none: no such listener.");
ABSL_FLAG(bool, enable_shm, false,
          "Lets programs of this machine share memory with the daemon instead of sending tensors: "
          "beside each Unix socket of --listen there is one with .shm behind its path.");
ABSL_FLAG(bool, allow_named_shm, false,
          "Lets clients of the Open Inference Protocol register POSIX shared memory by its name: "
          "objects of their own user where the system names it (a Unix socket, a tenant with that "
          "uid), else of the daemon's user. Every address of --listen must be a Unix socket or "
          "loopback.");
ABSL_FLAG(std::string, anonymous_tenant, "",
          "The tenant of callers without credentials, where there are tenants; empty: they are "
          "refused.");
ABSL_FLAG(absl::optional<uint32_t>, max_connections, absl::nullopt,
          "Connections there may be; more are closed at once (1 to 1000000). Default: 1024.");
ABSL_FLAG(std::string, acl_library_dir, "",
          "The ACL libraries: an installation of CANN, or its lib64; cann for the one that "
          "ASCEND_HOME_PATH names, else where it is installed by default; empty for the embedded "
          "host CANN, which computes on this machine's CPU.");
ABSL_FLAG(std::vector<std::string>, device, {},
          "Ids of the devices to serve, separated by commas; empty for all.");
ABSL_FLAG(absl::optional<uint32_t>, streams_per_device, absl::nullopt,
          "Stream lanes of each device: requests that copy and compute at the same time (1 to "
          "64). Default: 4.");
ABSL_FLAG(absl::optional<uint32_t>, queue_capacity_total, absl::nullopt,
          "Requests that may wait, over all devices (1 to 1000000); more are refused with "
          "RESOURCE_EXHAUSTED. Default: 4096.");
ABSL_FLAG(absl::optional<uint32_t>, queue_capacity_per_tenant, absl::nullopt,
          "Requests of one tenant that may wait for a device (1 to 1000000); more are refused "
          "with RESOURCE_EXHAUSTED. Default: 256.");
ABSL_FLAG(absl::optional<absl::Duration>, queue_max_age, absl::nullopt,
          "Longest a request may wait for a device; then it ends with DEADLINE_EXCEEDED (at "
          "least 1ms). Default: 30s.");
ABSL_FLAG(absl::optional<double>, shadow_check_ratio, absl::nullopt,
          "Part of the requests that are run again on another device, when one is idle, to compare "
          "the results bit for bit; metrics count the differences (0 to 1). Default: 0.");
ABSL_FLAG(absl::optional<uint64_t>, max_message_bytes, absl::nullopt,
          "Largest request or response message (1048576 to 2147483647). Default: 64 MiB.");
ABSL_FLAG(absl::optional<uint64_t>, max_tensor_bytes, absl::nullopt,
          "Largest storage of one input or output (at least 1). Default: 2 GiB.");
ABSL_FLAG(absl::optional<uint64_t>, max_request_bytes, absl::nullopt,
          "Most bytes of all inputs and outputs of one request (at least 1). Default: 8 GiB.");
ABSL_FLAG(absl::optional<uint64_t>, max_output_ratio, absl::nullopt,
          "Outputs of one request may take this many times the bytes of its inputs, and 1 MiB "
          "more (at least 1). Default: 100.");
ABSL_FLAG(absl::optional<uint64_t>, max_workspace_bytes, absl::nullopt,
          "Largest workspace of one invocation; 0: a quarter of the device's memory.");
ABSL_FLAG(absl::optional<uint64_t>, max_workspace_ratio, absl::nullopt,
          "A workspace may take this many times the bytes of the request's inputs, and 1 MiB "
          "more (at least 1). Default: 1024.");
ABSL_FLAG(absl::optional<uint64_t>, workspace_floor_bytes, absl::nullopt,
          "Idle device memory that is kept for later requests, however long they do not come. "
          "Default: 64 MiB.");
ABSL_FLAG(absl::optional<uint64_t>, workspace_max_bytes, absl::nullopt,
          "Most memory taken of a device, for tensors and workspaces; 0: half of what it has.");
ABSL_FLAG(absl::optional<absl::Duration>, workspace_decay, absl::nullopt,
          "How long device memory above --workspace_floor_bytes stays idle before it is given "
          "back (at least 1ms). Default: 10s.");
ABSL_FLAG(std::string, scrub, "",
          "When device memory is overwritten before it is lent: cross-tenant, always, never. "
          "Default: cross-tenant.");
ABSL_FLAG(absl::optional<uint32_t>, executor_cache_entries, absl::nullopt,
          "Plans (stage-one results) kept for each device (1 to 1000000). Default: 1024.");
ABSL_FLAG(absl::optional<uint64_t>, resident_max_bytes_per_tenant, absl::nullopt,
          "Device memory one tenant's resident tensors may take; 0: no resident tensors. "
          "Default: 4 GiB.");
ABSL_FLAG(absl::optional<uint32_t>, resident_max_tensors_per_tenant, absl::nullopt,
          "Resident tensors one tenant may have (0 to 1000000). Default: 1024.");
ABSL_FLAG(absl::optional<absl::Duration>, resident_max_lease, absl::nullopt,
          "Longest lease of a resident tensor; a longer one is cut to it (at least 1s). "
          "Default: 1h.");
ABSL_FLAG(absl::optional<absl::Duration>, resident_grace, absl::nullopt,
          "How long a resident tensor outlives its lease, so that a late renewal still finds it"
          " (0 or more). Default: 30s.");
ABSL_FLAG(absl::optional<uint32_t>, stream_window, absl::nullopt,
          "Requests of one ExecuteStream that may be unanswered before no more are read (1 to "
          "10000). Default: 64.");
ABSL_FLAG(absl::optional<uint64_t>, idempotency_cache_bytes, absl::nullopt,
          "Host memory for answers to requests with an idempotency key (at least 1048576). "
          "Default: 64 MiB.");
ABSL_FLAG(absl::optional<absl::Duration>, recovery_wait, absl::nullopt,
          "Wait before the second attempt to bring a broken device back; doubled for each "
          "further one (at least 1ms). Default: 1s.");
ABSL_FLAG(absl::optional<absl::Duration>, longest_recovery_wait, absl::nullopt,
          "Longest of these waits (at least --recovery_wait). Default: 1m.");
ABSL_FLAG(bool, allow_host_fallback, false,
          "Lets results use ordinary host memory, which devices copy into more slowly, when the"
          " pinned pool, or the tenant's part of it, is in use; otherwise such requests wait.");
ABSL_FLAG(absl::optional<uint64_t>, pinned_pool_bytes, absl::nullopt,
          "Page-locked host memory for results on their way out (at least 1048576). Default: "
          "512 MiB.");
ABSL_FLAG(absl::optional<uint64_t>, grpc_memory_quota_bytes, absl::nullopt,
          "Memory gRPC may use for messages on their way in (at least 1048576). Default: 2 GiB.");
ABSL_FLAG(absl::optional<uint32_t>, max_streams_per_connection, absl::nullopt,
          "Calls one connection may have open (1 to 1000000). Default: 128.");
ABSL_FLAG(absl::optional<absl::Duration>, max_connection_age, absl::nullopt,
          "After about this long a connection is asked to be made anew, so that load finds new "
          "daemons (at least 1s). Default: 30m.");
ABSL_FLAG(absl::optional<absl::Duration>, max_connection_age_grace, absl::nullopt,
          "How long calls may still take then (0 or more). Default: 5m.");
ABSL_FLAG(absl::optional<absl::Duration>, max_connection_idle, absl::nullopt,
          "After this long without a call a connection is closed (at least 1s). Default: 15m.");
ABSL_FLAG(absl::optional<absl::Duration>, keepalive_time, absl::nullopt,
          "After this long without a byte from a client with calls it is asked whether it is still"
          " there (at least 1s). Default: 60s.");
ABSL_FLAG(absl::optional<absl::Duration>, keepalive_timeout, absl::nullopt,
          "How long it may take to answer (at least 1ms). Default: 20s.");
ABSL_FLAG(absl::optional<uint32_t>, max_anonymous_streams, absl::nullopt,
          "Health/Watch calls at once on connections without a call of a tenant; one on each. "
          "Beyond that the oldest of them ends. Default: 256.");
ABSL_FLAG(absl::optional<uint32_t>, unidentified_calls_per_second, absl::nullopt,
          "Calls of nobody that a connection may make, after twice --max_streams_per_connection "
          "at once; more after a tenant's call. Beyond that the connection ends. "
          "Default: 10.");
ABSL_FLAG(absl::optional<uint32_t>, stream_resets_per_second, absl::nullopt,
          "Calls that a connection may cancel before they are answered, twenty times as many at "
          "once. Beyond that the connection ends. Default: 50.");
ABSL_FLAG(absl::optional<uint32_t>, control_frames_per_second, absl::nullopt,
          "HTTP/2 frames without a payload that a connection may send, beside those that "
          "acknowledge answers; ten times as many at once. Beyond that the connection ends. "
          "Default: 200.");
ABSL_FLAG(absl::optional<absl::Duration>, write_stall_timeout, absl::nullopt,
          "How long a client may take to accept one message; then its call ends, and with it the "
          "connection if nothing at all gets through (10ms to 1h). Default: 60s.");
ABSL_FLAG(absl::optional<absl::Duration>, default_deadline, absl::nullopt,
          "Deadline of a call that brings none (more than 0). Default: 30s.");
ABSL_FLAG(absl::optional<absl::Duration>, max_deadline, absl::nullopt,
          "Longest deadline; a longer one is cut to it (more than 0). Default: 300s.");
ABSL_FLAG(absl::optional<absl::Duration>, execution_timeout, absl::nullopt,
          "Longest a request may run on a device; a kernel that takes longer is aborted (1ms to"
          " 1h). Default: 30s.");
ABSL_FLAG(absl::optional<absl::Duration>, drain_delay, absl::nullopt,
          "After SIGTERM, how long calls are still taken while health says NOT_SERVING, so that"
          " balancers look away first (0 or more). Default: 5s.");
ABSL_FLAG(absl::optional<absl::Duration>, drain_timeout, absl::nullopt,
          "After --drain_delay, how long calls in progress may take to end (0 or more). "
          "Default: 30s.");
ABSL_FLAG(std::string, log_level, "",
          "Lowest level logged: debug, info, warning, error, off. Default: info.");
ABSL_FLAG(
    absl::optional<absl::Duration>, log_slow_requests, absl::nullopt,
    "Requests that took at least this long have a line in the log, as failed ones always have;"
    " 0: no request is slow. Default: 1s.");
ABSL_FLAG(absl::optional<uint32_t>, log_sample_one_in, absl::nullopt,
          "Of the other requests, one in this many has a line in the log (chosen by its trace); 0: "
          "none. Default: 0.");
ABSL_FLAG(absl::optional<uint32_t>, log_requests_per_second, absl::nullopt,
          "Lines about one tenant's requests per second, on average (1 to 1000000); what is left "
          "out is counted in its next line. Default: 1.");
ABSL_FLAG(bool, self_test, false,
          "Looks at drivers, libraries and limits, runs every operator on every device, measures, "
          "says what is wrong and what to do, and ends: 0 if the machine can serve, 1 if not. The "
          "first thing to run on new hardware (also as opserve doctor).");
ABSL_FLAG(std::string, self_test_format, "text", "What --self_test writes: text or json.");
ABSL_FLAG(bool, validate_config, false,
          "Checks the configuration, prints what would be in effect, and exits: 0 if it is valid, "
          "else 2.");

namespace opserve::server {
namespace {

using google::protobuf::FieldDescriptor;

constexpr char kUsage[] =
    R"(opserved lends Ascend NPUs to programs that have none: it runs gradient operators on them for
clients that call over gRPC. Without NPUs it computes on the CPU.

  opserved                                      serve this user's programs on a Unix socket
  opserved --listen=unix:/run/a.sock,127.0.0.1:8470
                                                serve on a socket and on loopback TCP
  opserved --acl_library_dir=cann               serve on this machine's NPUs
  opserved --acl_library_dir=cann --self_test   look whether they can
  opserved --config=opserved.textproto          serve as a file says, which can also name tenants

Try it from another terminal with `opserve status` and `opserve ops`. SIGTERM ends it gracefully, a
second one at once. Exit codes: 0 ended well, 1 could not start, 2 bad flags, 3 requests were cut off.
Durations are written 500ms, 10s, 5m. Flags:
)";

// Sets a field to what its flag says.
absl::Status SetField(const FieldDescriptor* field, const std::string& text,
                      google::protobuf::Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (field->is_repeated()) {
    reflection.ClearField(message, field);
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        reflection.AddString(message, field, std::string(part));
        continue;
      }
      int32_t number = 0;
      if (!absl::SimpleAtoi(part, &number)) {
        return absl::InvalidArgumentError(
            absl::StrCat(field->name(), "=", text, ": \"", part, "\" is not a number"));
      }
      reflection.AddInt32(message, field, number);
    }
    return absl::OkStatus();
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      reflection.SetBool(message, field, text == "true");
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t number = 0;
      if (!absl::SimpleAtoi(text, &number)) return absl::InternalError(field->name());
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
        reflection.SetUInt32(message, field, static_cast<uint32_t>(number));
      } else {
        reflection.SetUInt64(message, field, number);
      }
      break;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double number = 0;
      if (!absl::SimpleAtod(text, &number)) return absl::InternalError(field->name());
      reflection.SetDouble(message, field, number);
      break;
    }
    default:
      reflection.SetString(message, field, text);
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<char*> ParseFlags(int argc, char** argv) {
  // Abseil keeps the last value of a flag, so those of --listen become one first.
  constexpr absl::string_view kListen = "--listen=";
  static std::string merged;  // outlives the arguments that point to it
  std::vector<char*> arguments;
  size_t merged_at = 0;  // the program's name is no flag, so 0: none yet
  for (int i = 0; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (!absl::StartsWith(argument, kListen)) {
      arguments.push_back(argv[i]);
    } else if (merged_at == 0) {
      merged_at = arguments.size();
      arguments.push_back(argv[i]);
      merged = std::string(argument);
    } else {
      absl::StrAppend(&merged, ",", argument.substr(kListen.size()));
    }
  }
  if (merged_at != 0) arguments[merged_at] = merged.data();
  return absl::ParseCommandLine(static_cast<int>(arguments.size()), arguments.data());
}

std::string ConfigPath() { return absl::GetFlag(FLAGS_config); }

bool ShouldOnlyTestItself() { return absl::GetFlag(FLAGS_self_test); }

std::string SelfTestFormat() { return absl::GetFlag(FLAGS_self_test_format); }

bool ShouldOnlyValidate() { return absl::GetFlag(FLAGS_validate_config); }

absl::Status ApplyFlags(config::ServerConfig* values) {
  const google::protobuf::Descriptor& descriptor = *config::ServerConfig::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const absl::CommandLineFlag* flag = absl::FindCommandLineFlag(descriptor.field(i)->name());
    if (flag == nullptr || flag->CurrentValue() == flag->DefaultValue()) continue;
    absl::Status status = SetField(descriptor.field(i), flag->CurrentValue(), values);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void SetUsage() {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig usage;
  const auto is_ours = [](absl::string_view file) {
    return absl::EndsWith(file, "server/config/flags.cc");
  };
  usage.contains_helpshort_flags = is_ours;
  usage.contains_help_flags = is_ours;
  usage.version_string = [] { return absl::StrCat("opserved ", OPSERVE_VERSION, "\n"); };
  absl::SetFlagsUsageConfig(std::move(usage));
}

}  // namespace opserve::server
