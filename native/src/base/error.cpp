#include "trawl/error.hpp"

#include <system_error>

namespace trawl {

Error::Error(ErrorCode code, const std::string& path, const std::string& operation, int os_error)
    : std::runtime_error(path + ": " + operation + ": " + std::generic_category().message(os_error)),
      code(code),
      os_error(os_error),
      path(path) {}

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadArgument: return "BAD_ARGUMENT";
    case ErrorCode::kNotFinite: return "NOT_FINITE";
    case ErrorCode::kBadFile: return "BAD_FILE";
    case ErrorCode::kFileChanged: return "FILE_CHANGED";
    case ErrorCode::kReadFailed: return "READ_FAILED";
    case ErrorCode::kWriteFailed: return "WRITE_FAILED";
    case ErrorCode::kIsaUnavailable: return "ISA_UNAVAILABLE";
    case ErrorCode::kNoThreads: return "NO_THREADS";
    case ErrorCode::kCancelled: return "CANCELLED";
    case ErrorCode::kDeviceUnavailable: return "DEVICE_UNAVAILABLE";
  }
  return "UNKNOWN";
}

}  // namespace trawl
