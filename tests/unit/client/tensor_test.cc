#include "client/cpp/tensor.h"

#include <cstring>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve {
namespace {

using testing::ElementsAre;

// A result of the pieces of `storage` that the sizes give, from `start` on.
struct Pieces {
  Pieces(const std::vector<float>& values, size_t start, const std::vector<size_t>& sizes)
      : storage(start, '\0') {
    storage.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    absl::string_view rest = absl::string_view(storage).substr(start);
    for (const size_t size : sizes) {
      views.push_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
  }

  Result MakeResult(std::vector<int64_t> shape) const {
    return Result(OutputOf{0, "out"}, kFloat, std::move(shape), views, nullptr);
  }

  std::string storage;
  std::vector<absl::string_view> views;
};

TEST(ResultTest, ValuesAreTheSameHoweverTheyArrived) {
  const std::vector<float> values = {1, 2, 3};
  struct Case {
    size_t start;
    std::vector<size_t> sizes;
    bool is_copied;
  };
  const Case kCases[] = {{0, {12}, false},
                         {1, {12}, true},
                         {2, {12}, true},
                         {0, {4, 8}, true},
                         {3, {1, 0, 7, 4}, true}};
  for (const Case& c : kCases) {
    const Pieces pieces(values, c.start, c.sizes);
    const Result result = pieces.MakeResult({3});

    const absl::StatusOr<absl::Span<const float>> read = result.values<float>();

    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_THAT(*read, ElementsAre(1, 2, 3));
    EXPECT_EQ(static_cast<const void*>(read->data()) != pieces.views[0].data(), c.is_copied);
    EXPECT_EQ(result.values<float>()->data(), read->data());
  }
}

TEST(ResultTest, OfAnotherTypeIsRefused) {
  const Pieces pieces({1}, 0, {4});

  EXPECT_EQ(pieces.MakeResult({}).values<Bf16>().status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ResultTest, EmptyResultHasNoValues) {
  const Pieces pieces({}, 0, {});
  const Result result = pieces.MakeResult({0, 3});

  EXPECT_EQ(result.num_elements(), 0);
  EXPECT_TRUE(result.values<float>()->empty());
}

TEST(ResultTest, CopyToWantsTheExactSize) {
  const Pieces pieces({1, 2}, 0, {3, 5});
  const Result result = pieces.MakeResult({2});
  std::vector<float> values(3, -1);
  auto* bytes = reinterpret_cast<std::byte*>(values.data());

  EXPECT_EQ(result.CopyTo({bytes, 12}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(values, ElementsAre(-1, -1, -1));
  EXPECT_TRUE(result.CopyTo({bytes, 8}).ok());
  EXPECT_THAT(values, ElementsAre(1, 2, -1));
}

TEST(ResultTest, ThreadsMayReadCopiesAtOnce) {
  const Pieces pieces({1, 2}, 0, {3, 5});
  const Result result = pieces.MakeResult({2});
  const std::byte* first = nullptr;
  const std::byte* second = nullptr;

  std::thread thread([copy = result, &first] { first = copy.bytes().data(); });
  second = result.bytes().data();
  thread.join();

  EXPECT_EQ(first, second);
}

TEST(TensorTest, OwningKeepsItsElements) {
  Tensor tensor = Tensor::Owning<float>({2}, {1, 2});
  const std::weak_ptr<const void> owner = tensor.owner();

  Tensor view = tensor.WithStrides({0, 1}, 1);
  tensor = Tensor();

  EXPECT_FALSE(owner.expired());
  EXPECT_EQ(view.offset(), 1);
  float last = 0;
  std::memcpy(&last, view.storage().data() + 4, sizeof(last));
  EXPECT_EQ(last, 2);
  view = Tensor();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace opserve
