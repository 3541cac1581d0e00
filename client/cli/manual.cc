#include "client/cli/manual.h"

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/visible_commands.h"

namespace opserve::cli {
namespace {

// Text in which nothing is a request to roff.
std::string Plain(absl::string_view text) {
  std::string plain = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(plain, ".") || absl::StartsWith(plain, "'")) plain.insert(0, "\\&");
  return plain;
}

// Lines as they are.
std::string Literal(absl::string_view text) {
  std::string literal = ".PP\n.nf\n";
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::StrAppend(&literal, line.empty() ? "\\&" : Plain(line), "\n");
  }
  return literal + ".fi\n";
}

void AppendOption(const CLI::Option& option, std::string* page) {
  absl::StrAppend(page, ".TP\n.B ", Plain(option.get_name(option.get_positional(), true)));
  const std::string type = option.get_type_name();
  if (!option.get_positional() && option.get_items_expected_max() > 0 && !type.empty()) {
    absl::StrAppend(page, " \\fI", Plain(type), "\\fR");
  }
  absl::StrAppend(page, "\n", Plain(option.get_description()), "\n");
}

void AppendOptions(const CLI::App& app, std::string* page) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_name() != "--help" && option->get_name() != "-h,--help") {
      AppendOption(*option, page);
    }
  }
}

void AppendCommand(const CLI::App& command, absl::string_view name, std::string* page) {
  absl::StrAppend(page, ".SS ", Plain(name), "\n", Plain(command.get_description()), "\n");
  AppendOptions(command, page);
  if (!command.get_footer().empty()) absl::StrAppend(page, Literal(command.get_footer()));
  for (const CLI::App* sub : command.get_subcommands({})) {
    AppendCommand(*sub, absl::StrCat(name, " ", sub->get_name()), page);
  }
}

}  // namespace

std::string FormatManual(const CLI::App& app) {
  const std::string name = app.get_name();
  const std::string description(absl::StripAsciiWhitespace(app.get_description()));
  std::string page = absl::StrCat(".TH ", absl::AsciiStrToUpper(name), " 1 \"\" \"", name,
                                  " " OPSERVE_VERSION "\" \"User Commands\"\n.SH NAME\n", name,
                                  " \\- runs gradient operators on the NPUs of a daemon\n"
                                  ".SH SYNOPSIS\n.B ",
                                  name,
                                  "\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]\n"
                                  ".SH DESCRIPTION\n",
                                  Plain(description), "\n.SH OPTIONS\n");
  AppendOptions(app, &page);
  absl::StrAppend(&page, ".SH COMMANDS\n");
  for (const CLI::App* command : VisibleCommands(app)) {
    AppendCommand(*command, command->get_name(), &page);
  }
  absl::StrAppend(&page, ".SH EXAMPLES AND EXIT STATUS\n", Literal(app.get_footer()));
  return page;
}

}  // namespace opserve::cli
