#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cpp/data_type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/client/command_line_fixture.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// Handles of the test server, "tensor-0" and "tensor-1", as the program writes them.
constexpr char kFirst[] = "74656e736f722d30";
constexpr char kSecond[] = "74656e736f722d31";

class TensorCommandTest : public CommandLineTest {
 protected:
  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  TemporaryDirectory directory_;
};

TEST_F(TensorCommandTest, UploadSaysHowToFindTheTensorAgain) {
  const Output text =
      RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector"), " --lease=1m --device=2"));

  EXPECT_EQ(text.exit_code, ExitCode::kOk) << text.err;
  EXPECT_EQ(text.out, absl::StrCat("handle     ", kFirst,
                                   "\n"
                                   "tensor     FLOAT [3]  12 B\n"
                                   "device     2\n"
                                   "lease end  2023-11-14 22:14:20 UTC\n"));
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_EQ(server_.tensors().Find("tensor-0").elements.size(), 12u);

  const auto json = nlohmann::json::parse(
      RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector"), " --format=json")).out);
  EXPECT_EQ(json.dump(),
            absl::StrCat(R"({"bytes":12,"device":3,"dtype":"FLOAT","handle":")", kSecond,
                         R"(","lease_end":"2023-11-14T22:23:20Z","shape":[3]})"));
}

TEST_F(TensorCommandTest, UploadTakesTheFilesThatRunTakes) {
  EXPECT_EQ(RunHere(absl::StrCat("tensor upload ", Fixture("u2"), ":bf16")).exit_code,
            ExitCode::kOk);
  EXPECT_EQ(server_.tensors().Find("tensor-0").header.dtype(), kBf16);

  EXPECT_EQ(RunHere(absl::StrCat("tensor upload ", Fixture("f4_empty"))).exit_code, ExitCode::kOk);
  EXPECT_THAT(server_.tensors().Find("tensor-1").elements, IsEmpty());
}

TEST_F(TensorCommandTest, DownloadWritesWhatWasUploaded) {
  const std::string path = directory_.File("out.npy");
  for (const char* name : {"f2", "f4_empty", "f4_vector", "f8_scalar"}) {
    const auto uploaded = nlohmann::json::parse(
        RunHere(absl::StrCat("tensor upload --format=json ", Fixture(name))).out);
    const std::string handle = uploaded["handle"];

    const Output output = RunHere(absl::StrCat("tensor download ", handle, " --output ", path));

    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    EXPECT_THAT(output.out, HasSubstr("written to " + path));
    EXPECT_EQ(Contents(path), Contents(Fixture(name))) << name;
  }

  const auto json = nlohmann::json::parse(
      RunHere(absl::StrCat("tensor download ", kFirst, " --format=json --output=", path)).out);
  EXPECT_EQ(json["dtype"], "FLOAT16");
  EXPECT_EQ(json["file"], path);
}

TEST_F(TensorCommandTest, SaveWritesTensorsUnderTheirNamesAndLoadBringsThemBack) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector")));
  const std::string path = directory_.File("state.safetensors");

  const Output saved =
      RunHere(absl::StrCat("tensor save ", path, " layer=0=", kSecond, " ", kFirst));

  EXPECT_EQ(saved.exit_code, ExitCode::kOk) << saved.err;
  EXPECT_EQ(saved.out, absl::StrCat("            NAME  TENSOR          SIZE  VERSION\n"
                                    "         layer=0  FLOAT [3]       12 B        7\n"
                                    "74656e736f722d30  FLOAT16 [2, 3]  12 B        7\n"
                                    "2 tensors, 24 B\nwritten to ",
                                    path, "\n"));

  const auto loaded = nlohmann::json::parse(
      RunHere(absl::StrCat("tensor load --format=json --device=1 --lease=1h ", path)).out);
  ASSERT_EQ(loaded["tensors"].size(), 2u);
  EXPECT_EQ(loaded["tensors"][0]["name"], "layer=0");
  EXPECT_EQ(loaded["tensors"][1]["name"], kFirst);
  for (const auto& [name, source] : {std::pair("tensor-2", "tensor-1"), {"tensor-3", "tensor-0"}}) {
    EXPECT_EQ(server_.tensors().Find(name).elements, server_.tensors().Find(source).elements);
    EXPECT_EQ(server_.tensors().Find(name).header.device(), 1u);
    EXPECT_EQ(server_.tensors().Find(name).header.lease().seconds(), 3600);
  }

  const Output one = RunHere(absl::StrCat("tensor load ", path, " layer=0"));
  EXPECT_THAT(one.out, HasSubstr("layer=0  74656e736f722d34  FLOAT [3]  12 B"));
  EXPECT_THAT(one.out, testing::Not(HasSubstr("FLOAT16")));

  const auto all =
      nlohmann::json::parse(RunHere(absl::StrCat("tensor save --all --format=json ", path)).out);
  EXPECT_EQ(all["tensors"].size(), 5u);
  EXPECT_EQ(all["tensors"][4]["version"], 7);
}

TEST_F(TensorCommandTest, ALoadThatFailsLeavesNoTensor) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  const std::string path = directory_.File("state.safetensors");
  RunHere(absl::StrCat("tensor save ", path, " a=", kFirst, " b=", kFirst));

  const Output unknown = RunHere(absl::StrCat("tensor load ", path, " a c"));

  EXPECT_EQ(unknown.exit_code, ExitCode::kUsage);
  EXPECT_THAT(unknown.err,
              AllOf(HasSubstr("\"c\", and so nothing: "), HasSubstr("no tensor \"c\"")));
  EXPECT_EQ(server_.tensors().releases(), std::vector<std::string>{"tensor-1"});
}

TEST_F(TensorCommandTest, MistakesOfSaveAndLoadAreUsageErrors) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  const std::string file = directory_.File("x.safetensors");
  const struct {
    std::string command;
    const char* in_message;
  } kCases[] = {
      {absl::StrCat("tensor save x.npy ", kFirst), "several tensors make a .safetensors file"},
      {"tensor save x.safetensors", "name the tensors to save, or give --all"},
      {absl::StrCat("tensor save x.safetensors --all ", kFirst), "or give --all"},
      {absl::StrCat("tensor save ", file, " a=", kFirst, " a=", kFirst),
       "two tensors with the name \"a\""},
      {absl::StrCat("tensor save ", file, " __metadata__=", kFirst),
       "\"__metadata__\" cannot name a tensor"},
      {absl::StrCat("tensor save /none/x.safetensors ", kFirst), "/none/x.safetensors"},
      {"tensor load /none/x.safetensors", "/none/x.safetensors: no such file"},
      {absl::StrCat("tensor load ", Fixture("f2")), "not a .safetensors file"},
  };
  for (const auto& c : kCases) {
    const Output output = RunHere(c.command);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << c.command << output.err;
    EXPECT_THAT(output.err, HasSubstr(c.in_message));
  }
}

// A file may be anybody's, and a terminal obeys control characters.
TEST_F(TensorCommandTest, NamesOfAFileAreShownWithoutControlCharacters) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  const std::string path = directory_.File("state.safetensors");
  RunHere(absl::StrCat("tensor save ", path, " \x1b[2Jx=", kFirst));

  EXPECT_THAT(RunHere(absl::StrCat("tensor load ", path)).out, HasSubstr("\\033[2Jx"));
}

TEST_F(TensorCommandTest, RenewShowsTheNewEnds) {
  for (int i = 0; i < 2; ++i) RunHere(absl::StrCat("tensor upload ", Fixture("f2")));
  const std::string renew = absl::StrCat("tensor renew ", kFirst, " ", kSecond);

  EXPECT_EQ(RunHere(renew + " --lease=1h").out,
            absl::StrCat(kFirst, "  lease end 2023-11-14 23:13:20 UTC\n", kSecond,
                         "  lease end 2023-11-14 23:13:20 UTC\n"));
  const auto json = nlohmann::json::parse(RunHere(renew + " --format=json").out);
  EXPECT_EQ(json["tensors"][1]["handle"], kSecond);
  EXPECT_EQ(json["tensors"][1]["lease_end"], "2023-11-14T22:23:20Z");
}

TEST_F(TensorCommandTest, ListShowsWhatThereIs) {
  EXPECT_EQ(RunHere("tensor list").out, "0 resident tensors, 0 B\n");
  RunHere(absl::StrCat("tensor upload ", Fixture("f2"), " --lease=30s"));
  RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector"), " --device=1"));

  // As many digits as tell them apart.
  EXPECT_EQ(RunHere("tensor list").out,
            "          HANDLE  TENSOR          SIZE  DEVICE  AGE  LEASE LEFT\n"
            "74656e736f722d30  FLOAT16 [2, 3]  12 B       3   1m        over\n"
            "74656e736f722d31  FLOAT [3]       12 B       1   1m          9m\n"
            "2 resident tensors, 24 B\n");
  const auto json = nlohmann::json::parse(RunHere("tensor list --format=json").out);
  EXPECT_EQ(json["tensors"][1].dump(),
            R"({"age_seconds":60.0,"bytes":12,"device":1,"dtype":"FLOAT","handle":)"
            R"("74656e736f722d31","lease_end":"2023-11-14T22:23:20Z","shape":[3]})");
}

TEST_F(TensorCommandTest, TheFirstDigitsOfAHandleAreEnoughIfNoOtherBeginsSo) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector")));
  const std::string path = directory_.File("out.npy");
  for (const char* handle : {"7", "746", "74656E73", kFirst}) {
    EXPECT_EQ(RunHere(absl::StrCat("tensor download ", handle, " --output ", path)).exit_code,
              ExitCode::kOk)
        << handle;
  }
  EXPECT_EQ(RunHere("tensor renew 74").out,
            absl::StrCat(kFirst, "  lease end 2023-11-14 22:23:20 UTC\n"));
  EXPECT_EQ(RunHere(absl::StrCat("run Scale --input x=tensor:746 --input y=", Fixture("f4_vector")))
                .exit_code,
            ExitCode::kOk);
  EXPECT_EQ(server_.last_request().invocations(0).inputs(0).tensor().resident_tensor(), "tensor-0");

  RunHere(absl::StrCat("tensor upload ", Fixture("f4_vector")));
  const Output ambiguous = RunHere("tensor rm 746");
  EXPECT_EQ(ambiguous.exit_code, ExitCode::kUsage);
  EXPECT_THAT(ambiguous.err, HasSubstr(absl::StrCat("2 handles begin with \"746\": ", kFirst, ", ",
                                                    kSecond, "; more digits are needed")));
  const Output unknown = RunHere("tensor rm 745");
  EXPECT_EQ(unknown.exit_code, ExitCode::kUsage);
  EXPECT_THAT(unknown.err, HasSubstr("has a handle that begins with \"745\""));
  EXPECT_EQ(RunHere(absl::StrCat("tensor rm ", kSecond)).out, "released 1 of 1\n");
}

TEST_F(TensorCommandTest, ReleaseCounts) {
  for (int i = 0; i < 2; ++i) RunHere(absl::StrCat("tensor upload ", Fixture("f2")));

  const Output partly = RunHere(absl::StrCat("tensor release 00 ", kFirst));
  EXPECT_EQ(partly.out, "released 1 of 2\n");
  EXPECT_EQ(partly.exit_code, ExitCode::kFailed);
  EXPECT_THAT(partly.err, HasSubstr("1 of 2 handles unknown"));
  EXPECT_EQ(RunHere(absl::StrCat("tensor release --format=json ", kSecond)).out,
            "{\n  \"released\": 1\n}\n");
}

TEST_F(TensorCommandTest, RunUsesATensorByItsHandle) {
  const Output output = RunHere(
      absl::StrCat("run Scale --input x=tensor:", kFirst, " --input y=", Fixture("f4_vector")));

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  const v1::ExecuteRequest request = server_.last_request();
  EXPECT_EQ(request.invocations(0).inputs(0).tensor().resident_tensor(), "tensor-0");
  EXPECT_EQ(request.payloads_size(), 1);
}

TEST_F(TensorCommandTest, UnknownTensorsAreExplained) {
  const std::string commands[] = {
      "tensor download 00 --output " + directory_.File("out.npy"),
      "tensor renew 00",
  };
  for (const std::string& command : commands) {
    const Output output = RunHere(command);
    EXPECT_EQ(output.exit_code, ExitCode::kFailed) << command;
    EXPECT_THAT(output.err,
                AllOf(HasSubstr("opserve: error: NOT_FOUND: no tensor"),
                      HasSubstr("reason: tensor_unknown\n"),
                      HasSubstr("hint: its lease may have ended, or the handle is not yours")));
    EXPECT_THAT(output.out, IsEmpty());
  }
}

TEST_F(TensorCommandTest, FilesThatCannotBeWrittenAreUsageErrors) {
  RunHere(absl::StrCat("tensor upload ", Fixture("f2")));

  const Output output =
      RunHere(absl::StrCat("tensor download ", kFirst, " --output /none/out.npy"));

  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  EXPECT_THAT(output.err, HasSubstr("/none/out.npy"));
}

}  // namespace
}  // namespace opserve::cli
