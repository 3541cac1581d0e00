#include "client/cli/proto_json.h"

#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"

namespace opserve::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Json = nlohmann::ordered_json;

// "DataType" -> "DATA_TYPE_", which every value's name begins with.
std::string EnumPrefix(absl::string_view enum_name) {
  std::string prefix;
  for (const char letter : enum_name) {
    if (absl::ascii_isupper(letter) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(letter));
  }
  return absl::StrCat(prefix, "_");
}

void Simplify(const FieldDescriptor& field, Json& value);

void Simplify(const Descriptor& type, Json& object) {
  if (!object.is_object()) return;  // a timestamp is a string already
  for (auto& [name, value] : object.items()) {
    const FieldDescriptor& field = *type.FindFieldByName(name);
    if (!field.is_repeated()) {
      Simplify(field, value);
    } else {
      for (Json& element : value) Simplify(field, element);
    }
  }
}

// From protobuf's JSON, which has 64-bit integers in strings and the whole names of enum values.
void Simplify(const FieldDescriptor& field, Json& value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      value = std::stoll(value.get_ref<const std::string&>());
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      value = std::stoull(value.get_ref<const std::string&>());
      break;
    case FieldDescriptor::CPPTYPE_ENUM:
      if (value.is_string()) {  // not a number of a later protocol
        value = absl::StripPrefix(value.get_ref<const std::string&>(),
                                  EnumPrefix(field.enum_type()->name()));
      }
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Simplify(*field.message_type(), value);
      break;
    default:
      break;
  }
}

}  // namespace

Json TimeToJson(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!MessageToJsonString(message, &text, options).ok()) return nullptr;
  Json json = Json::parse(text);
  Simplify(*message.GetDescriptor(), json);
  return json;
}

}  // namespace opserve::cli
