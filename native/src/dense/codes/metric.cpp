#include "trawl/metric.hpp"

#include <string>

#include "trawl/error.hpp"

namespace trawl {

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::kInnerProduct: return "inner product";
    case Metric::kSquaredL2: return "squared L2";
    case Metric::kCosine: return "cosine";
  }
  return "unknown";
}

void check_dimension(int64_t dimension) {
  if (dimension >= 1 && dimension <= kMaxDimension) return;
  throw Error(ErrorCode::kBadArgument, "dimension " + std::to_string(dimension) + " is not in [1, " + std::to_string(kMaxDimension) + "]");
}

}  // namespace trawl
