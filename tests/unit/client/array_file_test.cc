#include "client/cli/arrays/array_file.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/arrays/file_bytes.h"
#include "client/cpp/tensor_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/dtypes/dtype.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string InData(const std::string& name) {
  return absl::StrCat(OPSERVE_TEST_DATA_DIR, "/arrays/", name);
}

absl::StatusOr<Tensor> Read(const std::string& name, const std::string& usual_name = "") {
  return ReadArrayArgument(InData(name), usual_name);
}

// The elements as T, in row-major order.
template <typename T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  const Tensor plain = *MakeContiguous(tensor);
  std::vector<T> elements(plain.storage().size() / sizeof(T));
  std::memcpy(elements.data(), plain.storage().data(), plain.storage().size());
  return elements;
}

TEST(ArrayFileTest, ArraysAreFoundByName) {
  struct Case {
    const char* argument;
    const char* usual_name;
    DataType dtype;
    std::vector<int64_t> shape;
  };
  const Case kCases[] = {
      {"f2.npy", "", kFloat16, {2, 3}},
      {"void2.npy:bf16", "", kBf16, {2}},
      {"stored.npz:self", "", kFloat, {2, 3}},
      {"stored.npz:target", "self", kDouble, {2, 3}},
      {"stored.npz", "self", kFloat, {2, 3}},
      {"stored.npz:bits:bf16", "", kBf16, {2}},
      {"compressed.npz:target", "", kDouble, {2, 3}},
      {"single.npz", "self", kFloat, {}},
      {"single.npz:any", "", kFloat, {}},
      {"several.safetensors:self", "", kFloat, {2, 3}},
      {"several.safetensors", "self", kFloat, {2, 3}},
      {"several.safetensors:half", "", kFloat16, {2, 3}},
      {"several.safetensors:bf16", "bf16", kBf16, {2}},
      {"several.safetensors:f8", "", kDouble, {}},
      {"other_dtype.safetensors:self", "", kInt32, {2, 3}},
      {"i4.npy", "", kInt32, {2, 3}},
  };
  for (const Case& c : kCases) {
    const absl::StatusOr<Tensor> tensor = Read(c.argument, c.usual_name);
    if (absl::string_view(c.argument) == "several.safetensors:bf16") {
      // ":bf16" is how to read, and this file says so itself.
      EXPECT_THAT(tensor.status().message(), HasSubstr("leave :bf16 out"));
      continue;
    }
    ASSERT_TRUE(tensor.ok()) << c.argument << ": " << tensor.status();
    EXPECT_EQ(tensor->dtype(), c.dtype) << c.argument;
    EXPECT_EQ(tensor->shape(), c.shape) << c.argument;
  }
}

TEST(ArrayFileTest, ElementsAreInTheOrderOfTheArray) {
  for (const char* archive : {"stored.npz", "compressed.npz"}) {
    EXPECT_THAT(ElementsOf<float>(*Read(absl::StrCat(archive, ":self"))),
                ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(ElementsOf<double>(*Read(absl::StrCat(archive, ":target"))),
                ElementsAre(0, 1, 2, 3, 4, 5));
  }
  EXPECT_THAT(ElementsOf<float>(*Read("several.safetensors:self")), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(ElementsOf<double>(*Read("several.safetensors:f8")), ElementsAre(0.1));
}

TEST(ArrayFileTest, WhatCannotBeUsedIsRefused) {
  struct Case {
    const char* argument;
    absl::StatusCode code;
    const char* complaint;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  constexpr auto kNone = absl::StatusCode::kNotFound;
  const Case kCases[] = {
      {"none.npz", kNone, "none.npz: no such file"},
      {"none.safetensors:self", kNone, "none.safetensors: no such file"},
      {"stored.npz:sefl", kNone, "unknown array \"sefl\"; did you mean self?"},
      {"several.safetensors:sefl", kNone, "unknown array \"sefl\"; did you mean self?"},
      {"several.safetensors:__metadata__", kNone, "unknown array"},
      {"stored.npz", kInvalid, "which of its 3 arrays? Append :NAME; there are self, target, bits"},
      {"several.safetensors", kInvalid, "which of its 4 arrays? Append :NAME"},
      {"stored.npz:bits", kInvalid, "bits.npy: dtype '<u2' is not int8"},
      {"other_shape.safetensors:self", kInvalid, "has 24 bytes, but its shape takes 32"},
      {"beyond_the_end.safetensors", kInvalid, "cut off"},
      {"no_place.safetensors:self", kInvalid, "\"self\": lacks dtype, shape or data_offsets"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = Read(c.argument).status();
    EXPECT_EQ(status.code(), c.code) << c.argument << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(c.complaint)) << c.argument;
  }
}

TEST(StreamBytesTest, AreReadToTheEndUpToALimit) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 20) + 1}) {
    const std::string text(size, 'a');
    std::istringstream stream(text);
    const absl::StatusOr<OwnedBytes> bytes = ReadStreamBytes(stream);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes->owner.get()), bytes->size), text);
  }
  std::istringstream stream(std::string(101, 'a'));
  EXPECT_EQ(ReadStreamBytes(stream, /*limit=*/100).status().message(),
            "standard input: more than 100 bytes; give a file instead");
}

class DamagedFileTest : public testing::Test {
 protected:
  // The status of reading `contents` as a file with that ending.
  absl::Status Read(const std::string& contents, const std::string& ending) {
    const std::string path = directory_.File("damaged" + ending);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
    return ReadArrayArgument(path, "self").status();
  }
  static std::string Contents(const std::string& name) {
    std::ifstream file(InData(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
};

TEST_F(DamagedFileTest, FilesThatAreCutOffAreRefused) {
  for (const char* ending : {".npz", ".safetensors"}) {
    const std::string whole =
        Contents(ending == std::string(".npz") ? "compressed.npz" : "several.safetensors");
    ASSERT_TRUE(Read(whole, ending).ok());
    // The tensors behind "self" may be missing.
    const size_t end = whole.size() - (ending == std::string(".npz") ? 0 : 24);
    for (size_t size = 0; size < end; size += 1 + size / 16) {
      const absl::Status status = Read(whole.substr(0, size), ending);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size << ": " << status;
    }
  }
}

TEST_F(DamagedFileTest, ChangedBytesAreNoticedOrHarmless) {
  const std::string whole = Contents("compressed.npz");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    Read(changed, ".npz").IgnoreError();
  }
}

TEST_F(DamagedFileTest, DtypesOfSafetensorsAreKnownOrNamed) {
  const auto file = [](const std::string& dtype, size_t bytes) {
    const std::string header = absl::StrCat(R"({"self":{"dtype":")", dtype,
                                            R"(","shape":[1],"data_offsets":[0,)", bytes, "]}}");
    return absl::StrCat(std::string(1, static_cast<char>(header.size())), std::string(7, '\0'),
                        header, std::string(bytes, '\1'));
  };
  for (const DtypeFacts& facts : AllDtypes()) {
    const absl::Status status = Read(
        file(std::string(facts.safetensors), static_cast<size_t>(facts.bytes)), ".safetensors");
    EXPECT_TRUE(status.ok()) << facts.name << ": " << status;
  }
  EXPECT_THAT(
      Read(file("U32", 4), ".safetensors").message(),
      HasSubstr(
          "\"self\": dtype \"U32\" is not I8, U8, BOOL, F16, BF16, I16, F32, I32, F64 or I64"));
}

TEST_F(DamagedFileTest, HeadersOfSafetensorsAreBounded) {
  EXPECT_THAT(Read(std::string(8, '\xff'), ".safetensors").message(),
              HasSubstr("at most 100000000"));
  EXPECT_THAT(Read(std::string("\x02\0\0\0\0\0\0\0[]", 10), ".safetensors").message(),
              HasSubstr("its header is no JSON object"));
}

}  // namespace
}  // namespace opserve::cli
