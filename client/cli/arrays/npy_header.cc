#include "client/cli/arrays/npy_header.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace opserve::cli {
namespace {

// Reads the header's text forward. Every Read returns false, and sets `error` once, if the text
// goes on differently.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : text_(text), rest_(text) {}

  bool Accept(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return absl::ConsumePrefix(&rest_, token);
  }

  bool Expect(absl::string_view token) {
    return Accept(token) || Fail(absl::StrCat("expected ", token));
  }

  bool ReadString(std::string* value) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return Fail("expected a string");
    // No escapes: NumPy writes none for these values.
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return Fail("a string without end");
    *value = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool ReadBool(bool* value) {
    *value = Accept("True");
    return *value || Accept("False") || Fail("expected True or False");
  }

  bool ReadExtent(int64_t* value) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), absl::ascii_isdigit);
    const absl::string_view digits = rest_.substr(0, end - rest_.begin());
    if (!absl::SimpleAtoi(digits, value)) return Fail("expected an extent");
    rest_.remove_prefix(digits.size());
    return true;
  }

  // "()", "(2,)", "(2, 3)", "(2, 3,)"
  bool ReadShape(std::vector<int64_t>* shape) {
    shape->clear();
    if (!Expect("(")) return false;
    while (!Accept(")")) {
      if (!ReadExtent(&shape->emplace_back())) return false;
      if (Accept(",")) continue;
      // "(2)" is a number in Python, not a tuple.
      if (shape->size() == 1) return Fail("expected , (a tuple)");
      return Expect(")");
    }
    return true;
  }

  bool AtEnd() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    return rest_.empty();
  }

  bool Fail(absl::string_view what) {
    // The first error stays: later ones follow from it.
    if (error_.empty()) {
      error_ = absl::StrCat("bad .npy header: ", what, " at character ",
                            text_.size() - rest_.size() + 1);
    }
    return false;
  }

  const std::string& error() const { return error_; }

 private:
  const absl::string_view text_;
  absl::string_view rest_;
  std::string error_;
};

class SeenKeys {
 public:
  // False if the key was seen before.
  bool Add(const std::string& key) {
    if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return false;
    keys_.push_back(key);
    return true;
  }
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::string> keys_;
};

bool ReadEntry(HeaderReader& reader, SeenKeys& seen, NpyHeader* header) {
  std::string key;
  if (!reader.ReadString(&key)) return false;
  if (!seen.Add(key)) return reader.Fail(absl::StrCat("a second '", key, "'"));
  if (!reader.Expect(":")) return false;
  if (key == "descr") {
    if (reader.Accept("[")) return reader.Fail("structured arrays are not supported");
    return reader.ReadString(&header->descr);
  }
  if (key == "fortran_order") return reader.ReadBool(&header->fortran_order);
  if (key == "shape") return reader.ReadShape(&header->shape);
  return reader.Fail(absl::StrCat("unknown key '", key, "'"));
}

bool ReadHeader(HeaderReader& reader, NpyHeader* header) {
  SeenKeys seen;
  if (!reader.Expect("{")) return false;
  while (!reader.Accept("}")) {
    if (!ReadEntry(reader, seen, header)) return false;
    if (reader.Accept(",")) continue;
    if (!reader.Expect("}")) return false;
    break;
  }
  if (!reader.AtEnd()) return reader.Fail("text after the dictionary");
  // Three different keys, all known: none is missing.
  if (seen.size() != 3) return reader.Fail("one of descr, fortran_order and shape is missing");
  return true;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) {
  NpyHeader header;
  HeaderReader reader(text);
  if (!ReadHeader(reader, &header)) return absl::InvalidArgumentError(reader.error());
  return header;
}

std::string FormatNpyHeader(const NpyHeader& header) {
  return absl::StrCat("{'descr': '", header.descr,
                      "', 'fortran_order': ", header.fortran_order ? "True" : "False",
                      ", 'shape': (", absl::StrJoin(header.shape, ", "),
                      header.shape.size() == 1 ? "," : "", "), }");
}

}  // namespace opserve::cli
