// Outputs that stay on the daemon, and results that make no message, by `opserve run`.
#include "client/cli/commands/large_results.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/arrays/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/codec/crc32c.h"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

grpc::Status TooLarge(const std::string& argument) {
  v1::ErrorDetail detail;
  detail.set_reason("too_large");
  detail.set_argument(argument);
  v1::StatusDetails details;
  details.add_details()->PackFrom(detail);
  return {grpc::StatusCode::INVALID_ARGUMENT, "too large", details.SerializeAsString()};
}

// Keeps what a request wants to keep, under a handle made of the output's name. Other results are
// three floats, or too large if there is no `sends`.
class KeepingTest : public CommandLineTest {
 protected:
  KeepingTest() {
    server_.set_execute([this](auto*, const v1::ExecuteRequest& request, auto* response) {
      ++calls_;
      return Answer(request, response);
    });
    server_.tensors().set_download([this](auto*, const v1::DownloadRequest& request, auto* writer) {
      downloads_.push_back(request.handle());
      v1::DownloadResponse header;
      header.mutable_header()->set_dtype(v1::DATA_TYPE_FLOAT);
      header.mutable_header()->add_shape(3);
      header.mutable_header()->set_chunk_bytes(12);
      writer->Write(header);
      if (!downloads_succeed_) return grpc::Status(grpc::StatusCode::NOT_FOUND, "it is gone");
      v1::DownloadResponse chunk;
      chunk.set_data(std::string(12, '\0'));
      chunk.set_crc32c(codec::Crc32c(chunk.data()));
      writer->Write(chunk);
      return grpc::Status::OK;
    });
  }

  Output RunScale(const std::string& flags) {
    return RunHere(absl::StrCat("run Scale --input x=random:3 --input y=random:scalar ", flags));
  }

  grpc::Status Answer(const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    std::vector<v1::WantedResult> wanted(request.results().begin(), request.results().end());
    if (wanted.empty()) wanted.emplace_back().set_output("out");
    for (const v1::WantedResult& one : wanted) {
      if (!one.has_keep() && !sends_) return TooLarge(one.output());
      v1::Result* result = response->add_results();
      result->mutable_source()->set_output(one.output());
      result->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
      result->mutable_tensor()->add_shape(3);
      if (one.has_keep()) {
        result->mutable_tensor()->set_resident_tensor("kept-" + one.output());
        result->mutable_kept()->mutable_lease_end()->set_seconds(1700000000);
        result->mutable_kept()->set_device(2);
      } else {
        result->mutable_tensor()->set_payload(static_cast<uint32_t>(response->payloads_size()));
        response->add_payloads(std::string(12, '\0'));
      }
    }
    return grpc::Status::OK;
  }

  TemporaryDirectory directory_;
  bool sends_ = true;
  bool downloads_succeed_ = true;
  int calls_ = 0;
  std::vector<std::string> downloads_;  // their handles
};

TEST_F(KeepingTest, OutputsThatAreKeptDoNotTravel) {
  const Output text = RunScale("--keep out --lease=90s");

  EXPECT_EQ(text.exit_code, ExitCode::kOk) << text.err;
  EXPECT_EQ(text.out,
            "output     out, kept by the daemon\n"
            "handle     6b6570742d6f7574\n"
            "tensor     FLOAT [3]  12 B\n"
            "device     2\n"
            "lease end  2023-11-14 22:13:20 UTC\n");
  ASSERT_EQ(server_.last_request().results_size(), 1);
  EXPECT_EQ(server_.last_request().results(0).keep().lease().seconds(), 90);

  const auto json = nlohmann::json::parse(RunScale("--keep out --format=json").out);
  EXPECT_EQ(json.dump(),
            R"({"kept":[{"bytes":12,"device":2,"dtype":"FLOAT","handle":"6b6570742d6f7574",)"
            R"("lease_end":"2023-11-14T22:13:20Z","output":"out","shape":[3]}],"results":[]})");
  EXPECT_FALSE(server_.last_request().results(0).keep().has_lease());
}

TEST_F(KeepingTest, AnOutputCanBeKeptAndWrittenToAFile) {
  const std::string path = directory_.File("out.npy");

  const Output output = RunScale("--keep out --output " + path);

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("written to " + path), HasSubstr("6b6570742d6f7574")));
  EXPECT_EQ(ReadNpy(path)->shape(), std::vector<int64_t>({3}));
  const v1::ExecuteRequest request = server_.last_request();
  ASSERT_EQ(request.results_size(), 2);
  EXPECT_FALSE(request.results(0).has_keep());
  EXPECT_TRUE(request.results(1).has_keep());
}

TEST_F(KeepingTest, ADaemonThatKeepsNothingBreaksTheProtocol) {
  server_.set_execute(&TestServer::Echo);
  const Output output = RunScale("--keep out");
  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.err, HasSubstr("the daemon kept 0 outputs of 1"));
}

TEST_F(KeepingTest, ResultsThatMakeNoMessageAreDownloadedAndReleased) {
  sends_ = false;
  const std::string path = directory_.File("out.npy");

  const Output output = RunScale("--output " + path);

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(StartsWith("out  FLOAT [3]  12 B\n"),
                                HasSubstr("written to " + path), Not(HasSubstr("kept"))));
  EXPECT_EQ(ReadNpy(path)->shape(), std::vector<int64_t>({3}));
  EXPECT_EQ(calls_, 2);
  EXPECT_THAT(downloads_, ElementsAre("kept-out"));
  EXPECT_THAT(server_.tensors().releases(), ElementsAre("kept-out"));
}

TEST_F(KeepingTest, AKeptOutputThatMakesNoMessageIsDownloadedAndStays) {
  sends_ = false;
  const std::string path = directory_.File("out.npy");

  const Output output = RunScale("--keep out --lease=90s --output " + path);

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("written to " + path), HasSubstr("6b6570742d6f7574")));
  ASSERT_EQ(server_.last_request().results_size(), 1) << "kept once";
  EXPECT_EQ(server_.last_request().results(0).keep().lease().seconds(), 90);
  EXPECT_THAT(downloads_, ElementsAre("kept-out"));
  EXPECT_THAT(server_.tensors().releases(), ElementsAre());
}

TEST_F(KeepingTest, AResultThatCannotBeDownloadedIsReleased) {
  sends_ = false;
  downloads_succeed_ = false;

  const Output output = RunScale("");

  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.err, HasSubstr("NOT_FOUND: it is gone"));
  EXPECT_THAT(server_.tensors().releases(), ElementsAre("kept-out"));
}

TEST_F(KeepingTest, OfLargeListsTheNamedTensorsAreDownloaded) {
  server_.add_operator(R"(
    name: "Split"
    inputs { name: "self" dtypes: DATA_TYPE_FLOAT }
    outputs { name: "left_out" dtypes: DATA_TYPE_FLOAT masked: true }
    outputs { name: "mean" dtypes: DATA_TYPE_FLOAT masked: true }
    outputs { name: "parts" dtypes: DATA_TYPE_FLOAT list: true })");
  sends_ = false;
  const std::string path = directory_.File("out.npy");

  const Output output =
      RunHere("run Split --input self=random:3 --want mean --output parts.1=" + path);

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(downloads_, ElementsAre("kept-mean", "kept-parts.1"));

  const Output unnamed = RunHere("run Split --input self=random:3");
  EXPECT_EQ(unnamed.exit_code, ExitCode::kFailed);
  EXPECT_THAT(unnamed.err, HasSubstr("hint: name those tensors of a list with --output"));
}

TEST_F(KeepingTest, AMessageAboveTheLimitIsNotRepeatedAndSaysTheWays) {
  server_.set_execute([this](auto*, const auto&, auto*) {
    ++calls_;
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        "Received message larger than max (2400123 vs. 1048576)");
  });

  const Output output = RunScale("");

  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_EQ(output.err,
            "opserve: error: INVALID_ARGUMENT: the message has 2400123 bytes, at most 1048576 "
            "allowed (--max_message_bytes); upload large inputs as resident tensors, or put them "
            "into shared memory\n"
            "  reason: too_large\n"
            "  hint: --shm takes inputs of any size to an opserved --enable_shm on this machine; "
            "for others, see \"opserve help tensor upload\"\n");
  EXPECT_EQ(calls_, 1);
}

TEST_F(KeepingTest, InputsAreSharedOnlyWithADaemonThatTakesThem) {
  const Output output = RunScale("--shm");
  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.err, HasSubstr("opserved --enable_shm"));
  EXPECT_EQ(calls_, 0);
}

}  // namespace
}  // namespace opserve::cli
