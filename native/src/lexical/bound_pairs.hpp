// Upper bounds for a set of postings: pairs of (tf, length code). One of the pairs dominates each posting.
#pragma once
#include <cstdint>
#include <vector>

#include "lexical/lexical_format.hpp"

namespace trawl::lexical {

// Collects postings. Their Pareto set (larger tf, smaller length code) is small: about four pairs for 128 postings.
class BoundCollector {
 public:
  void add(uint32_t tf, uint8_t length_code);
  void add(const BoundPairs& pairs);
  // At most four pairs that dominate all added postings. Merges pairs whose merging raises the bound least.
  BoundPairs pairs() const;
  void clear() { pareto_.clear(); }

 private:
  std::vector<BoundPair> pareto_;  // in order of rising tf and length code
};

// Whether a posting's score is at most the score of one of the pairs, for any k1, b and weight.
inline bool dominates(const BoundPairs& pairs, uint32_t tf, uint8_t length_code) {
  for (const BoundPair& pair : pairs.of) {
    if ((pair.tf == kUnboundedTf || pair.tf >= tf) && pair.length_code <= length_code) return true;
  }
  return false;
}

}  // namespace trawl::lexical
