// What the tests of numa/ share: shapes of machines, and code that runs in a child because it narrows the whole
// process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "numa/topology.h"

namespace orrery::test {

struct Shape {
  std::string text;
  unsigned packages, domains, cores_per_domain, pus_per_core;
};

inline std::vector<Shape> shapes() {
  return {
      {"pu:1", 0, 1, 1, 1},
      {"pu:7", 0, 1, 7, 1},
      {"core:4 pu:2", 0, 1, 4, 2},
      {"numa:2 core:1 pu:1", 0, 2, 1, 1},
      {"numa:2 core:4 pu:2", 0, 2, 4, 2},
      {"numa:4 pu:2", 0, 4, 2, 1},
      {"numa:8 core:2 pu:4", 0, 8, 2, 4},
      {"pack:1 numa:1 l3:1 core:6 pu:2", 1, 1, 6, 2},
      {"pack:2 numa:1 l3:1 core:8 pu:2", 2, 2, 8, 2},
      {"pack:2 numa:2 l3:1 core:4 pu:2", 2, 4, 4, 2},  // sub-NUMA clustering
      {"pack:2 l3:1 numa:2 core:3 pu:1", 2, 4, 3, 1},  // one cache over two nodes
      {"pack:2 numa:4 l3:4 core:2 pu:2", 2, 8, 8, 2},  // many small caches in a node
      {"pack:4 numa:1 l3:2 l2:2 l1:1 core:2 pu:1", 4, 4, 8, 1},
  };
}

inline std::filesystem::path topology_folder() {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "tests/numa/topologies";
}

inline std::vector<std::string> topology_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(topology_folder()))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// Every machine that the tests know, this one first.
inline std::vector<Topology> all_machines() {
  std::vector<Topology> machines{Topology::detect()};
  for (const Shape& shape : shapes()) machines.push_back(Topology::synthetic(shape.text));
  for (const std::string& file : topology_files()) machines.push_back(Topology::xml(file));
  return machines;
}

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "numa-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_.string(); }
  /// Writes a file below the folder, folders on the way included.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

/// Runs `body` in a child; what it returns is the complaint, "" means all right. Assertions of the test framework do
/// not reach the parent, so the body says in words what was wrong.
inline std::string in_child(const std::function<std::string()>& body) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string complaint;
    try {
      complaint = body();
    } catch (const std::exception& error) {
      complaint = std::string("exception: ") + error.what();
    }
    const bool written =
        write(pipe_ends[1], complaint.data(), complaint.size()) == static_cast<ssize_t>(complaint.size());
    _exit(written ? 0 : 1);
  }
  close(pipe_ends[1]);
  std::string complaint;
  char piece[512];
  for (ssize_t got; (got = read(pipe_ends[0], piece, sizeof piece)) > 0;)
    complaint.append(piece, static_cast<std::size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    complaint += " (child ended with status " + std::to_string(status) + ")";
  return complaint;
}

inline bool any_contains(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

inline std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += "[" + text + "] ";
  return all;
}

}  // namespace orrery::test
