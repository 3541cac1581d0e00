#include "server/config/flags_help.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/flags.h"

namespace opserve::server {
namespace {

using google::protobuf::FieldDescriptor;

constexpr char kIntroduction[] =
    R"(opserved lends Ascend NPUs to programs that have none: it runs gradient operators on them for
clients that call over gRPC. Without NPUs it computes on the CPU.

  opserved                                      serve this user's programs on a Unix socket
  opserved --listen=unix:/run/a.sock,127.0.0.1:8470
                                                serve on a socket and on loopback TCP
  opserved --acl_library_dir=cann               serve on this machine's NPUs
  opserved --acl_library_dir=cann --self_test   look whether they can
  opserved --config=opserved.textproto          serve as a file says, which can also name tenants

Try it from another terminal with `opserve status` and `opserve ops`. SIGTERM ends it gracefully, a
second one at once. Exit codes: 0 ended well, 1 could not start, 2 bad flags, 3 requests were cut off.
Durations are written 500ms, 10s, 5m. Of a boolean, --name stands for --name=true and --noname for
--name=false. A flag that is given overrides the file. Flags:
)";

constexpr size_t kWidth = 80;
constexpr char kIndent[] = "      ";

// Only durations have a shortest value.
bool IsDuration(const config::Rule& rule) { return rule.has_shortest(); }
bool IsBytes(const FieldDescriptor& field) { return absl::StrContains(field.name(), "_bytes"); }

std::string TypeName(const FieldDescriptor& field, const config::Rule& rule) {
  std::string type = "NUMBER";
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
    type = "true|false";
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    type = IsDuration(rule)        ? "DURATION"
           : rule.one_of().empty() ? "TEXT"
                                   : absl::StrJoin(rule.one_of(), "|");
  } else if (IsBytes(field)) {
    type = "BYTES";
  }
  return field.is_repeated() ? absl::StrCat(type, ",...") : type;
}

// In the largest unit that divides it.
std::string NumberText(const FieldDescriptor& field, uint64_t value) {
  if (!IsBytes(field) || value == 0) return absl::StrCat(value);
  // For byte counts, which are easier to read in units.
  for (const auto& [shift, unit] : {std::pair(30, " GiB"), {20, " MiB"}, {10, " KiB"}}) {
    if (value % (uint64_t{1} << shift) == 0) return absl::StrCat(value >> shift, unit);
  }
  return absl::StrCat(value);
}

std::string DefaultText(const FieldDescriptor& field) {
  if (field.is_repeated()) return "";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "true" : "false";
    case FieldDescriptor::CPPTYPE_UINT32:
      return NumberText(field, field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return NumberText(field, field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(field.default_value_double());
    default:
      return field.default_value_string();
  }
}

// "; 1 to 64", or empty.
std::string BoundsText(const FieldDescriptor& field, const config::Rule& rule) {
  if (IsDuration(rule)) {
    return rule.has_longest() ? absl::StrCat("; ", rule.shortest(), " to ", rule.longest())
                              : absl::StrCat("; at least ", rule.shortest());
  }
  if (rule.has_max()) {
    return absl::StrCat("; ", NumberText(field, rule.min()), " to ", NumberText(field, rule.max()));
  }
  return rule.has_min() ? absl::StrCat("; at least ", NumberText(field, rule.min())) : "";
}

void AppendWrapped(absl::string_view text, std::string* out) {
  size_t column = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    // A word that is longer than a line has one of its own.
    if (column == 0 || column + 1 + word.size() > kWidth) {
      absl::StrAppend(out, column == 0 ? "" : "\n", kIndent, word);
      column = sizeof(kIndent) - 1 + word.size();
    } else {
      absl::StrAppend(out, " ", word);
      column += 1 + word.size();
    }
  }
  absl::StrAppend(out, "\n");
}

void AppendFlag(const FieldDescriptor& field, std::string* out) {
  const config::Rule& rule = field.options().GetExtension(config::rule);
  absl::StrAppend(out, "    --", field.name(), " ", TypeName(field, rule), "\n");
  const std::string value = DefaultText(field);
  const std::string facts =
      // Bounds stand beside the default: flags without one have none.
      value.empty() ? "" : absl::StrCat(" (default ", value, BoundsText(field, rule), ")");
  AppendWrapped(absl::StrCat(field.options().GetExtension(config::about), facts), out);
}

}  // namespace

std::string FlagsHelp() {
  std::string text = kIntroduction;
  for (const auto* message : {config::Command::descriptor(), config::ServerConfig::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      // Fields without flags may begin a group, too.
      const std::string& heading = message->field(i)->options().GetExtension(config::heading);
      if (!heading.empty()) absl::StrAppend(&text, "\n  ", heading, "\n");
      for (const FieldDescriptor* flag : FlagsOf(*message)) {
        if (flag == message->field(i)) AppendFlag(*flag, &text);
      }
    }
  }
  return text;
}

}  // namespace opserve::server
