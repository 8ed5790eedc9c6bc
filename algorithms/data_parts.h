// One data set in numbered files: in DATA.%r the two characters stand for 0, 1, 2 and so on, and the data are those of
// the files one after the other. Of several nodes each reads its share of them (design section 7: as many files as
// nodes, and each reads its own, which then need not lie on a disk that all can see); how many nodes there are changes
// nothing that is read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "engine/data/sparse_rows.h"

namespace orrery {

/// Whether a path means files in parts.
bool is_in_parts(const std::string& path);

/// Whether `file` is one of the parts that `path`, which is in parts, stands for. It need not be there.
bool is_part(const std::string& file, const std::string& path);

/// The files that this node is to read, in order. Collective. @throws Error (usage) for a %r that is not in the file's
/// name or not alone there; (data) when the nodes together see no such file, or not all numbers from 0 to the highest.
std::vector<std::string> parts_here(const std::string& path, const Collective& nodes);

/// The rows of all files in order, as if they stood in one: every node has all of them. `read` reads one file.
/// Collective; what a file holds that is wrong, the node says that reads it. @throws Error as parts_here() and `read`
/// do.
SparseData read_rows_in_parts(const std::string& path, const Collective& nodes,
                              const std::function<SparseData(const std::string& file)>& read);

/// What a node has of rows of which each has read its share, for algorithms that deal the entries out.
struct SharedRows {
  SparseData all;             ///< as read_rows_in_parts(), but without entries: their number is `entries`
  std::uint64_t entries = 0;  ///< of all nodes
  SparseRows here;            ///< the rows of this node's files, which follow those of the nodes before; no labels
};

/// Reads a share and tells the others labels and numbers only. Collective; the same errors.
SharedRows read_share_of_rows(const std::string& path, const Collective& nodes,
                              const std::function<SparseData(const std::string& file)>& read);

/// Calls take(rows), rows without labels, for the rows of all nodes in order, some at a time, on every node.
/// Collective.
void pass_round(const SparseRows& here, const Collective& nodes,
                const std::function<void(const SparseRows& rows)>& take);

}  // namespace orrery
