// Where a command writes: text for people or JSON for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

enum class OutputFormat { kText, kJson };

// Standard output and error of a run of the program.
struct Terminal {
  std::ostream& out;
  std::ostream& err;
  size_t width = 80;             // columns of `out`
  bool err_is_terminal = false;  // may be coloured and written over
  bool out_is_terminal = false;
  std::istream* answers = nullptr;  // of a person at `err`; null: there is no person
  std::istream* input = nullptr;    // bytes of another program or a file; null: there are none
};

// The terminal of this process.
Terminal ProcessTerminal();

// The terminal for reports: they go to terminal.err if an array takes standard output.
Terminal ReportsBeside(bool has_array, const Terminal& terminal);

// Rows of cells, the first row being titles; columns are aligned, numbers to the right.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// Breaks the lines of `text` between words so that none is wider than `width` columns, each
// indented by `indent` and by its own leading spaces. Ends with a line break unless `text` is
// empty.
std::string Wrap(absl::string_view text, size_t width, size_t indent);

// "1 tensor", "2 tensors"
std::string FormatCount(uint64_t count, absl::string_view name);

// "512 B", "1.5 KiB", "64 GiB"
std::string FormatBytes(uint64_t bytes);

// "1.5/64 GiB": narrower than two amounts with a unit each.
std::string FormatPartOf(uint64_t part, uint64_t whole);

// One document, then a line break. Bytes that are not UTF-8 are replaced.
void WriteJson(std::ostream& stream, const nlohmann::ordered_json& document);

// The same in one line, for one of several documents.
void WriteJsonLine(std::ostream& stream, const nlohmann::ordered_json& document);

nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// A timestamp: "2023-11-14T22:13:20Z", with the fraction of the second if there is one.
nlohmann::ordered_json TimeToJson(absl::Time time);

// "ready", "quarantined"
std::string StateText(v1::DeviceStatus::State state);

}  // namespace opserve::cli
