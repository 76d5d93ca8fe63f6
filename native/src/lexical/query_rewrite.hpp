// Rewrites a query as Lucene 9.12 does before scoring. The shape of the tree determines where sums are rounded to float32, so
// equal scores need the same rewriting. Two rules of Lucene 10.1 are left out on purpose: it splices unboosted bools without
// should clauses into must and filter, and moves the should clauses of a bool's only must clause up.
#pragma once
#include "lexical/query_tree.hpp"

namespace trawl::lexical {

// Returns the root of the rewritten query. Throws kBadArgument if a product or a sum of boosts overflows float32.
NodeId rewrite_query(QueryTree& tree);

}  // namespace trawl::lexical
