#include "dist/doorbell.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <random>

#include "engine/error.h"

namespace orrery::dist {
namespace {

/// What a ring says.
struct Ring {
  std::uint64_t job = 0;
  std::uint64_t rank = 0;
};

/// A name in Linux's abstract space, which is the host's (the network namespace's) and leaves no file behind.
socklen_t name_unix(sockaddr_un& address, std::uint64_t name) {
  address = {};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "orrery.%016llx",
                                   static_cast<unsigned long long>(name));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
}

int open_local(std::uint64_t name) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  sockaddr_un address;
  const socklen_t size = name_unix(address, name);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), size) == 0) return socket;
  ::close(socket);
  return -1;
}

int open_remote() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

void list_interfaces(std::array<Doorbell::Address::Interface, 4>& out) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  std::size_t count = 0;
  for (const ifaddrs* at = all; at != nullptr && count < out.size(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || at->ifa_netmask == nullptr) continue;
    if ((at->ifa_flags & IFF_UP) == 0 || (at->ifa_flags & IFF_LOOPBACK) != 0) continue;
    out[count++] = {reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr,
                    reinterpret_cast<const sockaddr_in*>(at->ifa_netmask)->sin_addr.s_addr};
  }
  ::freeifaddrs(all);
}

/// The address of `there` in a network that we are in too; else its first one.
sockaddr_in reach(const Doorbell::Address& here, const Doorbell::Address& there) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = there.port;
  address.sin_addr.s_addr = there.interfaces[0].address;
  for (const auto& ours : here.interfaces) {
    for (const auto& theirs : there.interfaces) {
      if (theirs.address == 0 || ours.address == 0) continue;
      if ((ours.address & ours.mask) != (theirs.address & ours.mask)) continue;
      address.sin_addr.s_addr = theirs.address;
      return address;
    }
  }
  return address;
}

}  // namespace

Doorbell::Doorbell() {
  std::random_device random;  // a name that no other socket has; no bits of a model come from it
  name_ = (std::uint64_t{random()} << 32) | random();
  local_ = open_local(name_);
  remote_ = open_remote();
  event_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event_ < 0) throw Error(ErrorKind::internal, std::string("eventfd: ") + std::strerror(errno));
}

Doorbell::~Doorbell() {
  for (const int descriptor : {local_, remote_, event_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

Doorbell::Address Doorbell::address() const {
  Address address;
  address.name = name_;
  list_interfaces(address.interfaces);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  if (remote_ >= 0 && ::getsockname(remote_, reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
    address.port = bound.sin_port;
  }
  return address;
}

void Doorbell::meet(NodeId self, const std::vector<Address>& bells, const std::vector<bool>& on_this_host) {
  self_ = self;
  job_ = bells.front().name;
  targets_.resize(bells.size());
  for (NodeId rank = 0; rank < bells.size(); ++rank) {
    targets_[rank].name = bells[rank].name;
    if (!on_this_host[rank]) targets_[rank].address = reach(bells[self], bells[rank]);
    if (rank != self) ++unheard_;
  }
  targets_[self].heard = true;
  for (NodeId rank = 0; rank < bells.size(); ++rank) ring(rank);
}

void Doorbell::ring(NodeId rank) {
  if (rank == self_) return;
  const Target& target = targets_[rank];
  const Ring ring{job_, self_};
  // A ring that cannot be sent is a ring that got lost.
  if (target.address.sin_family == AF_INET) {
    static_cast<void>(::sendto(remote_, &ring, sizeof ring, MSG_DONTWAIT | MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&target.address), sizeof target.address));
  } else {
    sockaddr_un address;
    const socklen_t size = name_unix(address, target.name);
    static_cast<void>(::sendto(local_, &ring, sizeof ring, MSG_DONTWAIT | MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&address), size));
  }
}

void Doorbell::poke() {
  if (!asleep_.exchange(false)) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_, &one, sizeof one));  // full: it is awake already
}

Doorbell::Woken Doorbell::wait(std::chrono::microseconds most, const std::function<bool()>& has_work) {
  // Sequentially consistent, as is the exchange in poke(): either the poster sees that we sleep, or we see its post.
  asleep_.store(true);
  if (has_work()) {
    asleep_.store(false);
    return Woken::by_poke;
  }
  std::array<pollfd, 3> ears{};
  nfds_t count = 0;
  for (const int descriptor : {event_, local_, remote_}) {
    if (descriptor >= 0) ears[count++] = {descriptor, POLLIN, 0};
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec time{seconds.count(), std::chrono::nanoseconds(most - seconds).count()};
  // Interrupted by a signal, it returns early: the caller looks round and waits again.
  const int rung = ::ppoll(ears.data(), count, &time, nullptr);
  asleep_.store(false);
  if (rung <= 0) return Woken::by_time;
  std::uint64_t number = 0;
  if (ears[0].revents != 0) static_cast<void>(::read(event_, &number, sizeof number));
  Woken woken = Woken::by_poke;
  for (nfds_t i = 1; i < count; ++i) {
    if (ears[i].revents == 0) continue;
    take_rings(ears[i].fd);
    woken = Woken::by_ring;
  }
  return woken;
}

void Doorbell::take_rings(int socket) {
  Ring ring;
  for (ssize_t bytes = 0; bytes >= 0;) {
    bytes = ::recv(socket, &ring, sizeof ring, MSG_DONTWAIT);
    if (bytes != sizeof ring || ring.job != job_ || ring.rank >= targets_.size()) continue;
    Target& target = targets_[ring.rank];
    if (!target.heard) --unheard_;
    target.heard = true;
  }
}

void Doorbell::not_expected(NodeId rank) {
  if (!targets_[rank].heard) --unheard_;
  targets_[rank].heard = true;
}

}  // namespace orrery::dist
