#include "client/cli/top/bar_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace opserve::cli {
namespace {

std::vector<std::string> LayOutAt(size_t width, bool has_colors = false) {
  return LayOut(
      {{.title = "NAME"},
       {.title = "BUSY", .is_number = true, .has_bar = true},
       {.title = "N", .is_number = true}},
      {{{.text = "a"}, {.text = "2/4", .style = Style::kGood, .fill = 0.5}, {.text = "7"}},
       {{.text = "a-long-name-of-a-thing"}, {.text = "4/4", .fill = 1}, {.text = "12"}}},
      width, has_colors);
}

TEST(BarTableTest, FitsAnyWidth) {
  struct Case {
    size_t width;
    std::vector<std::string> lines;
  };
  const Case kCases[] = {
      // Programs get no bars and everything whole.
      {kUnlimited,
       {"NAME                    BUSY   N",  //
        "a                        2/4   7",  //
        "a-long-name-of-a-thing   4/4  12"}},
      // Bars grow to a length that is enough.
      {60,
       {"NAME                                       BUSY  N",  //
        "a                    [############         2/4]  7",  //
        "a-long-name-of-a-th~ [#################### 4/4] 12"}},
      {31,
       {"NAME                    BUSY  N",  //
        "a            [#######   2/4]  7",  //
        "a-long-name~ [######### 4/4] 12"}},
      {20, {"NAME         BUSY  N", "a             2/4  7", "a-long-name~  4/4 12"}},
      {19, {"NAME         BUSY", "a             2/4", "a-long-name~  4/4"}},
      {5, {"NAME", "a", "a-lo~"}},
      {1, {"~", "a", "~"}},
  };
  for (const Case& c : kCases) {
    const std::vector<std::string> lines = LayOutAt(c.width);
    for (const std::string& line : lines) EXPECT_LE(line.size(), c.width) << line;
    EXPECT_EQ(lines, c.lines) << c.width;
  }
}

TEST(BarTableTest, ColorsTakeNoColumns) {
  const std::vector<std::string> lines = LayOutAt(31, /*has_colors=*/true);

  EXPECT_EQ(lines[0].substr(0, 8), "\x1b[1mNAME");
  EXPECT_EQ(lines[1].find("[\x1b[32m#"), 13u);
}

TEST(ClipTest, LeavesNothingThatMovesTheCursor) {
  struct Case {
    const char* text;
    size_t width;
    const char* clipped;
  };
  const Case kCases[] = {{"plain", 5, "plain"},       {"plain", kUnlimited, "plain"},
                         {"plain", 4, "pla~"},        {"plain", 0, ""},
                         {"\x1b[2Ja\n", 9, "?[2Ja?"}, {"\xc3\xa9", 9, "??"}};
  for (const Case& c : kCases) EXPECT_EQ(Clip(c.text, c.width), c.clipped);
}

}  // namespace
}  // namespace opserve::cli
