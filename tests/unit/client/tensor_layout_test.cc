#include "client/cpp/tensor_layout.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve {
namespace {

using testing::ElementsAreArray;

// 0, 1, 2, ..., as a storage.
template <typename T>
std::vector<T> Ascending(size_t count) {
  std::vector<T> elements(count);
  std::iota(elements.begin(), elements.end(), T{0});
  return elements;
}

template <typename T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  std::vector<T> elements(tensor.storage().size() / sizeof(T));
  if (elements.empty()) return elements;  // memcpy takes no null, not even for nothing
  std::memcpy(elements.data(), tensor.storage().data(), tensor.storage().size());
  return elements;
}

TEST(ContiguousBytesTest, CountsWhatExists) {
  struct Case {
    DataType dtype;
    std::vector<int64_t> shape;
    std::optional<uint64_t> num_bytes;
  };
  const Case kCases[] = {
      {kFloat, {}, 4},
      {kDouble, {2, 3}, 48},
      {kBf16, {2, 0, 3}, 0},
      {kFloat, {int64_t{1} << 60, 4, 0}, 0},
      {kFloat, {int64_t{1} << 60, 2}, std::nullopt},
      {kFloat, {int64_t{1} << 60, int64_t{1} << 60}, std::nullopt},
      {kFloat, {-1}, std::nullopt},
      {kFloat, {0, -1}, std::nullopt},
      {v1::DATA_TYPE_UNSPECIFIED, {2}, std::nullopt},
      {v1::DATA_TYPE_UNSPECIFIED, {0}, std::nullopt},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(ContiguousBytes(c.dtype, c.shape), c.num_bytes) << testing::PrintToString(c.shape);
  }
}

TEST(MakeContiguousTest, OrdersElementsAsTheViewDoes) {
  struct Case {
    const char* name;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    int64_t offset;
    std::vector<float> elements;
    bool is_copied;
  };
  const Case kCases[] = {
      {"Whole", {3, 4}, {4, 1}, 0, Ascending<float>(12), false},
      {"Rows", {2, 4}, {4, 1}, 4, {4, 5, 6, 7, 8, 9, 10, 11}, false},
      {"NoStrides", {4}, {}, 2, {2, 3, 4, 5}, false},
      {"ExtentOfOne", {1, 3}, {7, 1}, 0, {0, 1, 2}, false},
      {"Scalar", {}, {}, 11, {11}, false},
      {"Transposed", {4, 3}, {1, 4}, 0, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, true},
      {"Column", {3}, {4}, 1, {1, 5, 9}, true},
      {"Repeated", {2, 3}, {0, 1}, 5, {5, 6, 7, 5, 6, 7}, true},
      {"Empty", {0, 3}, {1, 100}, 0, {}, true},
  };
  const std::vector<float> storage = Ascending<float>(12);
  for (const Case& c : kCases) {
    const Tensor view = Tensor::Of<float>(c.shape, storage).WithStrides(c.strides, c.offset);

    const absl::StatusOr<Tensor> contiguous = MakeContiguous(view);

    ASSERT_TRUE(contiguous.ok()) << c.name << contiguous.status();
    EXPECT_THAT(ElementsOf<float>(*contiguous), ElementsAreArray(c.elements)) << c.name;
    EXPECT_EQ(contiguous->shape(), c.shape) << c.name;
    EXPECT_TRUE(contiguous->strides().empty()) << c.name;
    EXPECT_EQ(contiguous->offset(), 0) << c.name;
    const auto* first = reinterpret_cast<const std::byte*>(storage.data() + c.offset);
    EXPECT_EQ(contiguous->storage().data() != first, c.is_copied) << c.name;
  }
}

TEST(MakeContiguousTest, ElementsOfEverySizeAreCopiedWhole) {
  const auto half = Ascending<uint16_t>(6);
  std::vector<Bf16> halves;
  for (const uint16_t bits : half) halves.push_back({bits});
  const auto doubles = Ascending<double>(6);

  const auto transposed_halves =
      MakeContiguous(Tensor::Of<Bf16>({3, 2}, halves).WithStrides({1, 3}));
  const auto transposed_doubles =
      MakeContiguous(Tensor::Of<double>({3, 2}, doubles).WithStrides({1, 3}));

  EXPECT_THAT(ElementsOf<uint16_t>(*transposed_halves), ElementsAreArray({0, 3, 1, 4, 2, 5}));
  EXPECT_THAT(ElementsOf<double>(*transposed_doubles), ElementsAreArray({0, 3, 1, 4, 2, 5}));
}

TEST(MakeContiguousTest, KeepsTheOwnerOrBecomesIt) {
  Tensor tensor = Tensor::Owning<float>({2, 2}, {1, 2, 3, 4});
  const std::weak_ptr<const void> owner = tensor.owner();

  const auto shared = MakeContiguous(tensor);
  const auto copied = MakeContiguous(tensor.WithStrides({1, 2}));

  EXPECT_EQ(shared->owner(), owner.lock());
  EXPECT_NE(copied->owner(), nullptr);
  EXPECT_NE(copied->owner(), owner.lock());
}

TEST(MakeContiguousTest, ViewsThatDoNotFitAreRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  struct Case {
    const char* name;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    int64_t offset;
  };
  const Case kCases[] = {
      {"TooFewElements", {13}, {}, 0},       {"TooManyElements", {11}, {}, 0},
      {"OffsetTooLarge", {11}, {}, 2},       {"OffsetNegative", {11}, {}, -1},
      {"StrideTooLarge", {3, 4}, {5, 1}, 0}, {"StrideNegative", {2}, {-1}, 5},
      {"OneStrideTooFew", {3, 4}, {1}, 0},   {"StridesOverflow", {3, 3}, {kMax / 2, kMax / 2}, 0},
      {"OffsetOverflows", {2}, {1}, kMax},   {"ExtentNegative", {-1}, {}, 0},
      {"EmptyHasElements", {0}, {}, 0},
  };
  const std::vector<float> storage = Ascending<float>(12);
  for (const Case& c : kCases) {
    const Tensor view = Tensor::Of<float>(c.shape, storage).WithStrides(c.strides, c.offset);
    EXPECT_EQ(MakeContiguous(view).status().code(), absl::StatusCode::kInvalidArgument) << c.name;
  }
  EXPECT_EQ(MakeContiguous(Tensor()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace opserve
