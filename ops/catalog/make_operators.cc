// Part of the build: reads the descriptions and writes the sources made from them.
//
// usage: make_operators OUTPUT_DIRECTORY DESCRIPTION...
//
//   builtin_operators.cc   the descriptions as JSON
//   opapi_entries.cc       the exported functions of libopapi.so, each a call of the generic stage
//   one cust_opapi_entries.cc  likewise of libcust_opapi.so
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/description_text.h"

namespace {

using opserve::catalog::ArgumentDescriptor;
using opserve::catalog::ArgumentKind;
using opserve::catalog::OperatorDescriptor;

absl::StatusOr<opserve::catalog::Descriptions> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return opserve::catalog::ReadDescriptions(text.str(), path);
}

// The type of a parameter, as the ABI passes it. Constness does not matter to a C function's
// caller.
const char* CType(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kInt64:
      return "int64_t";
    case ArgumentKind::kUint64:
      return "uint64_t";
    case ArgumentKind::kInt32:
    case ArgumentKind::kDtype:
      return "int32_t";
    case ArgumentKind::kInt8:
      return "int8_t";
    case ArgumentKind::kBool:
      return "bool";
    case ArgumentKind::kDouble:
      return "double";
    case ArgumentKind::kFloat:
      return "float";
    default:
      return "const void*";
  }
}

std::string EntryOf(const OperatorDescriptor& descriptor) {
  std::vector<std::string> parameters;
  std::vector<std::string> names;
  for (const ArgumentDescriptor& argument : descriptor.arguments) {
    names.push_back(absl::StrCat("a", names.size()));
    parameters.push_back(absl::StrCat(CType(argument.kind), " ", names.back()));
  }
  parameters.push_back("uint64_t* workspaceSize");
  parameters.push_back("aclOpExecutor** executor");
  return absl::StrCat(
      "ACL_FUNC_VISIBILITY aclnnStatus ", descriptor.stage_one, "(",
      absl::StrJoin(parameters, ", "),
      ") {\n"
      "  const StageOneArgument arguments[] = {",
      absl::StrJoin(names, ", "),
      "};\n"
      "  return RunStageOne(\"",
      descriptor.stage_two, "\", __func__, arguments, workspaceSize, executor);\n}\n",
      "ACL_FUNC_VISIBILITY aclnnStatus ", descriptor.stage_two,
      "(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, "
      "aclrtStream stream) {\n"
      "  return RunStageTwo(__func__, workspace, workspaceSize, executor, stream);\n"
      "}\n");
}

bool WriteEntries(const std::string& path, const std::vector<OperatorDescriptor>& operators,
                  bool is_custom) {
  std::ofstream file(path);
  file << "#include \"ops/host_cann/nnopbase/executor.h\"\n"
          "#include \"ops/host_cann/opapi/stage_one.h\"\n\n"
          "using opserve::host_cann::RunStageOne;\n"
          "using opserve::host_cann::RunStageTwo;\n"
          "using opserve::host_cann::StageOneArgument;\n\n"
          "extern \"C\" {\n";
  for (const OperatorDescriptor& descriptor : operators) {
    // Both files are always written: without an operator one has no functions, and the build needs
    // no case apart.
    if (descriptor.is_custom == is_custom) file << EntryOf(descriptor);
  }
  file << "}\n";
  return file.good();
}

bool WriteTexts(const std::string& path, const std::map<std::string, std::string>& json) {
  std::ofstream file(path);
  file << "#include \"ops/catalog/builtin_operators.h\"\n\n"
          "namespace opserve::catalog {\n\n"
          "absl::Span<const absl::string_view> BuiltinOperators() {\n"
          "  static constexpr absl::string_view kOperators[] = {\n";
  for (const auto& [name, text] : json) file << "R\"json(" << text << ")json\",\n";
  file << "  };\n  return kOperators;\n}\n\n}  // namespace opserve::catalog\n";
  return file.good();
}

bool Make(const std::string& directory, const std::vector<std::string>& paths) {
  // By name, so that the made source does not depend on the order of the files.
  std::map<std::string, std::string> json;
  std::vector<OperatorDescriptor> descriptors;
  std::set<std::string> functions;
  for (const std::string& path : paths) {
    absl::StatusOr<opserve::catalog::Descriptions> descriptions = ReadFile(path);
    if (!descriptions.ok()) {
      std::cerr << descriptions.status().message() << "\n";
      return false;
    }
    if (!descriptions->library.empty()) {
      std::cerr << path << ":" << descriptions->library_line
                << ": library: is for operator packs\n";
      return false;
    }
    for (opserve::catalog::DescribedOperator& described : descriptions->operators) {
      OperatorDescriptor& descriptor = described.descriptor;
      // Across files: ReadDescriptions finds doubles within one.
      if (!functions.insert(descriptor.stage_two).second ||
          !json.emplace(descriptor.name, std::move(described.json)).second) {
        std::cerr << path << ":" << described.line << ": " << descriptor.name
                  << ": is described twice\n";
        return false;
      }
      descriptors.push_back(std::move(descriptor));
    }
  }
  return WriteTexts(directory + "/builtin_operators.cc", json) &&
         WriteEntries(directory + "/opapi_entries.cc", descriptors, false) &&
         WriteEntries(directory + "/cust_opapi_entries.cc", descriptors, true);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: make_operators OUTPUT_DIRECTORY DESCRIPTION...\n";
    return 2;
  }
  return Make(argv[1], std::vector<std::string>(argv + 2, argv + argc)) ? 0 : 1;
}
