#include "trawl/metric.hpp"

namespace trawl {

const char* metric_name(Metric metric) {
  switch (metric) {
    case Metric::kInnerProduct: return "inner product";
    case Metric::kSquaredL2: return "squared L2";
    case Metric::kCosine: return "cosine";
  }
  return "unknown";
}

}  // namespace trawl
