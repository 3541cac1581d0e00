#include "client/cli/arrays/safetensors.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/arrays/file_bytes.h"
#include "client/cpp/tensor_layout.h"
#include "nlohmann/json.hpp"
#include "proto/dtypes/dtype.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxJsonBytes = 100'000'000;  // as the format has it
constexpr char kMetadata[] = "__metadata__";     // of the file, not a tensor
constexpr size_t kMaxTensorRank = 8;
constexpr size_t kAlignment = 8;

absl::Status NotSuchAFile(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a .safetensors file: ", why));
}

// The header's description of one tensor.
struct Entry {
  DataType dtype;
  std::vector<int64_t> shape = {};
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Negative numbers and fractions are none, whatever JSON calls them.
std::optional<uint64_t> Number(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  return json.get<uint64_t>();
}

absl::StatusOr<DataType> ParseTypeName(const Json& json) {
  if (json.is_string()) {
    const DtypeFacts* const facts =
        FindDtypeBy(&DtypeFacts::safetensors, json.get_ref<const std::string&>());
    if (facts != nullptr) return facts->dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("dtype ", json.dump(-1, ' ', false, Json::error_handler_t::replace), " is not ",
                   DtypeNamesIn(&DtypeFacts::safetensors)));
}

absl::StatusOr<Entry> ParseEntry(const Json& json) {
  const absl::Status incomplete = absl::InvalidArgumentError("lacks dtype, shape or data_offsets");
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return incomplete;
  }
  OPSERVE_ASSIGN_OR_RETURN(const DataType dtype, ParseTypeName(json["dtype"]));
  Entry entry{.dtype = dtype};
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2) return incomplete;
  if (shape.size() > kMaxTensorRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), "; at most ", kMaxTensorRank));
  }
  for (const Json& extent : shape) {
    const std::optional<uint64_t> number = Number(extent);
    if (!number || *number > INT64_MAX) return absl::InvalidArgumentError("an extent is no extent");
    entry.shape.push_back(static_cast<int64_t>(*number));
  }
  const std::optional<uint64_t> begin = Number(offsets[0]);
  const std::optional<uint64_t> end = Number(offsets[1]);
  if (!begin || !end || *begin > *end) return incomplete;
  entry.begin = *begin;
  entry.end = *end;
  const std::optional<uint64_t> bytes = ContiguousBytes(entry.dtype, entry.shape);
  // Places are checked against the shape here, and against the file when it is read.
  if (bytes != entry.end - entry.begin) {
    return absl::InvalidArgumentError(absl::StrCat("has ", entry.end - entry.begin,
                                                   " bytes, but its shape takes ",
                                                   bytes ? absl::StrCat(*bytes) : "too many"));
  }
  return entry;
}

absl::Status CheckName(const std::string& name) {
  // A name that is no UTF-8 comes back changed from JSON, which is how it is found.
  const Json text = Json::parse(Json(name).dump(-1, ' ', false, Json::error_handler_t::replace));
  if (name != kMetadata && text == name) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text.get_ref<const std::string&>(), "\" cannot name a tensor"));
}

// The header: its length and the JSON, padded so that elements of any dtype begin aligned.
absl::StatusOr<std::string> FormatHeader(absl::Span<const std::pair<std::string, Result>> tensors) {
  Json list = Json::object();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    OPSERVE_RETURN_IF_ERROR(CheckName(name));
    const uint64_t end = offset + tensor.num_bytes();
    list[name] = {{"dtype", std::string(FindDtype(tensor.dtype())->safetensors)},
                  {"shape", tensor.shape()},
                  {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = list.dump();
  // The header ends at a multiple of 8, so the first element is aligned for any dtype.
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string header;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header.push_back(static_cast<char>(text.size() >> (8 * i)));
  }
  return header + text;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes length, ReadFileBytes(path, 0, kLengthBytes));
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= std::to_integer<uint64_t>(length.owner[i]) << (8 * i);
  }
  // Before the header is read: its length is the file's word.
  if (header_bytes > kMaxJsonBytes) {
    return NotSuchAFile(
        absl::StrCat("a header of ", header_bytes, " bytes; at most ", kMaxJsonBytes));
  }
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes text, ReadFileBytes(path, kLengthBytes, header_bytes));
  const auto* begin = reinterpret_cast<const char*>(text.owner.get());
  SafetensorsFile file;
  file.path_ = path;
  file.tensors_ = Json::parse(begin, begin + text.size, /*cb=*/nullptr,
                              /*allow_exceptions=*/false);
  file.data_offset_ = kLengthBytes + header_bytes;
  if (!file.tensors_.is_object()) return NotSuchAFile("its header is no JSON object");
  return file;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_.items()) {
    if (name != kMetadata) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Tensor> SafetensorsFile::Read(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (name == kMetadata || found == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat(path_, ": no tensor \"", name, "\""));
  }
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    OPSERVE_ASSIGN_OR_RETURN(Entry entry, ParseEntry(*found));
    // The sum of two numbers of the file.
    if (entry.begin > UINT64_MAX - data_offset_) return NotSuchAFile("cut off");
    OPSERVE_ASSIGN_OR_RETURN(
        const OwnedBytes bytes,
        ReadFileBytes(path_, data_offset_ + entry.begin, entry.end - entry.begin));
    return Tensor::FromBytes(entry.dtype, std::move(entry.shape), bytes.span(), bytes.owner);
  };
  absl::StatusOr<Tensor> tensor = read();
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat(path_, ": \"", name, "\": ", tensor.status().message()));
}

absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const std::pair<std::string, Result>> tensors) {
  OPSERVE_ASSIGN_OR_RETURN(const std::string header, FormatHeader(tensors));
  // Beside the target, so that the rename stays in one file system and replaces at once.
  const std::string unfinished = absl::StrCat(path, ".unfinished");
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  if (!file) return absl::ErrnoToStatus(errno, unfinished);
  file << header;
  for (const auto& [name, tensor] : tensors) {
    const absl::Span<const std::byte> bytes = tensor.bytes();
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  file.close();
  if (file && std::rename(unfinished.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(errno, path);
  std::remove(unfinished.c_str());
  return status;
}

}  // namespace opserve::cli
