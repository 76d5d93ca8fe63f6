#include "trawl/error.hpp"

#include "trawl/metric.hpp"

namespace trawl {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadArgument: return "BAD_ARGUMENT";
    case ErrorCode::kNotFinite: return "NOT_FINITE";
    case ErrorCode::kScoreOverflow: return "SCORE_OVERFLOW";
    case ErrorCode::kBadFile: return "BAD_FILE";
    case ErrorCode::kIo: return "IO";
    case ErrorCode::kIsaUnavailable: return "ISA_UNAVAILABLE";
    case ErrorCode::kCancelled: return "CANCELLED";
  }
  return "UNKNOWN";
}

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::kInnerProduct: return "inner product";
    case Metric::kSquaredL2: return "squared L2";
    case Metric::kCosine: return "cosine";
  }
  return "unknown";
}

}  // namespace trawl
