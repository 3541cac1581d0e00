// Runs every fuzz target over its corpus: what was found once stays mended, with any compiler.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace {

namespace fs = std::filesystem;

using Target = int (*)(const uint8_t* data, size_t size);

}  // namespace

// Each target's LLVMFuzzerTestOneInput, under a name of its own (CMakeLists.txt).
#define OPSERVE_FUZZ_TARGET(name) extern "C" int Fuzz_##name(const uint8_t* data, size_t size);
OPSERVE_FUZZ_TARGETS
#undef OPSERVE_FUZZ_TARGET

namespace {

// A case of its own for each file, so that the output names the one that crashes.
class ReplayTest : public ::testing::Test {
 public:
  ReplayTest(Target target, fs::path path) : target_(target), path_(std::move(path)) {}

  void TestBody() override {
    std::ifstream file(path_, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(target_(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
  }

 private:
  const Target target_;
  const fs::path path_;
};

void Register(const char* name, Target target) {
  std::vector<fs::path> files;
  const fs::path corpus = fs::path(OPSERVE_FUZZ_CORPUS_DIR) / name;
  if (fs::exists(corpus)) {
    for (const auto& entry : fs::directory_iterator(corpus)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    testing::RegisterTest(name, path.filename().c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> testing::Test* { return new ReplayTest(target, path); });
  }
  testing::RegisterTest(name, "HasACorpus", nullptr, nullptr, __FILE__, __LINE__,
                        [=]() -> testing::Test* {
                          struct HasFiles : testing::Test {
                            explicit HasFiles(size_t count) : count(count) {}
                            void TestBody() override { EXPECT_GT(count, 0u); }
                            const size_t count;
                          };
                          return new HasFiles(files.size());
                        });
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#define OPSERVE_FUZZ_TARGET(name) Register(#name, &Fuzz_##name);
  OPSERVE_FUZZ_TARGETS
#undef OPSERVE_FUZZ_TARGET
  return RUN_ALL_TESTS();
}
