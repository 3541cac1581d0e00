#include "client/cli/proto_json.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/timestamp.pb.h"

namespace opserve::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
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

Json EnumName(const EnumValueDescriptor* value) {
  return std::string(absl::StripPrefix(value->name(), EnumPrefix(value->type()->name())));
}

// Reads a field's value, or with `index` an element of a repeated one, through one of two getters.
struct FieldReader {
  const Message& message;
  const FieldDescriptor* field;
  int index;  // -1: not repeated

  template <typename T>
  T Get(T (Reflection::*get)(const Message&, const FieldDescriptor*) const,
        T (Reflection::*get_repeated)(const Message&, const FieldDescriptor*, int) const) const {
    const Reflection& reflection = *message.GetReflection();
    return index < 0 ? (reflection.*get)(message, field)
                     : (reflection.*get_repeated)(message, field, index);
  }
};

Json ValueToJson(const FieldReader& reader) {
  switch (reader.field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reader.Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return reader.Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reader.Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reader.Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reader.Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return reader.Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reader.Get(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(reader.Get(&Reflection::GetEnum, &Reflection::GetRepeatedEnum));
    case FieldDescriptor::CPPTYPE_STRING:
      return reader.Get(&Reflection::GetString, &Reflection::GetRepeatedString);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  const Reflection& reflection = *reader.message.GetReflection();
  return ToJson(reader.index < 0
                    ? reflection.GetMessage(reader.message, reader.field)
                    : reflection.GetRepeatedMessage(reader.message, reader.field, reader.index));
}

}  // namespace

Json TimeToJson(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

Json ToJson(const Message& message) {
  if (const auto* timestamp = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return TimeToJson(absl::FromUnixSeconds(timestamp->seconds()) +
                      absl::Nanoseconds(timestamp->nanos()));
  }
  Json json = Json::object();
  const google::protobuf::Descriptor& descriptor = *message.GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor* field = descriptor.field(i);
    const Reflection& reflection = *message.GetReflection();
    if (field->is_repeated()) {
      Json& list = json[field->name()] = Json::array();
      for (int j = 0; j < reflection.FieldSize(message, field); ++j) {
        list.push_back(ValueToJson({message, field, j}));
      }
    } else if (!field->has_presence() || reflection.HasField(message, field)) {
      json[field->name()] = ValueToJson({message, field, -1});
    }
  }
  return json;
}

}  // namespace opserve::cli
