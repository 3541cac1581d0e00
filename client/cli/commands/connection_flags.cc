#include "client/cli/commands/connection_flags.h"

#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace opserve::cli {
namespace {

constexpr char kGroup[] = "Connection";

TlsOptions& TlsOf(Session* session) {
  // Any --tls-... implies --tls.
  auto& tls = session->connection.tls;
  return tls ? *tls : tls.emplace();
}

// Readers of flags, as CLI11 wants them: they return "" for a valid text, else the complaint.

std::string ReadTokenFile(const std::string& path, Session* session) {
  std::ifstream file(path);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) return absl::StrCat("\"", path, "\" cannot be read");
  // Files end with a line break, tokens do not.
  const std::string token(absl::StripAsciiWhitespace(content));
  if (token.empty()) return absl::StrCat("\"", path, "\" has no token");
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) != 0) {
    session->terminal.err << "opserve: warning: every user of this machine can read the token in \""
                          << path << "\"; see \"chmod 600\"\n";
  }
  session->connection.token = token;
  return "";
}

}  // namespace

void AddConnectionFlags(CLI::App& app, Session* session) {
  app.add_flag_callback(
         "--tls", [session] { TlsOf(session); },
         "Encrypt, and believe no one without a certificate that the system trusts")
      ->group(kGroup);
  // Flags that differ in names and in the field that they set.
  struct FileFlag {
    const char* name;
    const char* type;
    std::string TlsOptions::*field;
    const char* help;
  };
  constexpr FileFlag kFlags[] = {
      {"--tls-ca", "FILE", &TlsOptions::ca_file,
       "Trust the certificates of these authorities (PEM) instead of the system's"},
      {"--tls-cert", "FILE", &TlsOptions::cert_file,
       "Your certificate (PEM), for a daemon that asks for one; with --tls-key"},
      {"--tls-key", "FILE", &TlsOptions::key_file, "The key of --tls-cert (PEM)"},
      {"--tls-server-name", "NAME", &TlsOptions::server_name_override,
       "The name in the daemon's certificate, if --target has another or none"},
  };
  for (const FileFlag& flag : kFlags) {
    app.add_option_function<std::string>(
           flag.name,
           [session, field = flag.field](const std::string& text) { TlsOf(session).*field = text; },
           flag.help)
        ->type_name(flag.type)
        ->group(kGroup);
  }
  app.add_option("--token-file",
                 "A file, of yours alone, with the token that identifies you; default: the token "
                 "in OPSERVE_TOKEN")
      ->type_name("FILE")
      ->check([session](const std::string& path) { return ReadTokenFile(path, session); })
      ->group(kGroup);
}

}  // namespace opserve::cli
