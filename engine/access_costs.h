// What accesses to tables cost on this machine, measured: what a plan decides by (design section 6). Costs may decide
// how fast something is done, never what comes out.
#pragma once

#include "engine/metrics.h"

namespace orrery {

/// Nanoseconds each.
struct AccessCosts {
  double lookup = 0;  ///< of the slot of a row, rows in no order
  double visit = 0;   ///< a look at a record, records in no order
  double walk = 0;    ///< a look at the next record
  double add = 0;     ///< a value of one sum added to another
};

/// With the names of their units, to be printed.
ValueList named(const AccessCosts& costs);

/// Measured by the first call in a process; some milliseconds. Any thread.
const AccessCosts& access_costs();

}  // namespace orrery
