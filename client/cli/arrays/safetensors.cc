#include "client/cli/arrays/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

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

absl::Status NotSuchAFile(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("not a .safetensors file: ", why));
}

struct TensorList {
  Json tensors;
  uint64_t data_offset = 0;  // of the elements in the file
};

absl::StatusOr<TensorList> ReadTensorList(const std::string& path) {
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes length, ReadFileBytes(path, 0, kLengthBytes));
  uint64_t header_bytes = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    header_bytes |= std::to_integer<uint64_t>(length.owner[i]) << (8 * i);
  }
  if (header_bytes > kMaxJsonBytes) {
    return NotSuchAFile(
        absl::StrCat("a header of ", header_bytes, " bytes; at most ", kMaxJsonBytes));
  }
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes text, ReadFileBytes(path, kLengthBytes, header_bytes));
  const auto* begin = reinterpret_cast<const char*>(text.owner.get());
  TensorList list{.tensors = Json::parse(begin, begin + text.size, /*cb=*/nullptr,
                                         /*allow_exceptions=*/false),
                  .data_offset = kLengthBytes + header_bytes};
  if (!list.tensors.is_object()) return NotSuchAFile("its header is no JSON object");
  return list;
}

// The header's description of one tensor.
struct Entry {
  DataType dtype;
  std::vector<int64_t> shape = {};
  uint64_t begin = 0;
  uint64_t end = 0;
};

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
  if (bytes != entry.end - entry.begin) {
    return absl::InvalidArgumentError(absl::StrCat("has ", entry.end - entry.begin,
                                                   " bytes, but its shape takes ",
                                                   bytes ? absl::StrCat(*bytes) : "too many"));
  }
  return entry;
}

absl::StatusOr<Tensor> ReadEntry(const std::string& path, const TensorList& list,
                                 const Json& json) {
  OPSERVE_ASSIGN_OR_RETURN(Entry entry, ParseEntry(json));
  if (entry.begin > UINT64_MAX - list.data_offset) return NotSuchAFile("cut off");
  OPSERVE_ASSIGN_OR_RETURN(
      const OwnedBytes bytes,
      ReadFileBytes(path, list.data_offset + entry.begin, entry.end - entry.begin));
  return Tensor::FromBytes(entry.dtype, std::move(entry.shape), bytes.span(), bytes.owner);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListSafetensors(const std::string& path) {
  OPSERVE_ASSIGN_OR_RETURN(const TensorList list, ReadTensorList(path));
  std::vector<std::string> names;
  for (const auto& [name, entry] : list.tensors.items()) {
    if (name != kMetadata) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Tensor> ReadSafetensors(const std::string& path, const std::string& name) {
  OPSERVE_ASSIGN_OR_RETURN(const TensorList list, ReadTensorList(path));
  const auto found = list.tensors.find(name);
  if (name == kMetadata || found == list.tensors.end()) {
    return absl::NotFoundError(absl::StrCat(path, ": no tensor \"", name, "\""));
  }
  absl::StatusOr<Tensor> tensor = ReadEntry(path, list, *found);
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat(path, ": \"", name, "\": ", tensor.status().message()));
}

}  // namespace opserve::cli
