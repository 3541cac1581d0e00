#include "client/cli/tensor_files.h"

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "client/cli/array_file.h"
#include "client/cli/array_output.h"
#include "client/cli/handle_lookup.h"
#include "client/cli/progress_bar.h"
#include "client/cli/tensor_text.h"

namespace opserve::cli {
namespace {

constexpr char kDownloadHint[] = "see \"opserve help tensor download\"";

void WriteUploaded(const ResidentTensor& tensor, uint64_t num_bytes, Session& session) {
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, ResidentTensorToJson(tensor, num_bytes));
  }
  WriteResidentTensor(tensor, num_bytes, session.terminal.out);
}

void WriteDownloaded(const Result& tensor, const std::string& file, Session& session) {
  if (session.format == OutputFormat::kJson) {
    return WriteJson(session.terminal.out, {{"dtype", std::string(DataTypeName(tensor.dtype()))},
                                            {"shape", tensor.shape()},
                                            {"bytes", tensor.num_bytes()},
                                            {"file", file}});
  }
  ReportsBeside(file, session.terminal).out
      << SizedTensorText(tensor.dtype(), tensor.shape(), tensor.num_bytes()) << "\nwritten to "
      << file << "\n";
}

TransferProgress ShowOn(ProgressBar& bar) {
  return [&bar](uint64_t done_bytes, uint64_t total_bytes) {
    bar.Update(done_bytes, total_bytes, absl::Now());
  };
}

}  // namespace

std::optional<Failure> RunUpload(const TensorUpload& upload, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  const absl::StatusOr<Tensor> tensor =
      ReadArrayArgument(upload.file, /*usual_name=*/"", session.terminal.input);
  if (!tensor.ok()) return UsageFailure(tensor.status(), "see \"opserve help tensor upload\"");

  absl::StatusOr<ResidentTensor> resident;
  {
    ProgressBar bar(session.terminal, "upload", absl::Now());
    resident = client.Upload(*tensor, {.lease = upload.lease,
                                       .device = upload.device,
                                       .timeout = session.timeout,
                                       .on_progress = ShowOn(bar)});
  }
  if (!resident.ok()) return CallFailure(session, client, resident.status());
  WriteUploaded(*resident, tensor->storage().size(), session);
  return std::nullopt;
}

std::optional<Failure> RunDownload(const TensorDownload& download, Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  absl::Status status = CheckOutputName(download.file);
  status.Update(CheckOutputPath(download.file, session.format, session.terminal));
  if (!status.ok()) return UsageFailure(status, kDownloadHint);
  auto found = FindHandles({download.handle}, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const std::string& handle = std::get<std::vector<std::string>>(found).front();

  absl::StatusOr<Result> result;
  {
    ProgressBar bar(session.terminal, "download", absl::Now());
    result = client.Download(handle, {.timeout = session.timeout, .on_progress = ShowOn(bar)});
  }
  if (!result.ok()) return CallFailure(session, client, result.status());
  status = WriteOutput(download.file, *result, session.terminal);
  if (!status.ok()) return UsageFailure(status);
  WriteDownloaded(*result, download.file, session);
  return std::nullopt;
}

}  // namespace opserve::cli
