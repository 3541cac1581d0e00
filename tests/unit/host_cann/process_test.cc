// Start and end of ACL, configuration files, versions.
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

TEST(ProcessTest, StartsAreCounted) {
  uint64_t starts = 99;
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(aclFinalizeReference(&starts), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_EQ(starts, 99u);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(""), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclInit("/other.json"), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclFinalizeReference(&starts), ACL_SUCCESS);
  EXPECT_EQ(starts, 2u);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

TEST(ProcessTest, ConfigurationFiles) {
  const std::string path = testing::TempDir() + "host_cann_config.json";
  const struct {
    std::string text;
    aclError expected;
  } kCases[] = {
      {"{}", ACL_SUCCESS},
      {R"({"err_msg_mode": "0", "dump": {"dump_list": []}})", ACL_SUCCESS},
      {R"({"err_msg_mode": "1"})", ACL_SUCCESS},
      {R"({"err_msg_mode": "2"})", ACL_ERROR_FEATURE_UNSUPPORTED},
      {"", ACL_ERROR_PARSE_FILE},
      {"[]", ACL_ERROR_PARSE_FILE},
      {"{", ACL_ERROR_PARSE_FILE},
      {R"({"a":)" + std::string(20, '[') + std::string(20, ']') + "}", ACL_ERROR_PARSE_FILE},
      {std::string(100000, '['), ACL_ERROR_PARSE_FILE},
      {std::string((1 << 20) + 1, ' '), ACL_ERROR_INVALID_FILE_SIZE},
  };
  for (const auto& c : kCases) {
    std::ofstream(path, std::ios::trunc) << c.text;
    EXPECT_EQ(aclInit(path.c_str()), c.expected) << c.text.substr(0, 40);
    EXPECT_EQ(aclFinalize(), c.expected == 0 ? 0 : ACL_ERROR_REPEAT_FINALIZE);
  }
  std::remove(path.c_str());
  EXPECT_EQ(aclInit(path.c_str()), ACL_ERROR_INVALID_FILE);
  EXPECT_EQ(aclInit(testing::TempDir().c_str()), ACL_ERROR_INVALID_FILE);
}

TEST(ProcessTest, MessagesOfTheProcessAreReadByAnyThread) {
  const std::string path = testing::TempDir() + "host_cann_process_messages.json";
  std::ofstream(path) << R"({"err_msg_mode": "1"})";
  RecentMessage();
  ASSERT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
  std::thread([] { aclrtSetDevice(77); }).join();
  EXPECT_NE(RecentMessage().find("77"), std::string::npos);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);

  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  std::thread([] { aclrtSetDevice(77); }).join();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr) << "another thread's";
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
  std::remove(path.c_str());
}

// Callbacks of the start and the end, and their calls in order.
class ProcessCallbackTest : public testing::Test {
 protected:
  struct Part {
    std::vector<std::string>* calls;
    std::string name;
    aclError result = ACL_SUCCESS;
  };
  static aclError AtStart(const char* config, size_t length, void* part) {
    auto& self = *static_cast<Part*>(part);
    self.calls->push_back("start " + self.name + " " + std::string(config, length));
    return self.result;
  }
  static aclError AlsoAtStart(const char* config, size_t length, void* part) {
    return AtStart(config, length, part);
  }
  static aclError AtEnd(void* part) {
    auto& self = *static_cast<Part*>(part);
    self.calls->push_back("end " + self.name);
    return self.result;
  }

  std::vector<std::string> calls_;
  Part a_{&calls_, "a"};
  Part b_{&calls_, "b"};
};

TEST_F(ProcessCallbackTest, RunAtTheStartAndTheEndUntilTheyAreRemoved) {
  const std::string path = testing::TempDir() + "host_cann_callbacks.json";
  std::ofstream(path) << R"({"a": 1})";
  ASSERT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, &AtStart, &a_), ACL_SUCCESS);
  ASSERT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, &AlsoAtStart, &b_), ACL_SUCCESS);
  ASSERT_EQ(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, &AtEnd, &a_), ACL_SUCCESS);
  ASSERT_EQ(aclInit(path.c_str()), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), ACL_ERROR_REPEAT_INITIALIZE);  // no second start
  EXPECT_EQ(aclFinalizeReference(nullptr), ACL_SUCCESS);     // no end yet
  EXPECT_EQ(aclFinalizeReference(nullptr), ACL_SUCCESS);
  EXPECT_EQ(calls_,
            (std::vector<std::string>{"start a {\"a\": 1}", "start b {\"a\": 1}", "end a"}));

  calls_.clear();
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtStart), ACL_SUCCESS);
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, &AlsoAtStart), ACL_SUCCESS);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_TRUE(calls_.empty());
  // ACL has started: at once.
  EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, &AtStart, &b_), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtEnd), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(calls_, (std::vector<std::string>{"start b "}));
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtStart), ACL_SUCCESS);
  std::remove(path.c_str());
}

TEST_F(ProcessCallbackTest, AFailureIsTheResult) {
  a_.result = 123;
  ASSERT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, &AtStart, &a_), ACL_SUCCESS);
  ASSERT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, &AlsoAtStart, &b_), ACL_SUCCESS);
  EXPECT_EQ(aclInit(nullptr), 123);
  EXPECT_EQ(calls_, (std::vector<std::string>{"start a "}));
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE) << "started";
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtStart), ACL_SUCCESS);
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, &AlsoAtStart), ACL_SUCCESS);

  ASSERT_EQ(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, &AtEnd, &a_), ACL_SUCCESS);
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  uint64_t starts = 99;
  EXPECT_EQ(aclFinalizeReference(&starts), 123);
  EXPECT_EQ(starts, 0u);
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE) << "not ended";
  EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtEnd), ACL_SUCCESS);
}

TEST_F(ProcessCallbackTest, APartOfCannHasOne) {
  ASSERT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, &AtStart, &a_), ACL_SUCCESS);
  EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_ACL_DVPP, &AlsoAtStart, &a_), 500000);
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, &AlsoAtStart), 500000);
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_MODEL, &AtStart), 500000);
  EXPECT_EQ(aclInitCallbackUnRegister(ACL_REG_TYPE_ACL_DVPP, &AtStart), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, &AtEnd), 500000);
  EXPECT_EQ(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, &a_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, nullptr, &a_), ACL_ERROR_INVALID_PARAM);
}

TEST(ProcessTest, Versions) {
  int32_t number = 0, major = 0, minor = 0, patch = -1;
  char text[ACL_PKG_VERSION_MAX_SIZE];
  std::string runtime = "runtime", unknown = "nothing";
  EXPECT_EQ(aclsysGetVersionNum(runtime.data(), &number), ACL_SUCCESS);
  EXPECT_EQ(number, 90100000);
  EXPECT_EQ(aclsysGetVersionStr(runtime.data(), text), ACL_SUCCESS);
  EXPECT_STREQ(text, "9.1.0");
  EXPECT_EQ(aclsysGetVersionNum(unknown.data(), &number), ACL_ERROR_RT_PARAM_INVALID);
  EXPECT_EQ(aclsysGetVersionStr(nullptr, text), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetVersion(&major, &minor, &patch), ACL_SUCCESS);
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 17);
  EXPECT_EQ(patch, 0);
  aclCANNPackageVersion package;
  EXPECT_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &package), ACL_SUCCESS);
  EXPECT_STREQ(package.version, "9.1.0");
  EXPECT_STREQ(package.majorVersion, "9");
  EXPECT_EQ(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(8), &package), 100000);
}

}  // namespace
}  // namespace opserve::host_cann
