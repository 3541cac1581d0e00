#include "tests/integration/former_client.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.pb.h"
#include "opserve/v1/error.pb.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::server {
namespace {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;

// Not compared: another run, another version or another wording has another.
constexpr const char* kVarying[] = {
    // Times.
    "google.protobuf.Timestamp.seconds", "google.protobuf.Timestamp.nanos",
    "opserve.v1.Receipt.read_ns", "opserve.v1.Receipt.validate_ns", "opserve.v1.Receipt.queue_ns",
    "opserve.v1.Receipt.h2d_ns", "opserve.v1.Receipt.prepare_ns", "opserve.v1.Receipt.execute_ns",
    "opserve.v1.Receipt.d2h_ns", "opserve.v1.Receipt.write_ns", "opserve.v1.Receipt.total_ns",
    // Names of a moment.
    "opserve.v1.Receipt.trace_id", "opserve.v1.Receipt.span_id", "opserve.v1.UploadResponse.handle",
    // The daemon's way to the result, and its cost.
    "opserve.v1.Receipt.lane", "opserve.v1.Receipt.workspace_bytes",
    "opserve.v1.Receipt.copied_to_device_bytes", "opserve.v1.Receipt.copied_from_device_bytes",
    "opserve.v1.Receipt.plan_hits", "opserve.v1.Receipt.plan_misses",
    "opserve.v1.Receipt.device_memory_bytes", "opserve.v1.Receipt.pool_outcome",
    "opserve.v1.DeviceStatus.memory_total_bytes", "opserve.v1.DeviceStatus.memory_used_bytes",
    "opserve.v1.DeviceStatus.pool_reserved_bytes", "opserve.v1.DeviceStatus.pool_allocated_bytes",
    "opserve.v1.DeviceStatus.completed_requests", "opserve.v1.DeviceStatus.resident_tensors",
    "opserve.v1.DeviceStatus.resident_bytes",
    // Versions.
    "opserve.v1.GetServerStatusResponse.version", "opserve.v1.GetServerStatusResponse.runtime",
    "inference.ServerMetadataResponse.version",
    // Texts for people.
    "opserve.v1.ErrorDetail.runtime_message", "inference.ModelStreamInferResponse.error_message",
    "opserve.v1.OperatorDescriptor.summary", "opserve.v1.OperatorDescriptor.documentation",
    "opserve.v1.InputDescriptor.documentation", "opserve.v1.AttributeDescriptor.documentation",
    "opserve.v1.OutputDescriptor.documentation",
    // Likewise, and lists of dtypes; their keys are compared.
    "inference.ModelMetadataResponse.PropertiesEntry.value",
    "inference.ModelParameter.string_value"};

// Of these answers, lists may grow: by new operators, dtypes, attributes and extensions.
constexpr const char* kGrowing[] = {
    "opserve.v1.ListOperatorsResponse", "inference.ServerMetadataResponse",
    "inference.ModelMetadataResponse", "inference.ModelConfigResponse",
    "inference.RepositoryIndexResponse"};
constexpr const char* kGrowingSets[] = {"opserve.v1.InputDescriptor.dtypes",
                                        "opserve.v1.OutputDescriptor.dtypes",
                                        "inference.ServerMetadataResponse.extensions"};
constexpr std::pair<const char*, const char*> kGrowingMaps[] = {
    {"opserve.v1.ListOperatorsResponse.operators", "opserve.v1.OperatorDescriptor.name"},
    {"opserve.v1.OperatorDescriptor.attributes", "opserve.v1.AttributeDescriptor.name"},
    {"opserve.v1.AttributeDescriptor.names", "opserve.v1.NamedValue.name"},
    {"inference.RepositoryIndexResponse.models",
     "inference.RepositoryIndexResponse.ModelIndex.name"}};

template <typename T>
T OrAbort(T value, const std::string& name) {
  if (value) return value;
  std::fprintf(stderr, "%s is not in the stored descriptors\n", name.c_str());
  std::abort();
}

bool MayGrow(const std::string& type) {
  return std::find(std::begin(kGrowing), std::end(kGrowing), type) != std::end(kGrowing);
}

uint64_t IdOf(const std::string& answer) {
  v1::ExecuteStreamResponse response;
  response.ParseFromString(answer);
  return response.id();
}

void SortById(std::vector<std::string>& answers) {
  std::sort(answers.begin(), answers.end(),
            [](const std::string& a, const std::string& b) { return IdOf(a) < IdOf(b); });
}

}  // namespace

FormerClient::FormerClient() : factory_(&pool_) {
  std::ifstream file(OPSERVE_TEST_DATA_DIR "/wire/descriptors.binpb", std::ios::binary);
  google::protobuf::FileDescriptorSet files;
  OrAbort(files.ParseFromIstream(&file), "a set of files");
  for (const auto& proto : files.file()) OrAbort(pool_.BuildFile(proto), proto.name());

  grown_.set_scope(MessageDifferencer::PARTIAL);
  for (const char* name : kGrowingSets) grown_.TreatAsSet(Field(name));
  for (const auto& [list, key] : kGrowingMaps) grown_.TreatAsMap(Field(list), Field(key));
  for (MessageDifferencer* differencer : {&same_, &grown_}) {
    for (const char* name : kVarying) differencer->IgnoreField(Field(name));
  }
}

const google::protobuf::FieldDescriptor* FormerClient::Field(const std::string& name) const {
  return OrAbort(pool_.FindFieldByName(name), name);
}

const google::protobuf::MethodDescriptor* FormerClient::Method(const std::string& name) const {
  return pool_.FindMethodByName(absl::StrReplaceAll(name.substr(1), {{"/", "."}}));
}

std::unique_ptr<Message> FormerClient::Decode(const std::string& type, const std::string& bytes) {
  std::unique_ptr<Message> message(
      factory_.GetPrototype(OrAbort(pool_.FindMessageTypeByName(type), type))->New());
  if (!message->ParseFromString(bytes)) return nullptr;
  message->DiscardUnknownFields();
  return message;
}

std::string FormerClient::Text(const std::string& type, const std::string& bytes) {
  const std::unique_ptr<Message> message = Decode(type, bytes);
  return message == nullptr ? "?" : message->ShortDebugString();
}

std::string FormerClient::MessageDifference(const std::string& type, const std::string& before,
                                            const std::string& now) {
  const std::unique_ptr<Message> then = Decode(type, before);
  const std::unique_ptr<Message> today = Decode(type, now);
  if (then == nullptr || today == nullptr) return absl::StrCat("is no ", type);
  MessageDifferencer& differencer = MayGrow(type) ? grown_ : same_;
  std::string difference;
  differencer.set_report_ignores(false);
  differencer.ReportDifferencesToString(&difference);
  if (differencer.Compare(*then, *today)) return "";
  return absl::StrCat("differs: ", difference);
}

std::string FormerClient::ErrorDifference(const std::string& before, const std::string& now) {
  v1::StatusDetails then, today;
  if (!then.ParseFromString(before) || !today.ParseFromString(now)) return "the error is not one";
  if (then.code() != today.code()) return "the error has another code";
  if (then.details_size() != today.details_size()) return "the error has other details";
  for (int i = 0; i < then.details_size(); ++i) {
    if (then.details(i).type_url() != today.details(i).type_url())
      return "the error's detail has another type";
    const std::string difference = MessageDifference(
        "opserve.v1.ErrorDetail", then.details(i).value(), today.details(i).value());
    if (!difference.empty()) return absl::StrCat("the error's detail ", difference);
  }
  return "";
}

std::string FormerClient::Difference(const RecordedCall& before, const RecordedCall& now) {
  if (before.code != now.code) return absl::StrCat("status was ", before.code, ", is ", now.code);
  if (before.answers.size() != now.answers.size()) {
    return absl::StrCat("there were ", before.answers.size(), " answers, are ", now.answers.size());
  }
  std::string difference = ErrorDifference(before.error_details, now.error_details);
  if (!difference.empty()) return difference;
  for (const auto& [key, value] : before.trailers) {
    const auto found = now.trailers.find(key);
    if (found == now.trailers.end()) return absl::StrCat("trailer ", key, " is missing");
    if (found->second != value)
      return absl::StrCat("trailer ", key, " was ", value, ", is ", found->second);
  }
  std::vector<std::string> then = before.answers;
  std::vector<std::string> today = now.answers;
  if (then.empty()) return "";
  const std::string type =
      OrAbort(Method(before.method), before.method)->output_type()->full_name();
  if (type == "opserve.v1.ExecuteStreamResponse") {
    SortById(then);
    SortById(today);
  }
  for (size_t i = 0; i < then.size(); ++i) {
    difference = MessageDifference(type, then[i], today[i]);
    if (!difference.empty()) return absl::StrCat("answer ", i, " ", difference);
  }
  return "";
}

}  // namespace opserve::server
