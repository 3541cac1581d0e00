#include "client/cli/arrays/npy.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "client/cli/arrays/npy_header.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Fixture(const std::string& name) {
  return absl::StrCat(OPSERVE_TEST_DATA_DIR, "/arrays/", name, ".npy");
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

absl::string_view StorageOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.storage().data()), tensor.storage().size()};
}

Result AsResult(const Tensor& tensor) {
  static absl::string_view storage;
  storage = StorageOf(tensor);
  return Result(OutputOf{}, tensor.dtype(), tensor.shape(), absl::MakeConstSpan(&storage, 1),
                tensor.owner());
}

TEST(NpyHeaderTest, KeysMayComeInAnyOrderAndSpacing) {
  const char* kTexts[] = {
      "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }          \n",
      "{\"shape\":(2,3),'fortran_order':True,'descr':\"<f4\"}",
      " { 'fortran_order' : True , 'shape' : ( 2 , 3 , ) , 'descr' : '<f4' , } ",
  };
  for (const char* text : kTexts) {
    const absl::StatusOr<NpyHeader> header = ParseNpyHeader(text);
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->descr, "<f4");
    EXPECT_TRUE(header->fortran_order);
    EXPECT_THAT(header->shape, ElementsAre(2, 3));
  }
}

TEST(NpyHeaderTest, SurvivesFormatting) {
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{}, {0}, {7}, {2, 3}, {1, 2, 3, 4, 5, 6, 7, 8}}) {
    const auto header = ParseNpyHeader(FormatNpyHeader({.descr = "<V2", .shape = shape}));
    ASSERT_TRUE(header.ok()) << header.status();
    EXPECT_EQ(header->shape, shape);
    EXPECT_EQ(header->descr, "<V2");
    EXPECT_FALSE(header->fortran_order);
  }
}

TEST(NpyHeaderTest, AnythingElseIsRefused) {
  struct Case {
    const char* text;
    const char* complaint;
  };
  const Case kCases[] = {
      {"", "expected { at character 1"},
      {"[1]", "expected {"},
      {"{", "expected a string"},
      {"{}", "missing"},
      {"{'descr': '<f4', 'shape': ()}", "missing"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()", "expected }"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "text after"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), 'more': 1}", "unknown key 'more'"},
      {"{'descr': '<f4', 'descr': '<f4', 'shape': ()}", "a second 'descr'"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': ()}", "expected }"},
      {"{'descr': '<f4", "a string without end"},
      {"{'descr': <f4, 'fortran_order': False, 'shape': ()}", "expected a string"},
      {"{'descr' '<f4', 'fortran_order': False, 'shape': ()}", "expected :"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", "expected True or False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "expected ("},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "a tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}", "expected an extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.5,)}", "expected"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "expected an extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "an extent"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3}", "expected )"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = ParseNpyHeader(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(status.message(), HasSubstr(c.complaint)) << c.text;
  }
}

TEST(ReadNpyTest, ReadsWhatNumpyWrites) {
  struct Case {
    const char* name;
    DataType dtype;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    size_t num_bytes;
  };
  const Case kCases[] = {
      {"f2", kFloat16, {2, 3}, {}, 12},          {"f4_fortran", kFloat, {2, 3}, {1, 2}, 24},
      {"f4_version_2", kFloat, {2, 3}, {}, 24},  {"f4_empty", kFloat, {0, 3}, {}, 0},
      {"f4_vector", kFloat, {3}, {}, 12},        {"f8_scalar", kDouble, {}, {}, 8},
      {"bf16_ml_dtypes", kBf16, {2, 3}, {}, 12},
  };
  for (const Case& c : kCases) {
    const absl::StatusOr<Tensor> tensor = ReadNpy(Fixture(c.name));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->dtype(), c.dtype) << c.name;
    EXPECT_EQ(tensor->shape(), c.shape) << c.name;
    EXPECT_EQ(tensor->strides(), c.strides) << c.name;
    EXPECT_EQ(tensor->storage().size(), c.num_bytes) << c.name;
    EXPECT_NE(tensor->owner(), nullptr);
  }
}

TEST(ReadNpyTest, ElementsAreInTheOrderOfTheFile) {
  const Tensor fortran = *ReadNpy(Fixture("f4_fortran"));
  EXPECT_THAT(*AsResult(fortran).values<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
  const Tensor half = *ReadNpy(Fixture("f2"));
  EXPECT_EQ((*AsResult(half).values<Float16>())[5].ToFloat(), 1.25f);
  const Tensor bf16 = *ReadNpy(Fixture("bf16_ml_dtypes"));
  EXPECT_EQ((*AsResult(bf16).values<Bf16>())[1].ToFloat(), 2.5f);
}

TEST(ReadNpyTest, IntegersAreWrittenAsTheyAreRead) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("a.npy");
  EXPECT_EQ(ReadNpy(Fixture("i4"))->dtype(), kInt32);
  const auto survives = [&]<typename T>(std::vector<T> elements) {
    const Tensor tensor = Tensor::Owning<T>({2}, elements);
    ASSERT_TRUE(WriteNpy(path, AsResult(tensor)).ok());
    const absl::StatusOr<Tensor> again = ReadNpy(path);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->dtype(), kDataTypeOf<T>);
    const Result read = AsResult(*again);
    EXPECT_THAT(*read.values<T>(), ElementsAre(T(elements[0]), T(elements[1])));
  };
  survives(std::vector<int8_t>{-128, 127});
  survives(std::vector<uint8_t>{0, 255});
  survives(std::vector<int16_t>{-32768, 32767});
  survives(std::vector<int32_t>{INT32_MIN, INT32_MAX});
  survives(std::vector<int64_t>{INT64_MIN, INT64_MAX});
  survives(std::vector<bool>{true, false});
}

TEST(ReadNpyTest, TwoByteArraysAreBf16IfAsked) {
  for (const char* name : {"u2", "void2"}) {
    EXPECT_THAT(ReadNpy(Fixture(name)).status().message(), HasSubstr("append :bf16")) << name;
    const Tensor tensor = *ReadNpy(Fixture(name), NpyReading::kAsBf16);
    EXPECT_EQ(tensor.dtype(), kBf16);
    EXPECT_EQ((*AsResult(tensor).values<Bf16>())[1].ToFloat(), -2.0f) << name;
  }
  EXPECT_EQ(ReadNpy(Fixture("bf16_ml_dtypes"), NpyReading::kAsBf16)->dtype(), kBf16);
  EXPECT_THAT(ReadNpy(Fixture("f4_vector"), NpyReading::kAsBf16).status().message(),
              HasSubstr("cannot be read as bf16"));
}

TEST(ReadNpyTest, OtherArraysAreRefused) {
  struct Case {
    const char* name;
    const char* complaint;
  };
  const Case kCases[] = {{"big_endian", "astype('<f4')"},
                         {"u2", "'<u2' is not int8"},
                         {"structured", "structured"},
                         {"rank_9", "rank 9; at most 8"}};
  for (const Case& c : kCases) {
    const absl::Status status = ReadNpy(Fixture(c.name)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.name;
    EXPECT_THAT(status.message(), HasSubstr(c.complaint));
    EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(c.name, ".npy")));
  }
}

class BrokenNpyTest : public testing::Test {
 protected:
  absl::Status ReadStatus(absl::string_view contents) {
    const std::string path = directory_.File("a.npy");
    std::ofstream(path, std::ios::binary) << contents;
    return ReadNpy(path).status();
  }

  TemporaryDirectory directory_;
};

TEST_F(BrokenNpyTest, EveryTruncationIsRefused) {
  const std::string good = Contents(Fixture("f4_vector"));
  ASSERT_TRUE(ReadStatus(good).ok());
  for (size_t length = 0; length < good.size(); ++length) {
    ASSERT_EQ(ReadStatus(good.substr(0, length)).code(), absl::StatusCode::kInvalidArgument)
        << length;
  }
  EXPECT_THAT(ReadStatus(good + "x").message(), HasSubstr("holds 13 bytes of data"));
}

TEST_F(BrokenNpyTest, ClaimsBeyondTheFileAreRefused) {
  const std::string magic("\x93NUMPY", 6);
  const std::string huge =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}";
  const std::string overflow =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8)}";
  const auto file = [&](const std::string& header) {
    return absl::StrCat(magic, absl::string_view("\1\0", 2), std::string(1, header.size()),
                        absl::string_view("\0", 1), header);
  };

  EXPECT_THAT(ReadStatus(file(huge)).message(), HasSubstr("too many elements"));
  EXPECT_THAT(ReadStatus(file(overflow)).message(), HasSubstr("too many elements"));
  EXPECT_THAT(
      ReadStatus(magic + absl::StrCat("\2", std::string("\0\xff\xff\xff\xff", 5))).message(),
      HasSubstr("a header of 4294967295 bytes"));
  EXPECT_THAT(ReadStatus(magic + std::string("\4\0\0\0", 4)).message(), HasSubstr("version 4"));
}

TEST_F(BrokenNpyTest, FilesThatCannotBeRead) {
  EXPECT_EQ(ReadNpy(directory_.File("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ReadNpy(directory_.File(".")).status().message(), HasSubstr("not a regular file"));
}

TEST(WriteNpyTest, WritesTheBytesThatNumpyWouldWrite) {
  const TemporaryDirectory directory;
  for (const char* name : {"f2", "f4_vector", "f4_empty", "f8_scalar", "bf16_ml_dtypes"}) {
    const Tensor tensor = *ReadNpy(Fixture(name));
    const std::string path = directory.File("out.npy");

    ASSERT_TRUE(WriteNpy(path, AsResult(tensor)).ok());

    EXPECT_EQ(Contents(path), Contents(Fixture(name))) << name;
  }
}

TEST(WriteNpyTest, AFileThatCannotBeMadeIsAnError) {
  const TemporaryDirectory directory;
  const Tensor tensor = *ReadNpy(Fixture("f2"));

  const absl::Status status = WriteNpy(directory.File("none/out.npy"), AsResult(tensor));

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("none/out.npy"));
}

}  // namespace
}  // namespace opserve::cli
