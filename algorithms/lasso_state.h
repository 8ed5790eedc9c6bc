// Arrays to sections of a checkpoint and back.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"
#include "engine/training.h"

namespace orrery::lasso {

template <class T>
StateSection section_of(std::string name, std::span<const T> values) {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  return {std::move(name), Bytes(bytes.begin(), bytes.end())};
}

/// @throws Error (data) when there is no such section.
inline const Bytes& find_section(const std::vector<StateSection>& sections, const std::string& name) {
  for (const StateSection& section : sections) {
    if (section.name == name) return section.bytes;
  }
  throw Error(ErrorKind::data, "the checkpoint has no section '" + name + "'");
}

/// @throws Error (data) when there is no such section, or one of another length.
template <class T>
void copy_section(const std::vector<StateSection>& sections, const std::string& name, std::span<T> values) {
  const Bytes& bytes = find_section(sections, name);
  if (bytes.size() != values.size_bytes()) {
    throw Error(ErrorKind::data, "section '" + name + "' of the checkpoint: expected " +
                                     std::to_string(values.size_bytes()) + " bytes, got " +
                                     std::to_string(bytes.size()));
  }
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}

/// An array of any length.
template <class T>
std::vector<T> array_in(const std::vector<StateSection>& sections, const std::string& name) {
  const Bytes& bytes = find_section(sections, name);
  std::vector<T> values(bytes.size() / sizeof(T));
  copy_section<T>(sections, name, values);
  return values;
}

}  // namespace orrery::lasso
