// Damaged `.bm25` files whose checksums are right again: opening, search, explanation and verification must end without a fault,
// with an error or with answers. The sanitizer builds run this.
#include <algorithm>
#include <cstring>
#include <random>

#include "lexical/lexical_format.hpp"
#include "lexical/section_checksum.hpp"
#include "oracle.hpp"
#include "trawl/error.hpp"
#include "trawl/lexical_builder.hpp"
#include "trawl/lexical_index.hpp"
#include "trawl/lexical_query.hpp"
#include "trawl/lexical_verify.hpp"

using namespace trawl::lexical;
using trawl::ErrorCode;
using trawl::ThreadPool;

namespace {

using Bytes = std::vector<uint8_t>;

// Terms of one posting, of one block, and of many blocks; long terms; terms that share their beginnings.
void build(const std::string& path, ThreadPool& pool) {
  std::mt19937 random(31);
  std::string all;
  std::vector<uint64_t> ends;
  for (int row = 0; row < 700; row++) {
    all += row % 50 == 0 ? "" : "always ";
    for (int i = 0; i < static_cast<int>(random() % 20); i++) all += "w" + std::to_string(random() % (1 + random() % 60)) + " ";
    if (row % 40 == 3) all += "rare" + std::to_string(row) + " " + std::string(row, 'z') + " ";
    ends.push_back(all.size());
  }
  LexicalBuilder builder(path, Analyser::kWhitespace, pool);
  builder.add(all.data(), ends.data(), ends.size(), nullptr);
  builder.finish(nullptr);
}

Section* sections_of(LexicalHeader& header, int section) {
  Section* const all[] = {&header.lists, &header.lengths, &header.terms_section, &header.term_index};
  return all[section];
}

bool is_inside(const Section& section, const Bytes& file) {
  return section.offset <= file.size() && section.bytes <= file.size() - section.offset;
}

// Writes the header into the file, with the checksums of the sections and its own.
void sign(LexicalHeader header, Bytes& file) {
  for (int i = 0; i < 4; i++) {
    Section& section = *sections_of(header, i);
    if (!is_inside(section, file)) continue;
    SectionChecksum checksum;
    checksum.add(file.data() + section.offset, section.bytes);
    section.checksum = checksum.finish();
  }
  header.checksum = 0;
  header.checksum = trawl::checksum64(&header, sizeof header);
  if (file.size() >= sizeof header) std::memcpy(file.data(), &header, sizeof header);
}

uint64_t odd_number(uint64_t old, std::mt19937& random) {
  const uint64_t values[] = {
      0, 1, old + 1, old - 1, 2 * old, old / 2, 1ull << 31, 1ull << 32, 1ull << 63, ~uint64_t{0}, random() % (old / 2 + 2)};
  return values[random() % (sizeof values / sizeof *values)];
}

// Changes one to three things of the file.
Bytes damaged(const Bytes& whole, std::mt19937& random) {
  Bytes file = whole;
  LexicalHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  for (int left = 1 + static_cast<int>(random() % 3); left > 0; left--) {
    Section& section = *sections_of(header, static_cast<int>(random() % 4));
    switch (random() % 7) {
      case 0:
      case 1:
      case 2: {  // bytes of a section
        if (section.bytes == 0 || !is_inside(section, file)) break;
        const uint64_t at = random() % section.bytes;
        const uint64_t count = 1 + random() % std::min<uint64_t>(12, section.bytes - at);
        const uint8_t filler = random() % 2 == 0 ? 0xFF : 0;
        const bool fills = random() % 3 == 0;
        for (uint64_t i = 0; i < (fills ? count : 1); i++) {
          uint8_t& byte = file[section.offset + at + i];
          byte = fills ? filler : static_cast<uint8_t>(byte ^ (1 + random() % 255));
        }
        break;
      }
      case 3: {  // a count
        uint64_t* const counts[] = {&header.rows, &header.documents, &header.tokens, &header.terms, &header.postings, &header.longest_code};
        uint64_t& count = *counts[random() % 6];
        count = odd_number(count, random);
        break;
      }
      case 4: {  // a place
        uint64_t& value = random() % 2 == 0 ? section.offset : section.bytes;
        value = odd_number(value, random);
        break;
      }
      case 5:  // another section
        std::swap(section, *sections_of(header, static_cast<int>(random() % 4)));
        break;
      default: {  // truncation, with and without the sections that end past it
        file.resize(sizeof header + random() % (file.size() - sizeof header + 1));
        if (random() % 2 == 0) break;
        for (int i = 0; i < 4; i++) {
          Section& cut = *sections_of(header, i);
          cut.offset = std::min<uint64_t>(cut.offset, file.size());
          cut.bytes = std::min<uint64_t>(cut.bytes, file.size() - cut.offset);
        }
      }
    }
  }
  sign(header, file);
  return file;
}

// Runs a call that may refuse the file.
template <class Call>
bool refused(Call&& call) {
  try {
    call();
    return false;
  } catch (const trawl::Error& error) {
    CHECK(error.code == ErrorCode::kBadFile || error.code == ErrorCode::kReadFailed);
    return true;
  }
}

}  // namespace

TEST("lexical: a damaged file with the right checksums is refused, found by verification, or searched without a fault") {
  ThreadPool pool(1);
  oracle::TempDir directory;
  const std::string sound = directory.file();
  build(sound, pool);
  const Bytes whole = oracle::read_file(sound);
  {  // Signing an unchanged file changes nothing, so the checksums below are those that the reader compares.
    Bytes same = whole;
    LexicalHeader header;
    std::memcpy(&header, same.data(), sizeof header);
    sign(header, same);
    CHECK(same == whole);
  }
  const std::vector<BagOfWords> queries = {
      bag_of_words(Analyser::kWhitespace, "always w0 w1 w17 w42 rare3 rare43"),
      bag_of_words(Analyser::kWhitespace, "rare163 " + std::string(43, 'z') + " absent w59"),
      bag_of_words(Analyser::kWhitespace, "always"),
  };
  const int tries = check::small() ? 300 : 4000;
  int opened = 0, searched = 0, verified = 0;
  for (int i = 0; i < tries; i++) {
    std::mt19937 random(i);
    const Bytes changed = damaged(whole, random);
    const std::string path = directory.file();
    oracle::write_file(path, changed.data(), changed.size());
    std::string problem = "refused";
    const bool is_refused = refused([&] { problem = verify_lexical(path); });
    if (!is_refused && problem.empty()) verified++;
    LexicalIndex index;
    // Beside an intact shard, in its place, or as the index of the deleted rows.
    const int role = i % 3;
    if (role > 0) index.add_shard(sound);
    const bool cannot_open = refused([&] { role == 2 ? index.set_deleted(path) : index.add_shard(path); });
    std::remove(path.c_str());
    if (cannot_open) {
      CHECK(is_refused || !problem.empty() || role == 2);
      continue;
    }
    opened++;
    LexicalOptions options;
    options.k = 20;
    LexicalResult pruned, exhaustive;
    bool ended = !refused([&] { pruned = lexical_search(index, queries, options, pool); });
    options.prune = false;
    ended = !refused([&] { exhaustive = lexical_search(index, queries, options, pool); }) && ended;
    for (const int64_t row : {int64_t{3}, index.rows() - 1}) {
      if (row >= 0 && row < index.rows()) refused([&] { explain(index, queries[i % 3], {row}, options); });
    }
    if (!ended) continue;
    searched++;
    for (const int64_t row : pruned.rows) CHECK(row >= -1 && row < index.rows());
    // The bounds of a verified file hold, so no search that skips blocks may lose a row.
    if (is_refused || !problem.empty() || role == 2) continue;
    CHECK(pruned.rows == exhaustive.rows);
    CHECK(pruned.scores == exhaustive.scores);
  }
  // The damage reaches every stage.
  CHECK(opened > tries / 4);
  CHECK(searched > tries / 20);
  CHECK(opened < tries);
  CHECK(verified < tries / 10);
}
