// Environment variables, seen by a C program in a process of its own.
#include <cstdio>
#include <cstdlib>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

// What the program prints with the variables set; it must end by itself, and well.
std::string RunWith(const std::string& variables) {
  const std::string command =
      "env -u OPSERVE_HOST_DEVICES -u OPSERVE_HOST_DEVICE_MEMORY -u OPSERVE_HOST_THREADS "
      "-u OPSERVE_HOST_TIMEOUT_INTERVAL_US -u OPSERVE_HOST_SOC -u OPSERVE_HOST_LAUNCH_US " +
      variables + " " HOST_CANN_C_CALLER;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[256];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST(EnvironmentTest, ValuesAreObeyed) {
  const struct {
    const char* variables;
    const char* expected;
  } kCases[] = {
      {"", "init=0\ncount=0 devices=2\nset=0\ntotal=4294967296 physical=0\nmalloc=0\n"},
      {"OPSERVE_HOST_DEVICES=5", "count=0 devices=5\n"},
      {"OPSERVE_HOST_DEVICE_MEMORY=3M", "total=3145728 "},
      {"OPSERVE_HOST_DEVICE_MEMORY=100", "total=100 "},
      {"OPSERVE_HOST_DEVICE_MEMORY=80", "malloc=207001"},
      {"OPSERVE_HOST_DEVICES=4 ASCEND_RT_VISIBLE_DEVICES=1,3", "devices=2\n"},
      {"OPSERVE_HOST_DEVICES=4 ASCEND_RT_VISIBLE_DEVICES=1,3", "physical=1\n"},
      {"ASCEND_RT_VISIBLE_DEVICES=1,x,0", "devices=1\n"},
      {"ASCEND_RT_VISIBLE_DEVICES=1,0",
       "init=0\ncount=207004 devices=0\nmessage=EE1001: ASCEND_RT"},
      {"ASCEND_RT_VISIBLE_DEVICES=0,0", "count=207004"},
      {"ASCEND_RT_VISIBLE_DEVICES=", "count=207004 devices=0\n"},
      {"OPSERVE_HOST_FAULTS=call=aclrtMalloc,code=507899", "malloc=507899"},
      {"OPSERVE_HOST_FAULTS=device=0,lost", "set=507033"},
  };
  for (const auto& c : kCases) {
    const std::string output = RunWith(c.variables);
    EXPECT_NE(output.find(c.expected), std::string::npos) << c.variables << '\n' << output;
  }
}

TEST(EnvironmentTest, EachGenerationHasItsLimitsAndRefusals) {
  const std::string a2 =
      "arch=2201 streams=1983 events=65536\nlimit=1090921ms largest=1091s two intervals=1\n"
      "null stream=0 rows=0\nvalue=0 batch=0 other device's event=0\n"
      "words=0 offset=0 description=0 flag=0 capture=0\nreduced: 0 1 2 3 6 27\n";
  const std::string refusals =
      "null stream=207000 rows=100000\nvalue=207000 batch=207000 other device's event=107000\n"
      "words=207000 ";
  const std::string ascend910 =
      "arch=1001 streams=2047 events=65535\nlimit=68000ms largest=2176s two intervals=1\n" +
      refusals + "offset=0 description=207000 flag=207000 capture=207000\nreduced: 0\n";
  const std::string ascend310p =
      "arch=2002 streams=1023 events=1023\nlimit=547000ms largest=547s two intervals=1\n" +
      refusals + "offset=207000 description=207000 flag=207000 capture=0\nreduced: 0 1 6\n";
  const struct {
    const char* soc;
    const std::string& expected;
  } kCases[] = {
      {"Ascend910B3", a2},         {"Ascend910B4-1", a2},     {"Ascend910_9391", a2},
      {"Ascend910A", ascend910},   {"Ascend910B", ascend910},  // no digit: the older one
      {"Ascend310P3", ascend310p},
  };
  EXPECT_NE(RunWith("").find("soc=Ascend910B3\n" + a2), std::string::npos);
  for (const auto& c : kCases) {
    const std::string output = RunWith(std::string("OPSERVE_HOST_SOC=") + c.soc);
    EXPECT_NE(output.find("soc=" + std::string(c.soc) + "\n" + c.expected), std::string::npos)
        << c.soc << '\n'
        << output;
  }
}

TEST(EnvironmentTest, LinesOfTheProgramAreLoggedAsCannsVariablesSay) {
  const std::string error = " main: an error\n";
  const std::string information = " main: devices: 2\n";
  const struct {
    const char* variables;
    bool has_error, has_information;
  } kCases[] = {
      {"", false, false},
      {"ASCEND_LOG_PRINT_TO_STDOUT=0", false, false},
      {"ASCEND_LOG_PRINT_TO_STDOUT=1", true, false},
      {"ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=1", true, true},
      {"ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=2", true, false},
      {"ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=4", false, false},
      {"ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=x", true, false},
  };
  for (const auto& c : kCases) {
    const std::string output = RunWith(
        "-u ASCEND_LOG_PRINT_TO_STDOUT -u ASCEND_SLOG_PRINT_TO_STDOUT "
        "-u ASCEND_GLOBAL_LOG_LEVEL " +
        std::string(c.variables));
    EXPECT_EQ(output.find(error) != std::string::npos, c.has_error) << c.variables << output;
    EXPECT_EQ(output.find(information) != std::string::npos, c.has_information) << c.variables;
  }
  const std::string output = RunWith("ASCEND_SLOG_PRINT_TO_STDOUT=1");
  EXPECT_NE(output.find("[ERROR] "), std::string::npos) << output;
  EXPECT_NE(output.find("c_caller.c:"), std::string::npos) << output;
}

// Only the newer products have no limit where the largest one would be fine-grained.
TEST(EnvironmentTest, AnIntervalMayBeGivenToEachGeneration) {
  const std::string interval = "OPSERVE_HOST_TIMEOUT_INTERVAL_US=1000 OPSERVE_HOST_SOC=";
  EXPECT_NE(RunWith(interval + "Ascend910B3").find("limit=4294967295ms largest=18446744073710s"),
            std::string::npos);
  EXPECT_NE(RunWith(interval + "Ascend910A").find("limit=68000ms largest=2176s two intervals=1"),
            std::string::npos);
}

TEST(EnvironmentTest, MalformedValuesAreErrors) {
  const struct {
    const char* variables;
    const char* message;
  } kCases[] = {
      {"OPSERVE_HOST_DEVICES=0", "OPSERVE_HOST_DEVICES is \"0\""},
      {"OPSERVE_HOST_DEVICES=two", "from 1 to 64"},
      {"OPSERVE_HOST_DEVICES=65", "from 1 to 64"},
      {"OPSERVE_HOST_THREADS=", "OPSERVE_HOST_THREADS is \"\""},
      {"OPSERVE_HOST_CHECKED=yes", "from 0 to 1"},
      {"OPSERVE_HOST_DEVICE_MEMORY=4T", "OPSERVE_HOST_DEVICE_MEMORY is \"4T\""},
      {"OPSERVE_HOST_DEVICE_MEMORY=G", "a number of bytes"},
      {"OPSERVE_HOST_DEVICE_MEMORY=99999999999G", "a number of bytes"},
      {"OPSERVE_HOST_TIMEOUT_INTERVAL_US=-1", "OPSERVE_HOST_TIMEOUT_INTERVAL_US"},
      {"OPSERVE_HOST_LAUNCH_US=1000001", "from 0 to 1000000"},
      {"OPSERVE_HOST_SOC=", "OPSERVE_HOST_SOC is \"\""},
      {"OPSERVE_HOST_SOC=ascend910b3", "one of Ascend910B1, Ascend910B2"},
      {"OPSERVE_HOST_SOC=Ascend310B1", "OPSERVE_HOST_SOC is \"Ascend310B1\""},
      {"OPSERVE_HOST_FAULTS=kernel=x", "OPSERVE_HOST_FAULTS: fault 1 (\"kernel=x\")"},
      {"OPSERVE_HOST_FAULTS=device=2,lost", "there is no device 2"},
  };
  for (const auto& c : kCases) {
    const std::string output = RunWith(c.variables);
    EXPECT_EQ(output.find("init=100000\nmessage=EH0001: "), 0u) << c.variables << '\n' << output;
    EXPECT_NE(output.find(c.message), std::string::npos) << c.variables << '\n' << output;
    EXPECT_NE(output.find("set=100000"), std::string::npos) << c.variables << '\n' << output;
  }
}

}  // namespace
}  // namespace opserve::host_cann
