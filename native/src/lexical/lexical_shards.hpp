// The shards of a LexicalIndex.
#pragma once
#include <memory>
#include <vector>

#include "lexical/lexical_file.hpp"
#include "trawl/lexical_index.hpp"

namespace trawl::lexical {

struct LexicalIndex::Shard {
  std::shared_ptr<const LexicalFile> file;
  int64_t first_row;  // global number of local row 0
};

struct LexicalIndex::State {
  std::vector<Shard> shards;
  std::shared_ptr<const LexicalFile> deleted;  // index of the texts of the deleted rows; null if no row is deleted
  LexicalCounts counts;
  Analyser analyser = Analyser::kStandard;
  int64_t rows = 0;
  uint8_t longest_code = 0;  // largest length code of all rows
};

}  // namespace trawl::lexical
