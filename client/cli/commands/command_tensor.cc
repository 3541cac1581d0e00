#include "client/cli/commands/commands.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/arrays/array_file.h"
#include "client/cli/commands/handle_lookup.h"
#include "client/cli/commands/tensor_state.h"
#include "client/cli/commands/transfer_bar.h"
#include "client/cli/text/tensor_text.h"
#include "client/cli/text/time_text.h"

namespace opserve::cli {
namespace {

constexpr char kTensorFooter[] =
    R"(A resident tensor is uploaded once and stays in a device's memory, where any
number of calls use it ("opserve run ... --input NAME=tensor:HANDLE"). It lives
as long as its lease and belongs to the tenant that uploaded it.

The first digits of a handle are enough where no other begins with them.

Examples:
  opserve tensor upload x.npy --lease=1h
  opserve tensor list
  opserve run L1LossBackward --input grad_output=g.npy \
      --input self=tensor:5f1c09a2 --input target=t.npy --output out.npy
  opserve tensor renew 5f1c09a2 --lease=1h
  opserve tensor download 5f1c09a2 --output x.npy
  opserve tensor rm 5f1c09a2
  opserve tensor save state.safetensors --all

"opserve help tensor COMMAND" tells more about each.)";

constexpr char kUploadFooter[] =
    R"(Prints the handle, by which the tensor is known from now on. Files are as for
"opserve run". Tensors that one call is to use together must be on one device:
without --device, an upload goes where your other tensors are if there is room.

Examples:
  opserve tensor upload x.npy
  opserve tensor upload weights.npy:bf16 --lease=1h --device=1 --timeout=5m)";

constexpr char kDownloadFooter[] = R"(Example:
  opserve tensor download 5f1c09a2 --output x.npy)";

constexpr char kRenewFooter[] =
    R"(Leases then end after --lease from now, but never earlier than before; the
daemon refuses what is longer than it allows (--resident_max_lease). If one of
the handles is unknown, no lease changes.

Example:
  opserve tensor renew 5f1c09a2 --lease=1h)";

constexpr char kReleaseFooter[] =
    R"(Frees the memory at once instead of at the lease's end. Handles that are unknown
are passed over, and the exit code is then 1.

Example:
  opserve tensor rm 5f1c09a2 77e0b4d1)";

constexpr char kListFooter[] =
    R"(All resident tensors of your tenant, with as many digits of their handles as tell
them apart (--format=json: whole ones). A lease that is over can still be renewed
for a short while (--resident_grace).)";

// For renewals and releases; the latter use no lease.
struct LeaseArguments {
  std::vector<std::string> handles;
  absl::Duration lease = absl::ZeroDuration();  // zero: the daemon's default
};

void WriteRenewed(const std::vector<std::string>& handles, const std::vector<absl::Time>& ends,
                  Session& session) {
  auto list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < handles.size(); ++i) {
    list.push_back({{"handle", FormatHandle(handles[i])}, {"lease_end", TimeToJson(ends[i])}});
  }
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, {{"tensors", list}});
  }
  for (size_t i = 0; i < handles.size(); ++i) {
    session.terminal.out << FormatHandle(handles[i]) << "  lease end " << TimeText(ends[i]) << "\n";
  }
}

// All leases are renewed by one call, so that either all change or none.
std::optional<Failure> RunRenew(const LeaseArguments& arguments, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  auto found = FindHandles(arguments.handles, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const auto& handles = std::get<std::vector<std::string>>(found);
  const auto lease_ends = client.Renew(handles, arguments.lease, session.timeout);
  if (!lease_ends.ok()) return CallFailure(session, client, lease_ends.status());
  WriteRenewed(handles, *lease_ends, session);
  return std::nullopt;
}

std::optional<Failure> RunRelease(const LeaseArguments& arguments, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  auto found = FindHandles(arguments.handles, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const auto& handles = std::get<std::vector<std::string>>(found);
  // Unknown handles are no error of the call: the number tells how many were known.
  const absl::StatusOr<uint32_t> released = client.Release(handles, session.timeout);
  if (!released.ok()) return CallFailure(session, client, released.status());
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, {{"released", *released}});
  } else {
    session.terminal.out << "released " << *released << " of " << handles.size() << "\n";
  }
  if (*released == handles.size()) return std::nullopt;
  // A mistyped handle leaves a tensor in the device's memory, which a script must notice.
  return Failure{.status = absl::NotFoundError(absl::StrCat(handles.size() - *released, " of ",
                                                            handles.size(), " handles unknown")),
                 .hint = "their leases may have ended, or the handles are not yours"};
}

void WriteList(const std::vector<TensorInfo>& tensors, Terminal& terminal) {
  uint64_t num_bytes = 0;
  const size_t digits = DistinctDigits(tensors);
  std::vector<std::vector<std::string>> rows = {
      {"HANDLE", "TENSOR", "SIZE", "DEVICE", "AGE", "LEASE LEFT"}};
  for (const TensorInfo& listed : tensors) {
    rows.push_back({FormatHandle(listed.tensor.handle).substr(0, digits),
                    TensorText(listed.tensor.dtype, listed.tensor.shape),
                    FormatBytes(listed.num_bytes), absl::StrCat(listed.tensor.device),
                    AgeText(listed.age), LeaseText(listed.lease_left)});
    num_bytes += listed.num_bytes;
  }
  if (!tensors.empty()) terminal.out << FormatTable(rows);
  terminal.out << FormatCount(tensors.size(), "resident tensor") << ", " << FormatBytes(num_bytes)
               << "\n";
}

std::optional<Failure> RunList(Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  const absl::StatusOr<std::vector<TensorInfo>> tensors = client.ListTensors(session.timeout);
  if (!tensors.ok()) return CallFailure(session, client, tensors.status());
  // Text shows as many digits as tell the handles apart; JSON is for programs and has them whole.
  if (session.format == OutputFormat::kText) {
    WriteList(*tensors, session.terminal);
    return std::nullopt;
  }
  auto list = nlohmann::ordered_json::array();
  for (const TensorInfo& listed : *tensors) {
    list.push_back({{"handle", FormatHandle(listed.tensor.handle)},
                    {"dtype", std::string(DataTypeName(listed.tensor.dtype))},
                    {"shape", listed.tensor.shape},
                    {"bytes", listed.num_bytes},
                    {"device", listed.tensor.device},
                    {"age_seconds", absl::ToDoubleSeconds(listed.age)},
                    {"lease_end", TimeToJson(listed.tensor.lease_end)}});
  }
  WriteJson(session.terminal.out, {{"tensors", list}});
  return std::nullopt;
}

struct TensorUpload {
  std::string file;                             // as ReadArrayArgument takes it
  absl::Duration lease = absl::ZeroDuration();  // zero: the daemon's default
  std::optional<uint32_t> device = std::nullopt;
};

struct TensorDownload {
  std::string handle;  // as FormatHandle writes it
  std::string file;    // "-": standard output
};

void WriteUploaded(const ResidentTensor& tensor, uint64_t num_bytes, Session& session) {
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, ResidentTensorToJson(tensor, num_bytes));
  }
  WriteResidentTensor(tensor, num_bytes, session.terminal.out);
}

// Beside an array on standard output the report goes to standard error.
void WriteDownloaded(const Result& tensor, const std::string& file, Session& session) {
  if (session.format == OutputFormat::kJson) {
    // JSON and an array cannot share standard output; CheckArrayOutput has refused that.
    return WriteJson(session.terminal.out, {{"dtype", std::string(DataTypeName(tensor.dtype()))},
                                            {"shape", tensor.shape()},
                                            {"bytes", tensor.num_bytes()},
                                            {"file", file}});
  }
  ReportsBeside(file == kStandardOutput, session.terminal).out
      << SizedTensorText(tensor.dtype(), tensor.shape(), tensor.num_bytes()) << "\nwritten to "
      << file << "\n";
}

// Uploads and downloads show a progress bar if they take long.
std::optional<Failure> RunUpload(const TensorUpload& upload, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  // After Connect, which tells a malformed target before a large file is read.
  const absl::StatusOr<Tensor> tensor =
      ReadArrayArgument(upload.file, /*usual_name=*/"", session.terminal.input);
  if (!tensor.ok()) return UsageFailure(tensor.status(), "see \"opserve help tensor upload\"");

  // The bar goes before anything is written to the terminal.
  absl::StatusOr<ResidentTensor> resident;
  {
    ProgressBar bar(session.terminal, "upload", absl::Now());
    resident = client.Upload(*tensor, {.lease = upload.lease,
                                       .device = upload.device,
                                       .timeout = session.timeout,
                                       .on_progress = ShowOn(bar)});
  }
  if (!resident.ok()) return CallFailure(session, client, resident.status());
  WriteUploaded(*resident, tensor->storage().size(), session);
  return std::nullopt;
}

std::optional<Failure> RunDownload(const TensorDownload& download, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  // Before the download, which may take long.
  absl::Status status = CheckOutputName(download.file);
  if (download.file == kStandardOutput) status.Update(CheckArrayOutput(session));
  if (!status.ok()) return UsageFailure(status, "see \"opserve help tensor download\"");
  auto found = FindHandles({download.handle}, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const std::string& handle = std::get<std::vector<std::string>>(found).front();

  // Written only when it is whole: a broken download leaves no file.
  absl::StatusOr<Result> result;
  {
    ProgressBar bar(session.terminal, "download", absl::Now());
    result = client.Download(handle, {.timeout = session.timeout, .on_progress = ShowOn(bar)});
  }
  if (!result.ok()) return CallFailure(session, client, result.status());
  status = WriteArray(download.file, *result, session.terminal.out);
  if (!status.ok()) return UsageFailure(status);
  WriteDownloaded(*result, download.file, session);
  return std::nullopt;
}

void AddUpload(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<TensorUpload>();
  CLI::App* upload = tensor->add_subcommand("upload", "Put an array into a device's memory");
  upload
      ->add_option("FILE", arguments->file,
                   "The array: FILE.npy[:bf16], FILE.npz:ARRAY, FILE.safetensors:ARRAY, or - for a "
                   ".npy file that another program writes to this one")
      ->required();
  AddLeaseFlag(upload, &arguments->lease);
  upload->add_option("--device", arguments->device, "Number of the device to be on")
      ->type_name("DEVICE");
  upload->footer(kUploadFooter);
  upload->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunUpload(*arguments, session); };
  });
}

void AddList(CLI::App* tensor, Command* command) {
  CLI::App* list = tensor->add_subcommand("list", "Show your resident tensors");
  list->footer(kListFooter);
  list->callback([command] { *command = RunList; });
}

void AddDownload(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<TensorDownload>();
  CLI::App* download = tensor->add_subcommand("download", "Write a resident tensor to a file");
  download->add_option("HANDLE", arguments->handle, "The tensor")->required();
  download->add_option("--output", arguments->file, "Where to write it; - for standard output")
      ->type_name("FILE.npy|-")
      ->required();
  download->footer(kDownloadFooter);
  download->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunDownload(*arguments, session); };
  });
}

void AddRenew(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<LeaseArguments>();
  CLI::App* renew = tensor->add_subcommand("renew", "Keep resident tensors for longer");
  renew->add_option("HANDLE", arguments->handles, "The tensors")->required();
  AddLeaseFlag(renew, &arguments->lease);
  renew->footer(kRenewFooter);
  renew->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunRenew(*arguments, session); };
  });
}

void AddRelease(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<LeaseArguments>();
  CLI::App* release = tensor->add_subcommand("release", "Free resident tensors");
  release->alias("rm");
  release->add_option("HANDLE", arguments->handles, "The tensors")->required();
  release->footer(kReleaseFooter);
  release->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunRelease(*arguments, session); };
  });
}

}  // namespace

void AddTensorCommand(CLI::App& app, Command* command) {
  CLI::App* tensor = app.add_subcommand("tensor", "Keep tensors in a device's memory");
  tensor->require_subcommand(1);
  AddUpload(tensor, command);
  AddList(tensor, command);
  AddDownload(tensor, command);
  AddRenew(tensor, command);
  AddRelease(tensor, command);
  AddSave(tensor, command);
  AddLoad(tensor, command);
  tensor->footer(kTensorFooter);  // after the commands, which would inherit it
}

}  // namespace opserve::cli
