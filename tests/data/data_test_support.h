// What the tests of readers share: files in a directory of their own, loops that run in awkward orders, and the text of
// the error that a call ends in.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/data/parallel_for.h"
#include "engine/error.h"

namespace orrery::testing {

/// A directory that goes away with its test.
class DataTest : public ::testing::Test {
 protected:
  DataTest() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-data-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    directory_ = name;
  }
  ~DataTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  static std::string read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  std::size_t files_here() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }

  std::filesystem::path directory_;
};

/// One gzip member.
inline std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Every body once, in an order that has nothing to do with the indices.
inline void shuffled_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(count)));
  for (const std::size_t i : order) body(i);
}

/// Every body once, on four threads; the first exception comes back.
inline void threaded_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr first;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back(work);
  }
  if (first) std::rethrow_exception(first);
}

/// Ways of reading that must all give the same: piece sizes from one byte on, every kind of loop, waves of any size.
inline std::vector<ReadOptions> ways_to_read() {
  return {{serial_for, 1, 3},
          {serial_for, 7, 1},
          {shuffled_for, 7, 50},
          {shuffled_for, 64, 5},
          {threaded_for, 1, 400},
          {threaded_for, 64, 16},
          {serial_for, std::size_t{1} << 20, 64}};
}

/// The message of the Error that `call` throws, which must be of that kind; "" with a failure otherwise.
template <class Call>
std::string error_of(const Call& call, ErrorKind kind = ErrorKind::data) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

}  // namespace orrery::testing
