// What a program may show of itself to a profile (profiled_trainee.h), beside the units that it runs. Interfaces of
// their own, which a trainee implements where they apply.
#pragma once

#include <cstddef>

#include "engine/types.h"

namespace orrery {

class TableStore;

/// It works on tables.
class ShowsTables {
 public:
  virtual ~ShowsTables() = default;
  virtual TableStore& shown_tables() noexcept = 0;
};

/// Its blocks are copied when they go to another domain.
class ShowsBlocks {
 public:
  virtual ~ShowsBlocks() = default;
  /// Between runs.
  virtual std::size_t block_bytes(BlockId block) const = 0;
};

}  // namespace orrery
