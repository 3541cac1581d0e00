// What the self-test writes, and what it sees of a machine.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/acl/cann_layout.h"
#include "server/device/npu_signs.h"
#include "server/diagnosis/machine.h"
#include "server/diagnosis/report.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// What is written to a report's file.
class Output {
 public:
  Output() : file_(std::tmpfile()) {}
  ~Output() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    const size_t read = std::fread(text.data(), 1, text.size(), file_);
    return text.substr(0, read);
  }

 private:
  std::FILE* const file_;
};

TEST(ReportTest, OfManyAlikeTextHasThoseThatAreNotWellUnlessAllAreWanted) {
  const std::pair<Report::Format, bool> kCases[] = {{Report::Format::kText, false},
                                                    {Report::Format::kVerboseText, true},
                                                    {Report::Format::kJson, true}};
  for (const auto& [format, has_all] : kCases) {
    Output output;
    Report report(format, output.file());
    report.Begin("device 0");
    report.AddOneOfMany(Verdict::kOk, "Good", "right");
    report.AddOneOfMany(Verdict::kWarning, "Lacking", "not there");
    report.AddOneOfMany(Verdict::kProblem, "Bad", "is wrong");
    report.Add(Verdict::kNote, "operators", "1 of 2 right");
    EXPECT_FALSE(report.Finish());

    const std::string text = output.text();
    EXPECT_EQ(absl::StrContains(text, "Good"), has_all) << text;
    EXPECT_THAT(text, AllOf(HasSubstr("Lacking"), HasSubstr("Bad"), HasSubstr("1 of 2 right")));
  }
}

TEST(ReportTest, TextComesAsItIsFoundAndEndsWithAllProblems) {
  Output output;
  Report report(Report::Format::kText, output.file());
  report.Begin("device 0");
  report.Add(Verdict::kOk, "memory", "plenty");
  report.AddResult(absl::InternalError("is wrong"), "Scale", "", "mend it");
  report.Begin("device 1");
  report.Add(Verdict::kProblem, "open", "does not");

  EXPECT_FALSE(report.Finish());

  EXPECT_THAT(output.text(),
              AllOf(ContainsRegex("device 0\n  ok +memory +plenty\n"),
                    ContainsRegex("PROBLEM +Scale +is wrong\n +-> mend it\n"),
                    HasSubstr("Not healthy. 2 problems:\n  device 0, Scale: is wrong\n"
                              "  device 1, open: does not\n")));
}

TEST(ReportTest, WarningsAreNoProblems) {
  Output output;
  Report report(Report::Format::kText, output.file());
  report.Begin("machine");
  report.Add(Verdict::kWarning, "open files", "few");
  report.Add(Verdict::kNote, "driver", "none");
  EXPECT_TRUE(report.Finish());
  EXPECT_THAT(output.text(), HasSubstr("Healthy, with warnings: 1."));
}

TEST(ReportTest, JsonIsOneDocumentWhateverTheTexts) {
  Output output;
  Report report(Report::Format::kJson, output.file());
  report.Begin("device 0");
  report.Add(Verdict::kProblem, "open", "not \xff UTF-8", "reset it");
  EXPECT_FALSE(report.Finish());

  const nlohmann::json document = nlohmann::json::parse(output.text());
  EXPECT_EQ(document["healthy"], false);
  EXPECT_EQ(document["findings"].size(), 1u);
  EXPECT_EQ(document["findings"][0]["section"], "device 0");
  EXPECT_EQ(document["findings"][0]["verdict"], "problem");
  EXPECT_EQ(document["findings"][0]["advice"], "reset it");
}

class MachineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string root = (fs::temp_directory_path() / "opserve-machine-XXXXXX").string();
    ASSERT_NE(mkdtemp(root.data()), nullptr);
    root_ = root + "/";
    Write("proc/meminfo", "MemTotal:  4194304 kB\nMemAvailable:  1048576 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void AddNpu() {
    for (const char* name : {"davinci0", "davinci1", "davinci_manager", "devmm_svm", "hisi_hdc"}) {
      Write(std::string("dev/") + name, "");
    }
    Write("usr/local/Ascend/driver/version.info", "Version=24.1.rc2\npackage_version=1\n");
  }
  // The report; whether the machine is healthy in *healthy.
  std::string Look(bool needs_npu, bool* healthy) {
    Output output;
    Report report(Report::Format::kText, output.file());
    CheckMachine({.root = root_, .needs_npu = needs_npu, .connections = 10}, &report);
    *healthy = report.Finish();
    return output.text();
  }

  std::string root_;
};

TEST_F(MachineTest, NpusOfTheMachineAreFound) {
  AddNpu();
  bool healthy = false;
  EXPECT_THAT(Look(/*needs_npu=*/true, &healthy),
              AllOf(ContainsRegex("host memory +1.0 GiB of 4.0 GiB available"),
                    ContainsRegex("ok +NPU driver +version 24.1.rc2"),
                    ContainsRegex("ok +device files +davinci0, davinci1\n")));
  EXPECT_TRUE(healthy);
}

TEST_F(MachineTest, WhatIsMissingOfThemIsNamed) {
  bool healthy = true;
  EXPECT_THAT(
      Look(/*needs_npu=*/true, &healthy),
      AllOf(ContainsRegex("warning +NPU driver +its version is unknown"),
            HasSubstr("there is no " + root_ + "dev/davinci_manager, " + root_ + "dev/devmm_svm, " +
                      root_ + "dev/hisi_hdc, " + root_ + "dev/davinci0"),
            HasSubstr("request huawei.com/Ascend910")));
  EXPECT_FALSE(healthy);
  AddNpu();
  fs::remove(root_ + "dev/devmm_svm");
  EXPECT_THAT(Look(/*needs_npu=*/true, &healthy),
              HasSubstr("there is no " + root_ + "dev/devmm_svm\n"));
  EXPECT_FALSE(healthy);
}

TEST_F(MachineTest, TheHostCannNeedsNoneAndSaysIfThereAreSome) {
  bool healthy = false;
  EXPECT_THAT(Look(/*needs_npu=*/false, &healthy), HasSubstr("the host CANN computes on"));
  EXPECT_TRUE(healthy);
  AddNpu();
  EXPECT_THAT(Look(/*needs_npu=*/false, &healthy),
              AllOf(HasSubstr("not used, though this machine has 2 NPUs"),
                    HasSubstr("--acl_library_dir=cann"), Not(HasSubstr("version 24"))));
  EXPECT_TRUE(healthy);
}

TEST_F(MachineTest, ALibraryWithSeveralNamesIsFoundOnce) {
  for (const char* name : {"libascendcl.so", "libnnopbase.so", "libopapi.so"}) {
    Write(absl::StrCat("links/", name), "");
  }
  const std::string directory = root_ + "links";
  fs::create_symlink("libascendcl.so", directory + "/libacl_rt.so");
  for (const char* name : {"libopapi_math.so", "libopapi_nn.so"}) {
    fs::create_symlink("libopapi.so", directory + "/" + name);
  }
  const auto layout = FindCann(directory, [](const char*) -> const char* { return nullptr; });
  ASSERT_TRUE(layout.ok()) << layout.status();
  EXPECT_EQ(layout->runtime, directory + "/libascendcl.so");
  EXPECT_THAT(layout->operators, ::testing::ElementsAre(directory + "/libopapi.so"));
}

TEST_F(MachineTest, SignsOfNpusAreListed) {
  const std::string home = root_ + "cann";
  const auto with_cann = [&home](const char* name) {
    return absl::string_view(name) == "ASCEND_HOME_PATH" ? home.c_str() : nullptr;
  };
  Write("host/libascendcl.so", "");
  const std::string runtime = root_ + "host/libascendcl.so";
  EXPECT_THAT(NpuSigns(root_, runtime, with_cann), ::testing::IsEmpty());  // there is no such CANN

  AddNpu();
  for (const char* name : {"libascendcl.so", "libnnopbase.so", "libopapi.so"}) {
    Write(absl::StrCat("cann/lib64/", name), "");
  }
  EXPECT_THAT(NpuSigns(root_, runtime, with_cann),
              ::testing::ElementsAre("the device files davinci0, davinci1",
                                     "the NPU driver 24.1.rc2", "CANN in " + home + "/lib64"));
  // A runtime that is in use already is none that is not.
  EXPECT_EQ(NpuSigns(root_, home + "/lib64/libascendcl.so", with_cann).size(), 2u);

  Write("dev/davinci10", "");
  Write("dev/davinci2", "");
  EXPECT_THAT(NpuFiles(root_ + "dev"),
              ::testing::ElementsAre("davinci0", "davinci1", "davinci2", "davinci10"));
}

}  // namespace
}  // namespace opserve::server
