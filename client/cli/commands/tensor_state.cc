#include "client/cli/commands/tensor_state.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/arrays/safetensors.h"
#include "client/cli/commands/handle_lookup.h"
#include "client/cli/commands/transfer_bar.h"
#include "client/cli/text/tensor_text.h"
#include "client/cli/text/time_text.h"

namespace opserve::cli {
namespace {

constexpr char kSaveFooter[] =
    R"(Writes a .safetensors file with a consistent copy: all tensors as they are at one
moment, between two calls. Calls that use or replace them go on meanwhile.

A tensor's name in the file is its handle, unless NAME= stands before it. A file
that is there is replaced when the new one is complete.

Examples:
  opserve tensor save state.safetensors weight=5f1c09a2 bias=77e0b4d1
  opserve tensor save state.safetensors --all --timeout=5m)";

constexpr char kLoadFooter[] =
    R"(Uploads the tensors of a .safetensors file, or those that are named, and prints
their new handles: all of them or, on an error, none. The file may be anybody's:
nothing in it but dtypes, shapes and elements is used, and names are only shown.

Examples:
  opserve tensor load state.safetensors --lease=1h
  opserve tensor load state.safetensors weight bias --device=1)";

constexpr char kEnding[] = ".safetensors";

struct Saving {
  std::string file;
  std::vector<std::string> tensors;  // [NAME=]HANDLE
  bool is_all = false;
};

struct Loading {
  std::string file;
  std::vector<std::string> names;               // none: all of the file
  absl::Duration lease = absl::ZeroDuration();  // zero: the daemon's default
  std::optional<uint32_t> device = std::nullopt;
};

absl::Status CheckEnding(const std::string& file) {
  if (absl::EndsWith(file, kEnding)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file, ": several tensors make a ", kEnding,
                                                 " file; choose a name that ends so"));
}

// What a name may do to a terminal is up to the file's author.
std::string Shown(const std::string& name) { return absl::Utf8SafeCEscape(name); }

// The names to save tensors under, and their handles.
struct Chosen {
  std::vector<std::string> names;
  std::vector<std::string> handles;
};

std::variant<Chosen, Failure> ChooseAll(Client& client, const Session& session) {
  const auto tensors = client.ListTensors(session.timeout);
  if (!tensors.ok()) return CallFailure(session, client, tensors.status());
  Chosen chosen;
  // A handle is a name that no other tensor has.
  for (const TensorInfo& listed : *tensors) {
    chosen.names.push_back(FormatHandle(listed.tensor.handle));
    chosen.handles.push_back(listed.tensor.handle);
  }
  return chosen;
}

// The names wait for the handles: a tensor without a name of its own gets its whole handle.
std::variant<Chosen, Failure> Choose(const std::vector<std::string>& tensors, Client& client,
                                     const Session& session) {
  Chosen chosen;
  std::vector<std::string> texts;
  for (const std::string& tensor : tensors) {
    const size_t end = tensor.rfind('=');  // no handle has one
    chosen.names.push_back(end == std::string::npos ? "" : tensor.substr(0, end));
    texts.push_back(end == std::string::npos ? tensor : tensor.substr(end + 1));
  }
  auto found = FindHandles(texts, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  chosen.handles = std::get<std::vector<std::string>>(std::move(found));
  // Distinct before the snapshot: the file can have a name once.
  absl::flat_hash_set<std::string> distinct;
  for (size_t i = 0; i < chosen.names.size(); ++i) {
    if (chosen.names[i].empty()) chosen.names[i] = FormatHandle(chosen.handles[i]);
    if (!distinct.insert(chosen.names[i]).second) {
      return UsageFailure(absl::InvalidArgumentError(
          absl::StrCat("two tensors with the name \"", Shown(chosen.names[i]), "\"")));
    }
  }
  return chosen;
}

void WriteSaved(const std::vector<std::pair<std::string, Result>>& tensors,
                const std::vector<uint64_t>& versions, const std::string& file, Session& session) {
  uint64_t num_bytes = 0;
  auto list = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {{"NAME", "TENSOR", "SIZE", "VERSION"}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    num_bytes += tensor.num_bytes();
    list.push_back({{"name", name},
                    {"dtype", std::string(DataTypeName(tensor.dtype()))},
                    {"shape", tensor.shape()},
                    {"bytes", tensor.num_bytes()},
                    {"version", versions[i]}});
    rows.push_back({Shown(name), TensorText(tensor.dtype(), tensor.shape()),
                    FormatBytes(tensor.num_bytes()), absl::StrCat(versions[i])});
  }
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, {{"tensors", list}, {"file", file}});
  }
  session.terminal.out << FormatTable(rows) << FormatCount(tensors.size(), "tensor") << ", "
                       << FormatBytes(num_bytes) << "\nwritten to " << file << "\n";
}

// One Snapshot call for all tensors: copies of single downloads would be of different moments.
std::optional<Failure> RunSave(const Saving& saving, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  absl::Status status = CheckEnding(saving.file);
  // Either names or --all, not both and not none.
  if (saving.is_all != saving.tensors.empty()) {
    status.Update(absl::InvalidArgumentError("name the tensors to save, or give --all"));
  }
  if (!status.ok()) return UsageFailure(status, "see \"opserve help tensor save\"");
  auto choice =
      saving.is_all ? ChooseAll(client, session) : Choose(saving.tensors, client, session);
  if (auto* failure = std::get_if<Failure>(&choice)) return *failure;
  Chosen& chosen = std::get<Chosen>(choice);

  absl::StatusOr<std::vector<SnapshotTensor>> snapshot;
  {
    ProgressBar bar(session.terminal, "save", absl::Now());
    snapshot =
        client.Snapshot(chosen.handles, {.timeout = session.timeout, .on_progress = ShowOn(bar)});
  }
  if (!snapshot.ok()) return CallFailure(session, client, snapshot.status());
  std::vector<std::pair<std::string, Result>> tensors;
  std::vector<uint64_t> versions;
  for (size_t i = 0; i < snapshot->size(); ++i) {
    tensors.emplace_back(std::move(chosen.names[i]), std::move((*snapshot)[i].tensor));
    versions.push_back((*snapshot)[i].version);
  }
  status = WriteSafetensors(saving.file, tensors);
  if (!status.ok()) return UsageFailure(status);
  WriteSaved(tensors, versions, saving.file, session);
  return std::nullopt;
}

// A tensor of a file that is on a device now.
struct Loaded {
  std::string name;
  ResidentTensor tensor;
  uint64_t num_bytes = 0;
};

void WriteLoaded(const std::vector<Loaded>& loaded, Session& session) {
  auto list = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "HANDLE", "TENSOR", "SIZE", "DEVICE", "LEASE END"}};
  for (const Loaded& one : loaded) {
    auto json = ResidentTensorToJson(one.tensor, one.num_bytes);
    json["name"] = one.name;
    list.push_back(std::move(json));
    rows.push_back({Shown(one.name), FormatHandle(one.tensor.handle),
                    TensorText(one.tensor.dtype, one.tensor.shape), FormatBytes(one.num_bytes),
                    absl::StrCat(one.tensor.device), TimeText(one.tensor.lease_end)});
  }
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, {{"tensors", list}});
  }
  session.terminal.out << FormatTable(rows);
}

// The failure of tensor `name`, after which none of `loaded` stays.
Failure GiveBack(const std::vector<Loaded>& loaded, const std::string& name, Failure failure,
                 Client& client, const Session& session) {
  constexpr size_t kMostHandles = 1024;  // of one release
  std::vector<std::string> handles;
  for (size_t i = 0; i < loaded.size(); ++i) {
    handles.push_back(loaded[i].tensor.handle);
    if (handles.size() < kMostHandles && i + 1 < loaded.size()) continue;
    // If the daemon cannot be told, their leases end them.
    client.Release(handles, session.timeout).IgnoreError();
    handles.clear();
  }
  failure.status = absl::Status(
      failure.status.code(),
      absl::StrCat("\"", Shown(name), "\", and so nothing: ", failure.status.message()));
  return failure;
}

std::optional<Failure> RunLoad(const Loading& loading, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  const auto file = SafetensorsFile::Open(loading.file);
  if (!file.ok()) return UsageFailure(file.status(), "see \"opserve help tensor load\"");

  // A name that the file lacks is found only by Read, after uploads that are then given back.
  const std::vector<std::string> names = loading.names.empty() ? file->names() : loading.names;
  std::vector<Loaded> loaded;
  {  // the bar ends before the table begins
    ProgressBar bar(session.terminal, "load", absl::Now());
    for (const std::string& name : names) {
      // One tensor at a time: the file may be larger than memory.
      const absl::StatusOr<Tensor> tensor = file->Read(name);
      if (!tensor.ok()) {
        return GiveBack(loaded, name, UsageFailure(tensor.status()), client, session);
      }
      auto resident = client.Upload(
          *tensor, {.lease = loading.lease, .device = loading.device, .timeout = session.timeout});
      if (!resident.ok()) {
        return GiveBack(loaded, name, CallFailure(session, client, resident.status()), client,
                        session);
      }
      loaded.push_back({name, *std::move(resident), tensor->storage().size()});
      bar.Update(static_cast<double>(loaded.size()) / static_cast<double>(names.size()),
                 FormatCount(loaded.size(), "tensor"), absl::Now());
    }
  }
  WriteLoaded(loaded, session);
  return std::nullopt;
}

}  // namespace

void AddSave(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<Saving>();
  CLI::App* save = tensor->add_subcommand("save", "Write resident tensors of one moment to a file");
  save->add_option("FILE", arguments->file, "Where to write them: FILE.safetensors")->required();
  save->add_option("HANDLE", arguments->tensors, "The tensors: [NAME=]HANDLE");
  save->add_flag("--all", arguments->is_all, "All resident tensors of your tenant");
  save->footer(kSaveFooter);
  save->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunSave(*arguments, session); };
  });
}

void AddLoad(CLI::App* tensor, Command* command) {
  auto arguments = std::make_shared<Loading>();
  CLI::App* load = tensor->add_subcommand("load", "Put the tensors of a file on a device");
  load->add_option("FILE", arguments->file, "A .safetensors file")->required();
  load->add_option("NAME", arguments->names, "Tensors of the file; all, if none is named");
  AddLeaseFlag(load, &arguments->lease);
  load->add_option("--device", arguments->device, "Number of the device to be on")
      ->type_name("DEVICE");
  load->footer(kLoadFooter);
  load->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunLoad(*arguments, session); };
  });
}

}  // namespace opserve::cli
