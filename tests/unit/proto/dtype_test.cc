#include "proto/dtypes/dtype.h"

#include <set>
#include <string>

#include "acl/acl_base.h"
#include "gtest/gtest.h"
#include "inference/model_config.pb.h"

namespace opserve {
namespace {

TEST(DtypeTest, EveryNumberOfTheWireHasItsRow) {
  const google::protobuf::EnumDescriptor* const wire = v1::DataType_descriptor();
  ASSERT_EQ(static_cast<int>(AllDtypes().size()), wire->value_count() - 1);  // without UNSPECIFIED
  for (size_t i = 0; i < AllDtypes().size(); ++i) {
    const google::protobuf::EnumValueDescriptor* const value = wire->value(static_cast<int>(i) + 1);
    EXPECT_EQ(AllDtypes()[i].dtype, value->number()) << value->name();
    EXPECT_EQ("DATA_TYPE_" + std::string(AllDtypes()[i].name), value->name());
  }
}

TEST(DtypeTest, NumbersOfAclAreThoseOfItsHeader) {
#define OPSERVE_DTYPE(name, bytes, element, acl, ...) EXPECT_EQ(acl, ACL_##name) << #name;
#include "proto/dtypes/table.inc"
}

TEST(DtypeTest, TheModelConfigurationHasTheInferenceNames) {
  for (const DtypeFacts& facts : AllDtypes()) {
    inference::DataType type = inference::TYPE_INVALID;
    EXPECT_TRUE(inference::DataType_Parse("TYPE_" + std::string(facts.inference), &type))
        << facts.inference;
  }
}

TEST(DtypeTest, FactsOfTheFloats) {
  const struct {
    Dtype dtype;
    const char* name;
    int64_t bytes;
    const char* inference;
    const char* npy;
    const char* safetensors;
    DlpackType dlpack;
    const char* torch;
  } cases[] = {
      {v1::DATA_TYPE_FLOAT, "FLOAT", 4, "FP32", "<f4", "F32", {2, 32}, "float32"},
      {v1::DATA_TYPE_FLOAT16, "FLOAT16", 2, "FP16", "<f2", "F16", {2, 16}, "float16"},
      {v1::DATA_TYPE_BF16, "BF16", 2, "BF16", "<V2", "BF16", {4, 16}, "bfloat16"},
      {v1::DATA_TYPE_DOUBLE, "DOUBLE", 8, "FP64", "<f8", "F64", {2, 64}, "float64"},
  };
  for (const auto& c : cases) {
    const DtypeFacts* const facts = FindDtype(c.dtype);
    ASSERT_NE(facts, nullptr) << c.name;
    EXPECT_EQ(facts->dlpack, c.dlpack) << c.name;
    EXPECT_EQ(DtypeName(c.dtype), c.name);
    EXPECT_EQ(DtypeBytes(c.dtype), c.bytes) << c.name;
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::name, c.name), facts);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::inference, c.inference), facts);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::safetensors, c.safetensors), facts);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::dlpack, c.dlpack), facts);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::torch, c.torch), facts);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::acl, facts->acl), facts);
    EXPECT_EQ(facts->npy[0], c.npy);
    EXPECT_EQ(FindDtypeByNpy(c.npy), facts);
  }
  EXPECT_EQ(FindDtypeByNpy("bfloat16"), FindDtype(v1::DATA_TYPE_BF16));
}

TEST(DtypeTest, NoColumnNamesTwoDtypes) {
  std::set<absl::string_view> names, inference, safetensors, torch, npy;
  std::set<int> acl;
  for (const DtypeFacts& facts : AllDtypes()) {
    EXPECT_TRUE(names.insert(facts.name).second);
    EXPECT_TRUE(inference.insert(facts.inference).second);
    EXPECT_TRUE(safetensors.insert(facts.safetensors).second);
    EXPECT_TRUE(torch.insert(facts.torch).second);
    EXPECT_TRUE(acl.insert(facts.acl).second);
    EXPECT_EQ(FindDtypeBy(&DtypeFacts::dlpack, facts.dlpack), &facts) << facts.name;
    EXPECT_NE(facts.npy[0], "") << facts.name;
    for (const absl::string_view descriptor : facts.npy) {
      EXPECT_TRUE(descriptor.empty() || npy.insert(descriptor).second) << descriptor;
    }
  }
}

TEST(DtypeTest, UnknownNumbersAndNamesAreNoDtype) {
  for (const int number : {0, 99, -1}) {
    const auto dtype = static_cast<Dtype>(number);
    EXPECT_EQ(FindDtype(dtype), nullptr) << number;
    EXPECT_EQ(DtypeName(dtype), "UNSPECIFIED") << number;
    EXPECT_EQ(DtypeBytes(dtype), 0) << number;
  }
  EXPECT_EQ(FindDtypeBy(&DtypeFacts::name, "float"), nullptr);
  EXPECT_EQ(FindDtypeBy(&DtypeFacts::dlpack, {2, 8}), nullptr);
  EXPECT_EQ(FindDtypeByNpy(">f4"), nullptr);
  EXPECT_EQ(FindDtypeByNpy(""), nullptr);
}

TEST(DtypeTest, ListsForMessages) {
  EXPECT_EQ(DtypeNames(), "FLOAT, FLOAT16, BF16, DOUBLE, INT8, UINT8, INT16, INT32, INT64 or BOOL");
  EXPECT_EQ(DtypeNamesIn(&DtypeFacts::safetensors),
            "I8, U8, BOOL, F16, BF16, I16, F32, I32, F64 or I64");
  EXPECT_EQ(DtypeNamesIn(&DtypeFacts::torch),
            "int8, uint8, bool, float16, bfloat16, int16, float32, int32, float64 or int64");
}

}  // namespace
}  // namespace opserve
