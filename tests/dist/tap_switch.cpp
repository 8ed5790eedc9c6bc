// tap_switch.cpp - a small Ethernet switch in user space that adds delay, jitter, loss and a
// rate limit per port: for kernels without sch_netem (tc says "qdisc kind is unknown").
//
//   g++ -std=c++17 -O2 tap_switch.cpp -o tap_switch
//   tap_switch IFNAME[,delay=US][,jitter=US][,loss=PERCENT][,rate=BITS_PER_S][,limit=BYTES] ...
//
// Creates one TAP device per argument, prints "ready" and forwards frames between them until
// it is ended. Move each device into a network namespace of its own afterwards, where it is
// that host's network card: ip link set IFNAME netns NS name eth0. A port's settings count
// for what its host sends (delay, jitter, loss, rate) and rate also for what it is sent.
// A frame is held delay +- jitter microseconds, never overtaking an earlier one of its port.
// What a port is sent beyond its rate waits in a queue of at most limit bytes (default 4 MB);
// the rest is dropped. The devices take segments of up to 64 KiB (TSO), so that one switch
// process forwards several Gbit/s. SIGUSR1 prints the counters to stderr.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

struct NetHeader {
  uint8_t flags, gso;
  uint16_t hdr, size, start, offset;
};  // struct virtio_net_hdr
static_assert(sizeof(NetHeader) == 10);
static const int64_t kAhead = 300000;  // ns of a card's own queue; beyond it the host's queue fills

struct Frame {
  int64_t when;  // nanoseconds, when it leaves towards its destination
  uint64_t seq;
  int to;
  uint32_t len;
  std::shared_ptr<std::vector<char>> data;
};
struct Later {
  bool operator()(const Frame& a, const Frame& b) const { return a.when != b.when ? a.when > b.when : a.seq > b.seq; }
};
struct Port {
  std::string name;
  int fd = -1;
  int64_t delay = 0, jitter = 0, last = 0, in_busy = 0, out_busy = 0;
  double loss = 0, rate = 0, limit = 4e6;
  uint64_t in = 0, out = 0, bytes = 0, lost = 0, dropped = 0, full = 0;
};

static volatile sig_atomic_t want_stats = 0;
static int64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}
[[noreturn]] static void die(const std::string& s) {
  fprintf(stderr, "tap_switch: %s: %s\n", s.c_str(), strerror(errno));
  exit(125);
}

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  std::vector<Port> ports;
  for (int i = 1; i < argc; ++i) {
    Port p;
    std::string a = argv[i];
    size_t at = a.find(',');
    p.name = a.substr(0, at);
    while (at != std::string::npos) {
      size_t next = a.find(',', at + 1);
      std::string kv = a.substr(at + 1, next == std::string::npos ? next : next - at - 1);
      size_t eq = kv.find('=');
      std::string k = kv.substr(0, eq);
      double v = eq == std::string::npos ? 0 : atof(kv.c_str() + eq + 1);
      if (k == "delay")
        p.delay = int64_t(v * 1000);
      else if (k == "jitter")
        p.jitter = int64_t(v * 1000);
      else if (k == "loss")
        p.loss = v / 100;
      else if (k == "rate")
        p.rate = v;
      else if (k == "limit")
        p.limit = v;
      else {
        errno = EINVAL;
        die(kv);
      }
      at = next;
    }
    p.fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (p.fd < 0) die("/dev/net/tun");
    ifreq r{};
    r.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    strncpy(r.ifr_name, p.name.c_str(), IFNAMSIZ - 1);
    if (ioctl(p.fd, TUNSETIFF, &r) < 0) die("TUNSETIFF " + p.name);
    int hdr = sizeof(NetHeader);
    ioctl(p.fd, TUNSETVNETHDRSZ, &hdr);
    ioctl(p.fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6);
    ports.push_back(p);
  }
  if (ports.empty()) {
    fprintf(stderr, "tap_switch: no port given\n");
    return 125;
  }
  signal(SIGUSR1, [](int) { want_stats = 1; });
  sched_param sp{};
  sp.sched_priority = 1;  // a spinning MPI rank must not hold up the network; may be refused
  sched_setscheduler(0, SCHED_FIFO, &sp);
  printf("ready\n");
  fflush(stdout);

  std::unordered_map<uint64_t, int> where;  // source address -> port
  std::priority_queue<Frame, std::vector<Frame>, Later> waiting;
  std::mt19937_64 rng(12345);
  std::uniform_real_distribution<double> uni(0, 1);
  std::vector<pollfd> pfd(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) pfd[i] = {ports[i].fd, POLLIN, 0};
  uint64_t seq = 0;
  const size_t room = 65536 + 64;
  std::vector<char> buf(room);
  auto mac = [](const char* p) {
    uint64_t m = 0;
    memcpy(&m, p, 6);
    return m;
  };

  for (;;) {
    int64_t t = now();
    while (!waiting.empty() && waiting.top().when <= t) {
      const Frame& f = waiting.top();
      Port& p = ports[f.to];
      if (write(p.fd, f.data->data(), f.len) >= 0) {
        ++p.out;
        p.bytes += f.len;
      } else
        ++p.dropped;  // the device is down or not there yet
      waiting.pop();
    }
    t = now();
    int64_t wake = waiting.empty() ? INT64_MAX : waiting.top().when;
    for (size_t i = 0; i < ports.size(); ++i) {
      bool busy = ports[i].in_busy > t + kAhead;
      pfd[i].events = busy ? 0 : POLLIN;
      if (busy) wake = std::min(wake, ports[i].in_busy - kAhead);
    }
    timespec ts{0, 0}, *wait = nullptr;
    if (wake != INT64_MAX) {
      int64_t left = std::max<int64_t>(wake - t, 0);
      ts = {left / 1000000000, left % 1000000000};
      wait = &ts;
    }
    int n = ppoll(pfd.data(), pfd.size(), wait, nullptr);
    if (want_stats) {
      want_stats = 0;
      for (auto& p : ports)
        fprintf(stderr,
                "tap_switch: %s in %lu out %lu frames, out %lu bytes, lost %lu, queue full %lu, not taken %lu\n",
                p.name.c_str(), p.in, p.out, p.bytes, p.lost, p.full, p.dropped);
    }
    if (n <= 0) continue;
    for (size_t i = 0; i < ports.size(); ++i) {
      if (!(pfd[i].revents & POLLIN)) continue;
      for (int burst = 0; burst < 16 && ports[i].in_busy <= now() + kAhead; ++burst) {
        ssize_t len = read(ports[i].fd, buf.data(), room);
        if (len < (ssize_t)sizeof(NetHeader) + 14) break;
        Port& src = ports[i];
        ++src.in;
        if (src.loss > 0 && uni(rng) < src.loss) {
          ++src.lost;
          continue;
        }
        t = now();
        const char* eth = buf.data() + sizeof(NetHeader);
        where[mac(eth + 6)] = int(i);
        int64_t when = t;
        if (src.rate > 0) {  // the host's own card: serialise what it sends
          src.in_busy = std::max(src.in_busy, t) + int64_t(len * 8e9 / src.rate);
          when = src.in_busy;
        }
        when += src.delay + (src.jitter ? int64_t((2 * uni(rng) - 1) * src.jitter) : 0);
        when = src.last = std::max(when, src.last);
        auto data = std::make_shared<std::vector<char>>(buf.begin(), buf.begin() + len);
        auto it = (eth[0] & 1) ? where.end() : where.find(mac(eth));
        for (size_t j = 0; j < ports.size(); ++j) {
          if (j == i || (it != where.end() && it->second != int(j))) continue;
          int64_t w = when;
          if (ports[j].rate > 0) {  // the switch's port towards a host: serialise what it is sent
            if ((ports[j].out_busy - when) * ports[j].rate / 8e9 > ports[j].limit) {
              ++ports[j].full;
              continue;
            }
            // cut-through from an equally fast sender: its own serialisation already counted
            int64_t ser = int64_t(len * 8e9 / ports[j].rate);
            int64_t begin = src.rate > 0 ? when - int64_t(len * 8e9 / src.rate) : when;
            ports[j].out_busy = std::max(ports[j].out_busy, begin) + ser;
            w = std::max(when, ports[j].out_busy);
          }
          waiting.push({w, seq++, int(j), uint32_t(len), data});
        }
      }
    }
  }
}
