#include "tests/integration/certificates.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace opserve {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Certificates::Certificates() {
  for (const char* authority : {"ca", "other_ca"}) {
    OpenSsl(absl::StrCat("req -x509 -days 2 -subj /CN=", authority, KeyOf(authority), " -out ",
                         File(authority)));
  }
  Sign("server", "ca", 2, "DNS:daemon.test,IP:127.0.0.1");
  Sign("expired", "ca", -1, "IP:127.0.0.1");
  Sign("foreign", "other_ca", 2, "IP:127.0.0.1");
  Sign("elsewhere", "ca", 2, "DNS:elsewhere.test");
  Sign("client", "ca", 2, "DNS:client.test");
  Sign("stranger", "other_ca", 2, "DNS:client.test");
}

void Certificates::Sign(const std::string& name, const std::string& authority, int days,
                        const std::string& subject) const {
  const std::string request = directory_.File("request");
  const std::string extensions = directory_.File("extensions");
  std::ofstream file(extensions);
  if (!subject.empty()) file << "subjectAltName=" << subject << "\n";
  file.close();
  OpenSsl(absl::StrCat("req -subj /CN=", name, KeyOf(name), " -out ", request));
  OpenSsl(absl::StrCat("x509 -req -days ", days, " -in ", request, " -CA ", File(authority),
                       " -CAkey ", Key(authority), " -CAcreateserial -extfile ", extensions,
                       " -out ", File(name)));
}

void Certificates::WriteRevocations(const std::string& name) const {
  const std::string settings = directory_.File("ca.conf");
  const std::string index = directory_.File("index");
  std::ofstream(settings) << "[ca]\ndefault_ca=d\n[d]\ndatabase=" << index
                          << "\ndefault_md=sha256\ndefault_crl_days=2\n";
  std::ofstream(index, std::ios::app).flush();
  const std::string authority =
      absl::StrCat("ca -config ", settings, " -keyfile ", Key("ca"), " -cert ", File("ca"));
  if (!name.empty()) OpenSsl(absl::StrCat(authority, " -revoke ", File(name)));
  OpenSsl(absl::StrCat(authority, " -gencrl -out ", File("crl")));
}

void Certificates::Replace(const std::string& to, const std::string& from) const {
  constexpr auto kOverwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(Key(from), Key(to), kOverwrite);
  std::filesystem::copy_file(File(from), File(to), kOverwrite);
}

std::shared_ptr<grpc::ServerCredentials> Certificates::ServerCredentials(const std::string& name,
                                                                         bool is_mutual) const {
  grpc::SslServerCredentialsOptions options(
      is_mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  options.pem_key_cert_pairs.push_back({Read(Key(name)), Read(File(name))});
  if (is_mutual) options.pem_root_certs = Read(File("ca"));
  return grpc::SslServerCredentials(options);
}

std::string Certificates::KeyOf(const std::string& name) const {
  return absl::StrCat(" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ",
                      Key(name));
}

void Certificates::OpenSsl(const std::string& arguments) const {
  const std::string log = directory_.File("log");
  const std::string command = absl::StrCat("openssl ", arguments, " > ", log, " 2>&1");
  if (std::system(command.c_str()) == 0) return;
  std::fprintf(stderr, "%s\n%s\n", command.c_str(), Read(log).c_str());
  std::abort();
}

}  // namespace opserve
