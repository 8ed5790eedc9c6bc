#include "tools/failure.h"

#include <new>

#include "engine/error.h"
#include "numa/memory.h"
#include "tools/output.h"

namespace orrery::tools {

Failure failure_of(const std::exception_ptr& error) {
  const auto with = [](ErrorKind kind, std::string text) { return Failure{static_cast<int>(kind), std::move(text)}; };
  try {
    std::rethrow_exception(error);
  } catch (const Error& known) {
    return {known.exit_code(), known.what()};
  } catch (const BrokenPipe&) {
    return {};
  } catch (const MemoryError& refused) {
    return with(ErrorKind::usage, std::string{"out of memory: "} + refused.what());
  } catch (const std::bad_alloc&) {
    return with(ErrorKind::usage, "out of memory: the run does not fit; see the estimate above, and --memory-limit");
  } catch (const std::exception& unknown) {
    return with(ErrorKind::internal, std::string{"internal error: "} + unknown.what());
  }
}

int report(const Failure& failure) {
  if (!failure.message.empty()) complain("orrery: " + failure.message + "\n");
  return failure.exit_code;
}

}  // namespace orrery::tools
