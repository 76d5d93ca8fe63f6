// The score of a term in a passage, and the byte of a passage's length.
#include "lexical/similarity.hpp"
#include "lexical_texts.hpp"

using namespace lexical_test;

TEST("lexical: a term's score has Lucene's bits at known points") {
  const InverseNorms lucene = inverse_norms({0.9f, 0.4f, false}, {79482, 4045202});
  const float idf = inverse_document_frequency(123, 79482);
  CHECK_EQUAL(bits_of(idf), 0x40cef222u);
  CHECK_EQUAL(bits_of(lucene[length_code(50)]), 0x3f8f3aafu);
  CHECK_EQUAL(bits_of(term_score(term_weight({0.9f, 0.4f, false}, 1, idf), 1, lucene[length_code(50)])), 0x405a90cdu);
  CHECK_EQUAL(bits_of(term_score(term_weight({0.9f, 0.4f, false}, 2, idf), 3, lucene[length_code(50)])), 0x411f72a3u);
  const InverseNorms longer = inverse_norms({1.2f, 0.75f, false}, {79482, 4045202});
  CHECK_EQUAL(bits_of(longer[length_code(41)]), 0x3f7e222au);
  CHECK_EQUAL(bits_of(term_score(idf, 2, longer[length_code(41)])), 0x4089a080u);
}

TEST("lexical: a length is encoded in Lucene's byte, rounded down") {
  const std::pair<uint64_t, std::pair<int, uint32_t>> known[] = {
      {0, {0, 0}},      {39, {39, 39}},   {41, {40, 40}},   {55, {47, 54}},    {59, {48, 56}},         {87, {55, 84}},
      {151, {63, 144}}, {279, {71, 264}}, {535, {79, 504}}, {1000, {87, 984}}, {100000, {140, 98328}}, {2147483647, {255, 2013265944}}};
  for (const auto& [length, expected] : known) {
    CHECK_EQUAL(static_cast<int>(length_code(length)), expected.first);
    CHECK_EQUAL(decode_length(length_code(length)), expected.second);
  }
}
