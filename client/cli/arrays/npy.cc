#include "client/cli/arrays/npy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/arrays/npy_header.h"
#include "client/cpp/tensor_layout.h"
#include "proto/dtypes/dtype.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxRank = 8;
constexpr size_t kDataAlignment = 64;  // of the data in a file, as NumPy has it

// Names of two bytes that are no dtype of their own, but may hold bfloat16.
constexpr std::array<absl::string_view, 3> kTwoByteTypes = {"|V2", "V2", "<u2"};

absl::Status Unusable(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::Status SystemError(const std::string& path) { return absl::ErrnoToStatus(errno, path); }

absl::StatusOr<DataType> DataTypeOf(absl::string_view descr, NpyReading reading) {
  const DtypeFacts* const facts = FindDtypeByNpy(descr);
  // Not '<f2': such a file says that its elements are FLOAT16.
  if (reading == NpyReading::kAsBf16) {
    const bool is_two_bytes =
        std::find(kTwoByteTypes.begin(), kTwoByteTypes.end(), descr) != kTwoByteTypes.end();
    if (is_two_bytes || (facts != nullptr && facts->dtype == kBf16)) return kBf16;
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype '", descr, "' cannot be read as bf16: that takes uint16 or a void of 2 bytes"));
  }
  if (facts != nullptr) return facts->dtype;
  if (absl::StartsWith(descr, ">f") || absl::StartsWith(descr, ">i")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dtype '", descr, "' is big-endian; save array.astype('<", descr.substr(1), "')"));
  }
  absl::string_view advice;
  if (descr == "<u2" || descr == "|V2") advice = " (if it holds bfloat16: append :bf16)";
  return absl::InvalidArgumentError(
      absl::StrCat("dtype '", descr, "' is not ", DtypeNamesIn(&DtypeFacts::torch), advice));
}

std::vector<int64_t> FortranStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides;
  int64_t stride = 1;
  // The first axis varies fastest.
  for (const int64_t extent : shape) {
    strides.push_back(stride);
    // An empty tensor's other extents may be so large that this wraps; no element is looked for.
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(extent));
  }
  return strides;
}

// Reads magic, version and header; leaves *file at the first byte of data.
absl::StatusOr<NpyHeader> ReadHeader(absl::string_view* file) {
  if (file->size() < kMagic.size() + 2 || !absl::ConsumePrefix(file, kMagic)) {
    return absl::InvalidArgumentError("not a .npy file");
  }
  const int version = static_cast<uint8_t>(file->front());
  if (version < 1 || version > 3) {
    return absl::InvalidArgumentError(absl::StrCat(".npy version ", version, " is not supported"));
  }
  file->remove_prefix(2);
  // Version 1 has a length of two bytes, later ones of four.
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t header_bytes = 0;
  if (file->size() < length_bytes) return absl::InvalidArgumentError("cut off in the header");
  for (size_t i = 0; i < length_bytes; ++i) {
    header_bytes |= size_t{static_cast<uint8_t>((*file)[i])} << (8 * i);
  }
  file->remove_prefix(length_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a header of ", header_bytes, " bytes; at most ", kMaxHeaderBytes));
  }
  if (file->size() < header_bytes) return absl::InvalidArgumentError("cut off in the header");
  const absl::string_view header = file->substr(0, header_bytes);
  file->remove_prefix(header_bytes);
  return ParseNpyHeader(header);
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(const OwnedBytes& file, NpyReading reading) {
  absl::string_view data(reinterpret_cast<const char*>(file.owner.get()), file.size);
  OPSERVE_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(&data));
  if (header.shape.size() > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", header.shape.size(), "; at most ", kMaxRank));
  }
  OPSERVE_ASSIGN_OR_RETURN(const DataType dtype, DataTypeOf(header.descr, reading));
  const std::optional<uint64_t> num_bytes = ContiguousBytes(dtype, header.shape);
  if (!num_bytes) return absl::InvalidArgumentError("the shape has too many elements");
  // Exactly: a file with bytes left over was cut wrongly or has another shape than it says.
  if (data.size() != *num_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("holds ", data.size(), " bytes of data, but its shape takes ", *num_bytes));
  }
  Tensor tensor = Tensor::FromBytes(dtype, header.shape,
                                    file.span().subspan(file.size - data.size()), file.owner);
  return header.fortran_order ? tensor.WithStrides(FortranStrides(header.shape)) : tensor;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, NpyReading reading) {
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes file, ReadFileBytes(path));
  absl::StatusOr<Tensor> tensor = ParseNpy(file, reading);
  if (!tensor.ok()) return Unusable(path, tensor.status().message());
  return tensor;
}

void WriteNpy(std::ostream& stream, const Result& result) {
  std::string header = FormatNpyHeader(
      {.descr = std::string(FindDtype(result.dtype())->npy[0]), .shape = result.shape()});
  // Magic, version, length and the line break count for the alignment.
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kDataAlignment - unpadded % kDataAlignment) % kDataAlignment, ' ');
  header.push_back('\n');
  // Version 1.0. The header of a tensor of at most 8 axes is far shorter than its 65535 bytes.
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(header.size() & 0xff),
                                                  static_cast<char>(header.size() >> 8)};

  const absl::Span<const std::byte> bytes = result.bytes();
  stream << kMagic;
  stream.write(version_and_length.data(), version_and_length.size());
  stream << header;
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

absl::Status WriteNpy(const std::string& path, const Result& result) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return SystemError(path);
  WriteNpy(file, result);
  file.close();
  return file ? absl::OkStatus() : SystemError(path);
}

}  // namespace opserve::cli
