#include "server/config/flags.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/message.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Letters to insert, delete or replace to turn one name into the other.
// Levenshtein's distance, one row of its table at a time.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  std::vector<size_t> row(to.size() + 1);  // distances of the letters so far to each prefix of `to`
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] != to[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

absl::Status UnknownFlag(absl::string_view name) {
  std::string closest;
  // A name at a distance of half its length is another word.
  constexpr size_t kLongestName = 64;
  size_t distance = name.size() <= kLongestName ? name.size() / 2 + 1 : 0;
  for (const auto* message : {config::Command::descriptor(), config::ServerConfig::descriptor()}) {
    for (const FieldDescriptor* field : FlagsOf(*message)) {
      // A long name is no misspelt flag, and would take long to compare.
      const size_t candidate = distance == 0 ? 0 : EditDistance(name, field->name());
      if (candidate >= distance) continue;
      distance = candidate;
      closest = field->name();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown flag --", name.substr(0, kLongestName),
      closest.empty() ? "" : absl::StrCat("; did you mean --", closest, "?"), "; see --help"));
}

absl::Status WrongValue(const FieldDescriptor& field, absl::string_view value,
                        absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(field.name(), "=", value, ": \"", value, "\" is not ", problem));
}

// Sets a field, or adds an element to a list. Bounds are checked later, together with the file's
// values.
absl::Status SetValue(const FieldDescriptor& field, absl::string_view text, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      if (field.is_repeated()) {
        reflection.AddString(message, &field, std::string(text));
      } else {
        reflection.SetString(message, &field, std::string(text));
      }
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_BOOL: {
      bool value = false;
      if (!absl::SimpleAtob(text, &value)) return WrongValue(field, text, "true or false");
      reflection.SetBool(message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint32_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return WrongValue(field, text, "a number");
      reflection.SetUInt32(message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return WrongValue(field, text, "a number");
      reflection.SetUInt64(message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_INT32: {  // lists of ids only
      int32_t value = 0;
      if (!absl::SimpleAtoi(text, &value)) return WrongValue(field, text, "a number");
      reflection.AddInt32(message, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) return WrongValue(field, text, "a number");
      reflection.SetDouble(message, &field, value);
      return absl::OkStatus();
    }
    default:
      return absl::InternalError(absl::StrCat("--", field.name(), " has a type without flags"));
  }
}

absl::Status SetFlag(const FieldDescriptor& field, absl::string_view text, Message* message) {
  if (!field.is_repeated()) return SetValue(field, text, message);
  // An element of no letters would be an error instead.
  if (text.empty()) return absl::OkStatus();  // an empty list
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    OPSERVE_RETURN_IF_ERROR(SetValue(field, part, message));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<const FieldDescriptor*> FlagsOf(const google::protobuf::Descriptor& message) {
  std::vector<const FieldDescriptor*> flags;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor* field = message.field(i);
    const bool is_flag = field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE &&
                         !field->options().GetExtension(config::rule).file_only();
    if (is_flag) flags.push_back(field);
  }
  return flags;
}

absl::StatusOr<CommandLine> CommandLine::Parse(absl::Span<const char* const> arguments) {
  CommandLine line;
  // The flag of this name and the message that has it; null: there is none.
  const auto find = [&line](absl::string_view name) -> std::pair<const FieldDescriptor*, Message*> {
    for (Message* message :
         {static_cast<Message*>(&line.command_), static_cast<Message*>(&line.values_)}) {
      const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(std::string(name));
      const auto flags = FlagsOf(*message->GetDescriptor());
      if (std::find(flags.begin(), flags.end(), field) != flags.end()) return {field, message};
    }
    return {nullptr, nullptr};
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view text = arguments[i];
    if (!absl::ConsumePrefix(&text, "--") || text.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unexpected argument \"", arguments[i], "\"; see --help"));
    }
    const size_t equals = text.find('=');
    bool has_value = equals != absl::string_view::npos;
    absl::string_view value = has_value ? text.substr(equals + 1) : "";
    const std::string name = absl::StrReplaceAll(text.substr(0, equals), {{"-", "_"}});
    auto [field, message] = find(name);
    absl::string_view negated = name;
    // Names of flags win over negations.
    if (field == nullptr && !has_value && absl::ConsumePrefix(&negated, "no")) {
      absl::ConsumePrefix(&negated, "_");
      std::tie(field, message) = find(negated);
      // --noname and --no-name are for booleans alone.
      if (field != nullptr && field->cpp_type() != FieldDescriptor::CPPTYPE_BOOL) field = nullptr;
      value = "false";
      has_value = true;
    }
    if (field == nullptr) return UnknownFlag(name);
    if (!has_value && field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      value = "true";
    } else if (!has_value) {
      if (++i == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
      }
      // The next argument, even if it begins with dashes.
      value = arguments[i];
    }
    OPSERVE_RETURN_IF_ERROR(SetFlag(*field, value, message));
    if (message == &line.values_) line.given_.push_back(field);
  }
  return line;
}

void CommandLine::Override(config::ServerConfig* values) const {
  // Cleared first: merging appends to lists, and an empty list is not seen by it.
  for (const FieldDescriptor* field : given_) values->GetReflection()->ClearField(values, field);
  values->MergeFrom(values_);
}

}  // namespace opserve::server
