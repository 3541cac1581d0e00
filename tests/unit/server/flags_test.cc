// The command line: every flag overrides the file, forms of writing, refusals, help.
#include "server/config/flags.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "server/config/config_text.h"
#include "server/config/flags_help.h"

namespace opserve::server {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Reflection;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<CommandLine> Parse(const std::vector<const char*>& arguments) {
  return CommandLine::Parse(arguments);
}

config::ServerConfig Overridden(const std::vector<const char*>& arguments,
                                config::ServerConfig values = {}) {
  const auto line = Parse(arguments);
  EXPECT_TRUE(line.ok()) << line.status();
  if (line.ok()) line->Override(&values);
  return values;
}

std::string ErrorOf(const std::vector<const char*>& arguments) {
  const auto line = Parse(arguments);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument) << arguments[0];
  return std::string(line.status().message());
}

// Gives a field another value than its default.
void SetOther(const FieldDescriptor* field, config::ServerConfig* values) {
  const Reflection& reflection = *values->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(values, field, !field->default_value_bool());
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(values, field, field->default_value_uint32() + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection.SetUInt64(values, field, field->default_value_uint64() + 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.SetDouble(values, field, field->default_value_double() + 1);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.AddInt32(values, field, 3);
    case FieldDescriptor::CPPTYPE_STRING:
      if (field->is_repeated()) return reflection.AddString(values, field, "unix:/file");
      return reflection.SetString(values, field, "file");
    default:
      FAIL() << field->name() << " is of a type without flags";
  }
}

// As a flag is written.
std::string DefaultOf(const FieldDescriptor* field) {
  if (field->is_repeated()) return "";
  config::ServerConfig defaults;
  FillDefaults(&defaults);
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(defaults, field, -1, &text);
  return field->cpp_type() == FieldDescriptor::CPPTYPE_STRING ? field->default_value_string()
                                                              : text;
}

TEST(FlagsTest, AFlagThatIsGivenWinsEvenWithItsDefault) {
  const auto flags = FlagsOf(*config::ServerConfig::descriptor());
  ASSERT_GT(flags.size(), 50u);
  for (const FieldDescriptor* field : flags) {
    const std::string argument = absl::StrCat("--", field->name(), "=", DefaultOf(field));
    config::ServerConfig file;
    SetOther(field, &file);
    file.add_tenant()->set_name("stays");
    config::ServerConfig expected;
    expected.add_tenant()->set_name("stays");
    FillDefaults(&expected);

    config::ServerConfig effective = Overridden({argument.c_str()}, file);

    FillDefaults(&effective);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(effective, expected))
        << argument << "\n"
        << ToText(effective);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(Overridden({}, file), file))
        << field->name() << " is not given, so the file's value stays";
  }
}

TEST(FlagsTest, EveryFlagHasHelpAndItsBounds) {
  const std::string help = FlagsHelp();
  for (const auto* message : {config::Command::descriptor(), config::ServerConfig::descriptor()}) {
    for (const FieldDescriptor* field : FlagsOf(*message)) {
      EXPECT_FALSE(field->options().GetExtension(config::about).empty()) << field->name();
      EXPECT_THAT(help, HasSubstr(absl::StrCat("\n    --", field->name(), " ")));
    }
  }
  EXPECT_THAT(help, HasSubstr("    --streams_per_device NUMBER\n"));
  EXPECT_THAT(help, HasSubstr("(default 4; 1 to 64)"));
  EXPECT_THAT(help, HasSubstr("\n  Limits of one request\n"));
  EXPECT_THAT(help, HasSubstr("    --scrub cross-tenant|always|never\n"));
  EXPECT_THAT(help, testing::Not(HasSubstr("allow_no_tenants")));
}

TEST(FlagsTest, FlagsCanBeWrittenInSeveralWays) {
  for (const std::vector<const char*>& arguments : std::vector<std::vector<const char*>>{
           {"--stream_window=5", "--enable_shm"},
           {"--stream-window", "5", "--enable-shm=true"},
           {"--noenable_shm", "--enable_shm=1", "--stream_window=4", "--stream_window=5"}}) {
    const config::ServerConfig values = Overridden(arguments);
    EXPECT_EQ(values.stream_window(), 5u);
    EXPECT_TRUE(values.enable_shm());
  }
  config::ServerConfig file;
  file.set_enable_shm(true);
  for (const char* argument : {"--noenable_shm", "--no-enable-shm", "--enable_shm=false"}) {
    EXPECT_TRUE(Overridden({argument}, file).has_enable_shm());
    EXPECT_FALSE(Overridden({argument}, file).enable_shm()) << argument;
  }
}

TEST(FlagsTest, ListsAddUpAndReplaceTheFiles) {
  config::ServerConfig file;
  file.add_listen("unix:/file");
  file.add_device(7);
  const config::ServerConfig values =
      Overridden({"--listen=unix:/a,unix:/b", "--listen", "unix:/c", "--device=0,1"}, file);
  EXPECT_THAT(values.listen(), ElementsAre("unix:/a", "unix:/b", "unix:/c"));
  EXPECT_THAT(values.device(), ElementsAre(0, 1));
  EXPECT_THAT(Overridden({"--listen="}, file).listen(), IsEmpty());
}

TEST(FlagsTest, CommandsAreNoConfiguration) {
  const auto line = Parse({"--config=a", "--self_test", "--validate-config", "--stream_window=5"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->command().config(), "a");
  EXPECT_TRUE(line->command().self_test());
  EXPECT_TRUE(line->command().validate_config());
  EXPECT_EQ(line->command().self_test_format(), "text");
}

TEST(FlagsTest, RefusalsSayWhatWasProbablyMeant) {
  EXPECT_EQ(ErrorOf({"--stream_windw=5"}),
            "unknown flag --stream_windw; did you mean --stream_window?; see --help");
  EXPECT_EQ(ErrorOf({"--lisen", "unix:/a"}),
            "unknown flag --lisen; did you mean --listen?; see --help");
  EXPECT_EQ(ErrorOf({"--zzzzzzzz"}), "unknown flag --zzzzzzzz; see --help");
  EXPECT_THAT(ErrorOf({"--tenant=a"}), HasSubstr("unknown flag --tenant"));
  EXPECT_THAT(ErrorOf({"--allow_no_tenants"}), HasSubstr("unknown flag --allow_no_tenants"));
  EXPECT_THAT(ErrorOf({"--nostream_window"}), HasSubstr("did you mean --stream_window?"));
  EXPECT_EQ(ErrorOf({"--stream_window"}), "--stream_window needs a value");
  EXPECT_EQ(ErrorOf({"surplus"}), "unexpected argument \"surplus\"; see --help");
  EXPECT_EQ(ErrorOf({"--"}), "unexpected argument \"--\"; see --help");
  EXPECT_EQ(ErrorOf({"--stream_window=-1"}), "stream_window=-1: \"-1\" is not a number");
  EXPECT_EQ(ErrorOf({"--enable_shm=maybe"}), "enable_shm=maybe: \"maybe\" is not true or false");
  EXPECT_EQ(ErrorOf({"--device=0,x"}), "device=x: \"x\" is not a number");
  EXPECT_EQ(ErrorOf({"--shadow_check_ratio=half"}),
            "shadow_check_ratio=half: \"half\" is not a number");
  EXPECT_LT(ErrorOf({absl::StrCat("--", std::string(100000, 'x')).c_str()}).size(), 200u);
}

}  // namespace
}  // namespace opserve::server
