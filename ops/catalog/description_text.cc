#include "ops/catalog/description_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "ops/catalog/description.pb.h"
#include "ops/catalog/descriptor_text.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// Messages in messages; a description needs three levels.
constexpr int kMaxDepth = 8;

absl::Status Wrong(absl::string_view path, int line, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", problem));
}

// Keeps the first error of the parser, which goes on after it.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int /*column*/, const std::string& message) override {
    if (!message_.empty()) return;
    line_ = std::max(line, 0) + 1;
    message_ = message;
  }
  int line() const { return line_; }
  const std::string& message() const { return message_; }

 private:
  int line_ = 1;
  std::string message_;
};

// The parser sees some mistakes only at the next token: then the line is that of the last word
// before it which the message quotes.
int LineOfMistake(absl::string_view text, const FirstError& error) {
  const std::vector<absl::string_view> parts = absl::StrSplit(error.message(), '"');
  if (parts.size() < 3 || !absl::StrContains(parts[0], "Unknown enumeration value")) {
    return error.line();
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (int line = std::min(error.line(), static_cast<int>(lines.size())); line > 0; --line) {
    if (absl::StrContains(lines[static_cast<size_t>(line - 1)], parts[1])) return line;
  }
  return error.line();
}

// The line of a field; that of the message around it if the parser has not noted one.
int LineOf(const TextFormat::ParseInfoTree& tree, const FieldDescriptor* field, int index,
           int otherwise) {
  const TextFormat::ParseLocation at = tree.GetLocation(field, index);
  return at.line < 0 ? otherwise : at.line + 1;
}

// Texts go to logs, terminals and JSON, where neither control characters nor broken UTF-8 belong.
bool IsPrintable(const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < ' ' && c != '\n' && c != '\t') || byte == 0x7F) return false;
  }
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(),
                                                             static_cast<int>(text.size()));
}

// The first text in `message` that is not printable; OK: there is none.
absl::Status CheckTexts(const Message& message, const TextFormat::ParseInfoTree& tree,
                        absl::string_view path, int line) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    // A single field has index -1 in the tree of locations.
    const int count = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const int at = LineOf(tree, field, index, line);
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& nested = field->is_repeated()
                                    ? message.GetReflection()->GetRepeatedMessage(message, field, i)
                                    : message.GetReflection()->GetMessage(message, field);
        const TextFormat::ParseInfoTree* inside = tree.GetTreeForNested(field, index);
        if (inside != nullptr) OPSERVE_RETURN_IF_ERROR(CheckTexts(nested, *inside, path, at));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        const std::string text = field->is_repeated()
                                     ? message.GetReflection()->GetRepeatedString(message, field, i)
                                     : message.GetReflection()->GetString(message, field);
        if (IsPrintable(text)) continue;
        return Wrong(path, at,
                     absl::StrCat(field->name(), ": has a control character or is no UTF-8"));
      }
    }
  }
  return absl::OkStatus();
}

// The line of `place` in the text of an operator.
int LineOf(const TextFormat::ParseInfoTree& tree, const DescriptionPlace& place, int line) {
  if (place.field == nullptr) return line;
  const FieldDescriptor* field = description::Operator::descriptor()->FindFieldByName(place.field);
  if (field == nullptr) return line;
  line = LineOf(tree, field, place.index, line);
  if (place.part == nullptr || field->message_type() == nullptr) return line;
  const TextFormat::ParseInfoTree* inside = tree.GetTreeForNested(field, place.index);
  const FieldDescriptor* part = field->message_type()->FindFieldByName(place.part);
  if (inside == nullptr || part == nullptr) return line;
  return LineOf(*inside, part, place.part_index, line);
}

absl::StatusOr<DescribedOperator> ReadOperator(const description::Operator& described,
                                               const TextFormat::ParseInfoTree& tree,
                                               absl::string_view path, int line) {
  DescribedOperator made;
  made.line = line;
  // JSON keeps the names of the file, which ReadDescriptor looks for.
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  const auto status = google::protobuf::util::MessageToJsonString(described, &made.json, options);
  if (!status.ok()) return Wrong(path, line, status.ToString());
  DescriptionPlace place;
  absl::StatusOr<OperatorDescriptor> descriptor = ReadDescriptor(made.json, &place);
  if (!descriptor.ok()) {
    return Wrong(path, LineOf(tree, place, line), descriptor.status().message());
  }
  made.descriptor = *std::move(descriptor);
  return made;
}

}  // namespace

absl::StatusOr<Descriptions> ReadDescriptions(const std::string& text, absl::string_view path) {
  description::Operators message;
  FirstError error;
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  parser.SetRecursionLimit(kMaxDepth);
  if (!parser.ParseFromString(text, &message)) {
    return Wrong(path, LineOfMistake(text, error), error.message());
  }
  // Before the operators are read: their errors quote texts.
  OPSERVE_RETURN_IF_ERROR(CheckTexts(message, tree, path, 1));

  Descriptions descriptions;
  const auto* fields = description::Operators::descriptor();
  descriptions.library = message.library();
  if (!message.library().empty()) {
    descriptions.library_line = LineOf(tree, fields->FindFieldByName("library"), -1, 1);
  }
  // Names within one text; those of several packs are compared where the packs are loaded.
  std::set<std::string> names;
  std::set<std::string> functions;
  const FieldDescriptor* field = fields->FindFieldByName("operator");
  for (int i = 0; i < message.operator__size(); ++i) {
    const int line = LineOf(tree, field, i, 1);
    OPSERVE_ASSIGN_OR_RETURN(
        DescribedOperator described,
        ReadOperator(message.operator_(i), *tree.GetTreeForNested(field, i), path, line));
    const OperatorDescriptor& descriptor = described.descriptor;
    if (!names.insert(descriptor.name).second) {
      return Wrong(path, line, absl::StrCat(descriptor.name, ": is described twice"));
    }
    if (!functions.insert(descriptor.stage_two).second) {
      return Wrong(path, line,
                   absl::StrCat(descriptor.name, ": function: ", descriptor.stage_two,
                                " is that of another operator"));
    }
    descriptions.operators.push_back(std::move(described));
  }
  return descriptions;
}

}  // namespace opserve::catalog
