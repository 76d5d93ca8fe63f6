// Blocks of postings, their bounds, and the sums of a window.
#include <algorithm>
#include <cmath>
#include <random>

#include "lexical/bound_pairs.hpp"
#include "lexical/decoded_blocks.hpp"
#include "lexical/posting_block.hpp"
#include "lexical/posting_cursor.hpp"
#include "lexical/window_sums.hpp"
#include "lexical_texts.hpp"

using namespace lexical_test;

TEST("lexical: a block of postings is decoded to the encoded values, for any gaps and frequencies") {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; round++) {
    const uint32_t count = round % 3 == 0 ? 128 : 1 + random() % 128;
    const int gap_bits = random() % 25;
    const int tf_bits = random() % 12;
    std::vector<Posting> postings;
    int64_t previous = round % 2 == 0 ? -1 : static_cast<int64_t>(random() % 1000000);
    const int64_t before = previous;
    for (uint32_t i = 0; i < count; i++) {
      uint32_t tf = 1 + random() % (1u << tf_bits);
      if (random() % 50 == 0) tf = 1 + random() % 100000;
      previous += 1 + random() % (1u << gap_bits);
      postings.push_back({static_cast<uint32_t>(previous), tf});
    }
    if (previous >= 0xFFFFFFFEll) continue;
    std::vector<uint8_t> bytes;
    encode_block(postings.data(), count, before, bytes);
    const size_t size = bytes.size();
    bytes.resize(size + kBlockPadding);
    uint32_t rows[128], tfs[128];
    CHECK(decode_block(bytes.data(), bytes.data() + size, count, before, 0xFFFFFFFF, rows, tfs));
    for (uint32_t i = 0; i < count; i++) {
      CHECK_EQUAL(rows[i], postings[i].row);
      CHECK_EQUAL(tfs[i], postings[i].tf);
    }
    CHECK(!decode_block(bytes.data(), bytes.data() + size - 1, count, before, 0xFFFFFFFF, rows, tfs));
    CHECK(!decode_block(bytes.data(), bytes.data() + size, count, before, static_cast<uint32_t>(previous), rows, tfs));
  }
}

TEST("lexical: cursors that share a few decoded blocks read the same postings as cursors with a block each") {
  std::mt19937 random(43);
  ThreadPool pool(1);
  oracle::TempDir directory;
  const std::string path = directory.file();
  build(path, random_texts(random, 3000, 300, 30), Analyser::kWhitespace, pool);
  const auto file = LexicalFile::open(path);
  const InverseNorms inverse = inverse_norms({}, {file->header().documents, file->header().tokens});
  DecodedBlocks few(3), many;
  std::vector<std::unique_ptr<PostingCursor>> sharing, alone;
  file->for_each_term([&](const std::string&, const TermPostings& postings) {
    sharing.push_back(std::make_unique<PostingCursor>(*file, postings, 2.0f, inverse, few));
    alone.push_back(std::make_unique<PostingCursor>(*file, postings, 2.0f, inverse, many));
    return true;
  });
  using Read = std::vector<std::pair<uint32_t, float>>;
  const auto read = [](PostingCursor& cursor, uint32_t begin, uint32_t end) {
    Read postings;
    cursor.for_each_in(begin, end, [&](const uint32_t* rows, const float* scores, uint32_t count) {
      for (uint32_t i = 0; i < count; i++) postings.push_back({rows[i], scores[i]});
    });
    return postings;
  };
  for (uint32_t begin = 0; begin < file->rows(); begin += 100) {
    for (size_t i = 0; i < alone.size(); i++) {
      CHECK_EQUAL(sharing[i]->bound_in(begin, begin + 100), alone[i]->bound_in(begin, begin + 100));
      if (i % 3 == 0) {
        CHECK(read(*sharing[i], begin, begin + 100) == read(*alone[i], begin, begin + 100));
      } else if (i % 3 == 1) {
        for (uint32_t row = begin; row < begin + 100; row += 1 + random() % 9) {
          CHECK_EQUAL(sharing[i]->score_of(row), alone[i]->score_of(row));
        }
      } else {
        std::vector<uint32_t> rows;
        for (uint32_t row = begin; row < begin + 100; row += 1 + random() % 9) rows.push_back(row);
        std::vector<double> sums(rows.size()), expected(rows.size());
        sharing[i]->add_scores(rows.data(), rows.size(), sums.data());
        alone[i]->add_scores(rows.data(), rows.size(), expected.data());
        CHECK(sums == expected);
      }
    }
  }
  for (size_t i = 0; i < alone.size(); i++) CHECK_EQUAL(sharing[i]->decoded(), alone[i]->decoded());
  CHECK_EQUAL(few.allocated(), size_t{3});
  CHECK_EQUAL(many.allocated(), alone.size());
  // A cursor that ends gives its block back.
  alone.clear();
  file->for_each_term([&](const std::string&, const TermPostings& postings) {
    PostingCursor(*file, postings, 2.0f, inverse, many).score_of(0);
    return true;
  });
  CHECK_EQUAL(many.allocated(), sharing.size());
}

TEST("lexical: a bound is at least the score of each row of its window, and of rows with more occurrences than a bound can store") {
  std::mt19937 random(47);
  ThreadPool pool(1);
  oracle::TempDir directory;
  const std::string path = directory.file();
  Texts texts;
  for (int row = 0; row < 3000; row++) {
    std::string text;
    for (uint32_t left = row % 400 == 7 ? 300 + random() % 500 : random() % 4; left > 0; left--) text += "x ";
    for (uint32_t left = 1 + random() % 30; left > 0; left--) text += "y ";
    texts.push_back(text);
  }
  build(path, texts, Analyser::kWhitespace, pool);
  const auto file = LexicalFile::open(path);
  const InverseNorms inverse = inverse_norms({}, {file->header().documents, file->header().tokens});
  DecodedBlocks blocks;
  const auto new_cursor = [&] { return std::make_unique<PostingCursor>(*file, file->find("x"), 2.0f, inverse, blocks); };
  std::vector<float> scores(texts.size(), -1);
  new_cursor()->for_each_in(0, file->rows(), [&](const uint32_t* rows, const float* of_rows, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) scores[rows[i]] = of_rows[i];
  });
  CHECK(new_cursor()->bound() >= *std::max_element(scores.begin(), scores.end()));
  for (const uint32_t width : {1, 64, 500, 3000}) {
    const auto cursor = new_cursor();
    for (uint32_t begin = 0; begin < file->rows(); begin += width) {
      const uint32_t end = std::min(begin + width, file->rows());
      CHECK(cursor->bound_in(begin, end) >= *std::max_element(scores.begin() + begin, scores.begin() + end));
    }
  }
}

TEST("lexical: every processor collects the same rows and sums of a window and clears them") {
  std::mt19937 random(41);
  for (int round = 0; round < 300; round++) {
    WindowSums window;
    const uint32_t count = round % 3 == 0 ? kWindowRows : 1 + random() % kWindowRows;
    const uint32_t begin = random();
    const double too_small = round % 4 == 0 ? kNoSum : round % 4 == 1 ? 0.0 : 1.0;
    std::vector<uint32_t> rows;
    std::vector<double> sums;
    const uint32_t step = 1 + random() % (round % 2 == 0 ? 4 : 300);
    for (uint32_t at = random() % step; at < count; at += 1 + random() % step) {
      window.sums[at] = random() % 5 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 500;
      window.touched[at / kGroupRows] = 1;
      if (too_small != 0 ? window.sums[at] <= too_small : !std::signbit(too_small) && window.sums[at] == 0) continue;
      rows.push_back(begin + at);
      sums.push_back(window.sums[at]);
    }
    WindowSums same = window;
    Candidates chosen;
    Candidates serial;
    collect(window, begin, count, too_small, chosen);
    collect_serial(same, begin, count, too_small, serial);
    for (const Candidates* candidates : {&chosen, &serial}) {
      CHECK_EQUAL(candidates->count, rows.size());
      CHECK(std::equal(rows.begin(), rows.end(), candidates->rows.begin()));
      CHECK(std::equal(sums.begin(), sums.end(), candidates->sums.begin()));
    }
    for (const WindowSums* cleared : {&window, &same}) {
      CHECK(std::all_of(cleared->sums.begin(), cleared->sums.end(), [](double sum) { return sum == 0 && std::signbit(sum); }));
      CHECK(std::all_of(cleared->touched.begin(), cleared->touched.end(), [](uint8_t touched) { return touched == 0; }));
    }
  }
}

TEST("lexical: four pairs dominate all added postings") {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; round++) {
    std::vector<std::pair<uint32_t, uint8_t>> added;
    BoundCollector collector;
    for (int i = 0; i < 128; i++) {
      added.push_back({1 + random() % (round % 5 == 0 ? 1000 : 12), static_cast<uint8_t>(1 + random() % 120)});
      collector.add(added.back().first, added.back().second);
    }
    const BoundPairs pairs = collector.pairs();
    for (const auto& [tf, code] : added) CHECK(dominates(pairs, tf, code));
  }
}
