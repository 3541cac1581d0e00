#include "server/config/config_text.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/status/status_macros.h"
#include "server/config/read_file.h"

namespace opserve::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Keeps the first error.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    // Later errors often follow from the first.
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::Status Invalid(absl::string_view name, absl::string_view value, absl::string_view valid) {
  return absl::InvalidArgumentError(absl::StrCat(name, "=", value, ": must be ", valid));
}

absl::Status CheckNumber(absl::string_view name, const config::Rule& rule, uint64_t value,
                         uint64_t type_max) {
  const uint64_t max = rule.has_max() ? rule.max() : type_max;
  if (value >= rule.min() && value <= max) return absl::OkStatus();
  return Invalid(name, absl::StrCat(value), absl::StrCat("from ", rule.min(), " to ", max));
}

absl::Status CheckRatio(absl::string_view name, const config::Rule& rule, double value) {
  const auto min = static_cast<double>(rule.min());
  const auto max = static_cast<double>(rule.max());
  if (value >= min && value <= max) return absl::OkStatus();  // NaN is neither
  return Invalid(name, absl::StrCat(value), absl::StrCat("from ", rule.min(), " to ", rule.max()));
}

absl::Status CheckDuration(absl::string_view name, const config::Rule& rule,
                           const std::string& text) {
  absl::Duration value;
  if (!absl::ParseDuration(text, &value)) {
    return Invalid(name, text, "a duration such as 500ms, 10s or 5m");
  }
  // ParseDuration knows "inf", which no rule allows.
  if (value < ToDuration(rule.shortest()) || value == absl::InfiniteDuration()) {
    return Invalid(name, text, absl::StrCat("at least ", rule.shortest()));
  }
  if (rule.has_longest() && value > ToDuration(rule.longest())) {
    return Invalid(name, text, absl::StrCat("at most ", rule.longest()));
  }
  return absl::OkStatus();
}

absl::Status CheckText(absl::string_view name, const config::Rule& rule, const std::string& text) {
  // Only durations have a shortest value.
  if (rule.has_shortest()) return CheckDuration(name, rule, text);
  const auto& valid = rule.one_of();
  if (valid.empty() || std::find(valid.begin(), valid.end(), text) != valid.end()) {
    return absl::OkStatus();
  }
  return Invalid(name, text, absl::StrCat("one of ", absl::StrJoin(valid, ", ")));
}

// Follows the descriptor, so that a new field is checked as soon as it has a rule.
absl::Status CheckMessage(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    // Bounds and defaults stand in server_config.proto alone.
    const config::Rule& rule = field.options().GetExtension(config::rule);
    const std::string name = absl::StrCat(prefix, field.name());
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      const int count = field.is_repeated() ? reflection.FieldSize(message, &field)
                                            : reflection.HasField(message, &field);
      for (int k = 0; k < count; ++k) {
        const Message& part = field.is_repeated()
                                  ? reflection.GetRepeatedMessage(message, &field, k)
                                  : reflection.GetMessage(message, &field);
        const std::string position = field.is_repeated() ? absl::StrCat("[", k, "]") : "";
        // The nesting of the schema bounds the recursion, not the file.
        OPSERVE_RETURN_IF_ERROR(CheckMessage(part, absl::StrCat(name, position, ".")));
      }
    } else if (field.is_repeated()) {
      continue;  // no rules for elements
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      OPSERVE_RETURN_IF_ERROR(
          CheckNumber(name, rule, reflection.GetUInt32(message, &field), UINT32_MAX));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      OPSERVE_RETURN_IF_ERROR(
          CheckNumber(name, rule, reflection.GetUInt64(message, &field), UINT64_MAX));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      OPSERVE_RETURN_IF_ERROR(CheckRatio(name, rule, reflection.GetDouble(message, &field)));
    } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      OPSERVE_RETURN_IF_ERROR(CheckText(name, rule, reflection.GetString(message, &field)));
    }
  }
  return absl::OkStatus();
}

void FillMessage(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      // A single message that is absent stays so: its presence is a setting (deposit).
      const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 0;
      for (int k = 0; k < count; ++k) {
        FillMessage(reflection.MutableRepeatedMessage(message, field, k));
      }
    } else if (field->is_repeated() || reflection.HasField(*message, field)) {
      continue;
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32) {
      reflection.SetUInt32(message, field, field->default_value_uint32());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64) {
      reflection.SetUInt64(message, field, field->default_value_uint64());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection.SetDouble(message, field, field->default_value_double());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection.SetBool(message, field, field->default_value_bool());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      reflection.SetString(message, field, field->default_value_string());
    }
  }
}

bool IsSame(const Message& a, const Message& b, const FieldDescriptor* field) {
  // A default that is written out is the same as one that is left out, in messages inside as well.
  // Where presence is a setting (deposit, Peer.uid), valid configurations differ in a value, too.
  google::protobuf::util::MessageDifferencer differencer;
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  return differencer.CompareWithFields(a, b, {field}, {field});
}

// "weight, uid": the fields in which they differ.
std::string DifferentFields(const Message& a, const Message& b) {
  std::vector<std::string> names;
  for (int i = 0; i < a.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = a.GetDescriptor()->field(i);
    if (!IsSame(a, b, field)) names.push_back(field->name());
  }
  return absl::StrJoin(names, ", ");
}

// A scalar's value or default.
std::string ValueText(const Message& message, const FieldDescriptor* field) {
  std::string text;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    text = message.GetReflection()->GetString(message, field);
    return text.empty() ? "none" : text;
  }
  google::protobuf::TextFormat::PrintFieldValueToString(message, field, /*index=*/-1, &text);
  return text;
}

void AddTenantChanges(const config::ServerConfig& a, const config::ServerConfig& b,
                      std::vector<std::string>* changes) {
  absl::flat_hash_map<absl::string_view, const config::Tenant*> before;
  for (const config::Tenant& tenant : a.tenant()) before[tenant.name()] = &tenant;
  for (const config::Tenant& tenant : b.tenant()) {
    // Taken out of `before`, so that it keeps those that were removed.
    const auto old = before.extract(tenant.name());
    if (old.empty()) {
      changes->push_back(absl::StrCat("tenant ", tenant.name(), ": added"));
    } else if (const std::string fields = DifferentFields(*old.mapped(), tenant); !fields.empty()) {
      changes->push_back(absl::StrCat("tenant ", tenant.name(), ": changed (", fields, ")"));
    }
  }
  for (const config::Tenant& tenant : a.tenant()) {
    if (before.contains(tenant.name())) {
      changes->push_back(absl::StrCat("tenant ", tenant.name(), ": removed"));
    }
  }
}

}  // namespace

absl::Duration ToDuration(absl::string_view text) {
  absl::Duration value;
  // The text has been checked, so the result needs no look.
  absl::ParseDuration(text, &value);
  return value;
}

absl::StatusOr<config::ServerConfig> ReadConfigFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFileAtRest(path);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read: ", text.status().message()));
  }
  return ParseConfig(*text, path);
}

absl::StatusOr<config::ServerConfig> ParseConfig(const std::string& text, absl::string_view name) {
  config::ServerConfig values;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &values)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ":", error.text()));
  }
  return values;
}

absl::Status CheckRules(const config::ServerConfig& values) { return CheckMessage(values, ""); }

void FillDefaults(config::ServerConfig* values) { FillMessage(values); }

std::string ToText(const config::ServerConfig& values) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(values, &text);
  return text;
}

std::string FieldsThatNeedRestart(const config::ServerConfig& a, const config::ServerConfig& b) {
  std::vector<std::string> names;
  for (int i = 0; i < config::ServerConfig::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = config::ServerConfig::descriptor()->field(i);
    if (field->options().GetExtension(config::rule).reloadable()) continue;
    if (!IsSame(a, b, field)) names.push_back(field->name());
  }
  return absl::StrJoin(names, ", ");
}

std::vector<std::string> Changes(const config::ServerConfig& a, const config::ServerConfig& b) {
  constexpr size_t kMaxChanges = 100;
  std::vector<std::string> changes;
  for (int i = 0; i < config::ServerConfig::descriptor()->field_count(); ++i) {
    const FieldDescriptor* field = config::ServerConfig::descriptor()->field(i);
    if (!field->options().GetExtension(config::rule).reloadable()) continue;
    if (field->is_repeated()) {
      AddTenantChanges(a, b, &changes);  // the only list that a reload takes
    } else if (ValueText(a, field) != ValueText(b, field)) {
      changes.push_back(
          absl::StrCat(field->name(), ": ", ValueText(a, field), " -> ", ValueText(b, field)));
    }
  }
  // The list goes into an answer and a line of the log.
  if (changes.size() > kMaxChanges) {
    const size_t left_out = changes.size() - (kMaxChanges - 1);
    changes.resize(kMaxChanges - 1);
    changes.push_back(absl::StrCat("and ", left_out, " more"));
  }
  return changes;
}

}  // namespace opserve::server
