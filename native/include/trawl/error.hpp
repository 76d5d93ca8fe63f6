// The exception type of the engine. Its messages name the actual value, the expected value and the remedy. The engine does not
// catch std::bad_alloc and std::system_error of the standard library.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace trawl {

enum class ErrorCode {
  kBadArgument,        // an invalid shape, option or combination
  kNotFinite,          // NaN or infinity in a row or a query; `item` and `column` say where
  kBadFile,            // a file is truncated, corrupt, of another version, or does not belong to its shard
  kFileChanged,        // a mapped file is no longer what it was when it was opened
  kReadFailed,         // the operating system refused to open, map or read `path`; `os_error` says why
  kWriteFailed,        // the operating system refused to create, write or sync `path`; `os_error` says why
  kIsaUnavailable,     // the requested instruction set is unknown, or this machine lacks it
  kNoThreads,          // the operating system refused to start a thread
  kCancelled,          // the caller's cancel flag was set
  kDeviceUnavailable,  // the GPU or its driver cannot be used, or failed
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, int64_t item = -1, int64_t column = -1)
      : std::runtime_error(message), code(code), item(item), column(column) {}
  // os_error: an errno value; its text is appended to the message.
  Error(ErrorCode code, const std::string& path, const std::string& operation, int os_error);

  const ErrorCode code;
  const int64_t item = -1;    // row or query that the message names, or -1
  const int64_t column = -1;  // column that the message names, or -1
  const int os_error = 0;     // errno of the failed system call, or 0
  const std::string path;     // file of the failed system call, or empty
};

// A stable name for other languages: "BAD_ARGUMENT", "WRITE_FAILED", ...
const char* error_code_name(ErrorCode code);

}  // namespace trawl
