// Every refusal of the core is one exception type with a stable code; messages name the actual value,
// the expected one and the way out. Nothing else is thrown on purpose (std::bad_alloc may pass through).
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace trawl {

enum class ErrorCode {
  kBadArgument,        // a shape, option or combination that can never work
  kNotFinite,          // NaN or infinity in a row or a query; `item` and `column` say where
  kScoreOverflow,      // a score that was to be returned does not fit float32; `item` is the query
  kBadFile,            // a file is truncated, corrupt, of another version, or disagrees with its shard
  kIo,                 // the operating system refused; the message carries its reason
  kIsaUnavailable,     // the instruction set asked for is unknown or this machine has it not
  kCancelled,          // the caller's cancel flag was seen
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, int64_t item = -1, int64_t column = -1)
      : std::runtime_error(message), code(code), item(item), column(column) {}
  const ErrorCode code;
  const int64_t item;    // row or query the message is about, -1 where none
  const int64_t column;  // coordinate the message is about, -1 where none
};

const char* error_code_name(ErrorCode code);

}  // namespace trawl
