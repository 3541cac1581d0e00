#include "server/kserve/known_inferences.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "server/run/plan_cache.h"

namespace opserve::server {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr uint32_t kIdTag = WireFormatLite::MakeTag(inference::ModelInferRequest::kIdFieldNumber,
                                                    WireFormatLite::WIRETYPE_LENGTH_DELIMITED);

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool HasTypedContents(const inference::ModelInferRequest& message) {
  return std::any_of(message.inputs().begin(), message.inputs().end(),
                     [](const auto& input) { return input.has_contents(); });
}

}  // namespace

std::optional<InferenceHeader> SplitInferenceHeader(absl::string_view header) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(header.data()),
                                               static_cast<int>(header.size()));
  InferenceHeader split;
  const auto position = [&input] { return static_cast<size_t>(input.CurrentPosition()); };
  size_t copied = 0;
  while (true) {
    const size_t begin = position();
    const uint32_t tag = input.ReadTag();
    if (tag == 0) break;
    if (tag != kIdTag) {
      if (!WireFormatLite::SkipField(&input, tag)) return std::nullopt;
      continue;
    }
    uint32_t bytes = 0;
    if (!input.ReadVarint32(&bytes)) return std::nullopt;
    split.id = header.substr(position(), bytes);
    if (!input.Skip(static_cast<int>(bytes)) || !IsAscii(split.id)) return std::nullopt;
    absl::StrAppend(&split.text, header.substr(copied, begin - copied));
    copied = position();
  }
  if (!input.ConsumedEntireMessage()) return std::nullopt;
  absl::StrAppend(&split.text, header.substr(copied));
  return split;
}

std::shared_ptr<const Program> KnownInferences::Candidate::Keep(
    const codec::PayloadMessage& /*message*/, const ProgramCall& bound) {
  const bool is_repeatable = request_->task.request.is_repeatable();
  const bool may_keep = known_.programs_.MayKeep(header_, is_repeatable, bound) &&
                        !HasTypedContents(request_->message);
  if (!may_keep) return bound.program;
  request_->header = std::move(header_);
  request_->program = WithPlans(*bound.program);
  known_.programs_.Keep(request_);
  return request_->program;
}

}  // namespace opserve::server
