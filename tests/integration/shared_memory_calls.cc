#include "tests/integration/shared_memory_calls.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/strip.h"

namespace opserve::server {
namespace {

template <typename T>
T OrAbort(T result, const char* what) {
  if (result >= 0) return result;
  std::perror(what);
  std::abort();
}

}  // namespace

SharedMemorySocket::SharedMemorySocket(const std::string& target)
    : socket_(OrAbort(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), "socket")) {
  const std::string path = std::string(absl::StripPrefix(target, "unix:")) + ".shm";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  OrAbort(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
          path.c_str());
}

v1::SharedMemoryResponse SharedMemorySocket::Send(absl::string_view packet,
                                                  absl::Span<const int> descriptors) {
  std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
  iovec data = {const_cast<char*>(packet.data()), packet.size()};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  std::array<char, 1 << 16> buffer;
  ssize_t size = 0;
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) {
    size = recv(socket_.get(), buffer.data(), buffer.size(), 0);
  }
  v1::SharedMemoryResponse response;
  is_closed_ = size <= 0;
  if (is_closed_) return response;
  if (!response.ParseFromArray(buffer.data(), static_cast<int>(size))) std::abort();
  if (!response.connection().empty()) key_ = response.connection();
  return response;
}

v1::SharedMemoryResponse SharedMemorySocket::Send(const v1::SharedMemoryRequest& request,
                                                  absl::Span<const int> descriptors) {
  return Send(absl::string_view(request.SerializeAsString()), descriptors);
}

v1::SharedMemoryResponse SharedMemorySocket::Register(const Region& region, int fd) {
  v1::SharedMemoryRequest request;
  request.set_token(region.token);
  v1::RegisterRegion* wanted = request.mutable_register_region();
  wanted->set_region(region.id);
  wanted->set_offset(region.offset);
  wanted->set_size(region.size);
  wanted->set_read_only(region.read_only);
  return Send(request, {fd});
}

v1::SharedMemoryResponse SharedMemorySocket::Register(const Region& region) {
  const FileDescriptor fd = SealedFile(region.offset + region.size);
  return Register(region, fd.get());
}

v1::SharedMemoryResponse SharedMemorySocket::Unregister(uint64_t id) {
  v1::SharedMemoryRequest request;
  request.mutable_unregister_region()->set_region(id);
  return Send(request);
}

v1::SharedMemoryResponse SharedMemorySocket::List() {
  v1::SharedMemoryRequest request;
  request.mutable_list_regions();
  return Send(request);
}

v1::SharedMemoryRange SharedMemorySocket::Range(uint64_t region, uint64_t offset,
                                                uint64_t size) const {
  v1::SharedMemoryRange range;
  range.set_connection(key_);
  range.set_region(region);
  range.set_offset(offset);
  range.set_size(size);
  return range;
}

}  // namespace opserve::server
