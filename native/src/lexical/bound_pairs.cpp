#include "lexical/bound_pairs.hpp"

#include <algorithm>

#include "lexical/similarity.hpp"

namespace trawl::lexical {
namespace {

// Estimates a pair's score, to choose the pairs to merge. The bounds are valid for any choice.
float looseness(const BoundPair& pair) {
  const float length = static_cast<float>(decode_length(pair.length_code));
  const float norm = 0.9f * (0.6f + 0.4f * length / 60.0f);
  const float tf = pair.tf;
  return tf / (tf + norm);
}

}  // namespace

void BoundCollector::add(uint32_t tf, uint8_t length_code) {
  const auto bounded = static_cast<uint8_t>(std::min(tf, kUnboundedTf));
  auto at = std::lower_bound(pareto_.begin(), pareto_.end(), bounded, [](const BoundPair& pair, uint8_t value) { return pair.tf < value; });
  if (at != pareto_.end() && at->length_code <= length_code) return;
  // The new pair dominates pairs with a tf no larger and a length no smaller.
  auto first = at;
  while (first != pareto_.begin() && (first - 1)->length_code >= length_code) --first;
  if (at != pareto_.end() && at->tf == bounded) ++at;
  at = pareto_.erase(first, at);
  pareto_.insert(at, BoundPair{bounded, length_code});
}

void BoundCollector::add(const BoundPairs& pairs) {
  for (const BoundPair& pair : pairs.of) add(pair.tf, pair.length_code);
}

BoundPairs BoundCollector::pairs() const {
  std::vector<BoundPair> kept = pareto_;
  while (kept.size() > 4) {
    size_t best = 0;
    float best_growth = 2;
    for (size_t i = 0; i + 1 < kept.size(); i++) {
      const BoundPair merged = {kept[i + 1].tf, kept[i].length_code};
      const float growth = looseness(merged) - std::max(looseness(kept[i]), looseness(kept[i + 1]));
      if (growth < best_growth) {
        best_growth = growth;
        best = i;
      }
    }
    kept[best].tf = kept[best + 1].tf;
    kept.erase(kept.begin() + best + 1);
  }
  BoundPairs pairs = {};
  for (size_t i = 0; i < 4 && !kept.empty(); i++) pairs.of[i] = kept[std::min(i, kept.size() - 1)];
  return pairs;
}

}  // namespace trawl::lexical
