#include "client/cli/text/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/util/json_util.h"

namespace opserve::cli {
namespace {

constexpr size_t kMinWidth = 40;
constexpr size_t kMaxWidth = 120;  // longer lines are hard to read

size_t TerminalWidth() {
  // 80 for files and pipes, so that their contents do not depend on a window.
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 80;
  return std::clamp<size_t>(size.ws_col, kMinWidth, kMaxWidth);
}

bool IsNumber(absl::string_view cell) {
  return !cell.empty() && (absl::ascii_isdigit(cell[0]) || cell[0] == '-');
}

void WrapLine(absl::string_view line, size_t width, size_t indent, std::string* wrapped) {
  indent += line.size() - absl::StripLeadingAsciiWhitespace(line).size();
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    // A word longer than a line stands alone in one and sticks out.
    if (column > 0 && column + 1 + word.size() > width) {
      wrapped->push_back('\n');
      column = 0;
    }
    if (column == 0) {
      wrapped->append(indent, ' ');
      column = indent;
    } else {
      wrapped->push_back(' ');
      ++column;
    }
    absl::StrAppend(wrapped, word);
    column += word.size();
  }
  wrapped->push_back('\n');
}

// A negative indent puts everything in one line.
void WriteIndentedJson(std::ostream& stream, const nlohmann::ordered_json& document, int indent) {
  stream << document.dump(indent, ' ', /*ensure_ascii=*/false,
                          nlohmann::ordered_json::error_handler_t::replace)
         << "\n";
}

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
    // The names are those of the message's own fields, so they are found.
    const FieldDescriptor& field = *type.FindFieldByName(name);
    if (!field.is_repeated()) {
      Simplify(field, value);
    } else {
      for (Json& element : value) Simplify(field, element);
    }
  }
}

// From protobuf's JSON, which has 64-bit integers in strings, no point in a floating-point number
// that is whole, and the whole names of enum values.
void Simplify(const FieldDescriptor& field, Json& value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      value = std::stoll(value.get_ref<const std::string&>());
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      value = std::stoull(value.get_ref<const std::string&>());
      break;
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      if (value.is_number_integer()) value = value.get<double>();
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

Terminal ProcessTerminal() {
  const bool is_read_by_person = isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0;
  return Terminal{.out = std::cout,
                  .err = std::cerr,
                  .width = TerminalWidth(),
                  .err_is_terminal = isatty(STDERR_FILENO) != 0,
                  .out_is_terminal = isatty(STDOUT_FILENO) != 0,
                  .answers = is_read_by_person ? &std::cin : nullptr,
                  // Only if standard input is not the keyboard.
                  .input = isatty(STDIN_FILENO) == 0 ? &std::cin : nullptr};
}

Terminal ReportsBeside(bool has_array, const Terminal& terminal) {
  return Terminal{.out = has_array ? terminal.err : terminal.out,
                  .err = terminal.err,
                  .width = terminal.width,
                  .err_is_terminal = terminal.err_is_terminal};
}

// Two passes: the widest cell of each column, then the rows.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      // A title stands as the cells below it do.
      const bool is_number = IsNumber(rows.back()[i]);
      const std::string padding(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", is_number ? padding : "", row[i],
                      is_number ? "" : padding);
    }
    // Blanks at the end of a line would be broken to the next in a narrow window.
    absl::StrAppend(&table, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return table;
}

std::string Wrap(absl::string_view text, size_t width, size_t indent) {
  std::string wrapped;
  text = absl::StripTrailingAsciiWhitespace(text);
  if (text.empty()) return wrapped;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    WrapLine(line, width, indent, &wrapped);
  }
  return wrapped;
}

std::string FormatCount(uint64_t count, absl::string_view name) {
  return absl::StrCat(count, " ", name, count == 1 ? "" : "s");
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<absl::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024; amount /= 1024) ++unit;
  return absl::StrFormat("%.4g %s", amount, kUnits[unit]);
}

std::string FormatPartOf(uint64_t part, uint64_t whole) {
  constexpr std::array<const char*, 7> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto shown_part = static_cast<double>(part);
  auto shown_whole = static_cast<double>(whole);
  // By the whole, so that the part has the same unit.
  size_t unit = 0;
  for (; shown_whole >= 1024 && unit + 1 < kUnits.size(); ++unit) {
    shown_part /= 1024;
    shown_whole /= 1024;
  }
  return absl::StrFormat("%.3g/%.4g %s", shown_part, shown_whole, kUnits[unit]);
}

void WriteJson(std::ostream& stream, const nlohmann::ordered_json& document) {
  WriteIndentedJson(stream, document, /*indent=*/2);
}

void WriteJsonLine(std::ostream& stream, const nlohmann::ordered_json& document) {
  WriteIndentedJson(stream, document, /*indent=*/-1);
}

Json TimeToJson(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

Json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  // Zeros as well: programs that read the document need no defaults.
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!MessageToJsonString(message, &text, options).ok()) return nullptr;
  Json json = Json::parse(text);
  Simplify(*message.GetDescriptor(), json);
  return json;
}

std::string StateText(v1::DeviceStatus::State state) {
  const std::string& name = v1::DeviceStatus::State_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "STATE_"));
}

}  // namespace opserve::cli
