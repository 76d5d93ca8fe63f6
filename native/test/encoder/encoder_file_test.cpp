// Tests of the reader of encoder files: cut, changed and hostile files are refused with an error, and none is read past its end.
// The sanitizers' build runs them too.
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "bert_files.hpp"
#include "check.hpp"
#include "trawl/error.hpp"

using namespace trawl::encoder;
using bert_files::kMany, bert_files::kWide;
using trawl::ErrorCode;

namespace {

constexpr size_t kFields = 9;       // integers of BertShape, after which epsilon follows
constexpr size_t kFirstField = 12;  // their place in the file

const BertShape kShape{1, 16, 1, 16, 5, 6, 2, 0, -1, 1e-12f};

// A valid file, and one that is changed.
class Files {
 public:
  explicit Files(const std::string& name, WeightType type = WeightType::kBfloat16)
      : path_("/tmp/trawl-encoder-file-" + std::to_string(::getpid()) + "-" + name) {
    bert_files::write_random(path_, kShape, 5, type);
    std::ifstream source(path_, std::ios::binary);
    valid.assign((std::istreambuf_iterator<char>(source)), {});
  }
  ~Files() { ::unlink(path_.c_str()); }

  std::unique_ptr<BertEncoder> open(const std::string& bytes) const {
    // A new file each time: ext4 waits for the disk when a file that was emptied is closed.
    ::unlink(path_.c_str());
    std::ofstream(path_, std::ios::binary) << bytes;
    return std::make_unique<BertEncoder>(path_);
  }

  std::string valid;

 private:
  std::string path_;
};

// The message of the kBadFile error of opening the file; empty if it is accepted.
std::string refusal(const Files& files, const std::string& bytes) {
  try {
    files.open(bytes);
    return "";
  } catch (const trawl::Error& error) {
    if (error.code != ErrorCode::kBadFile) check::fail(__FILE__, __LINE__, std::string("wrong code: ") + error.what());
    return error.what();
  }
}

BertShape shape_in(const std::string& bytes) {
  BertShape shape;
  std::memcpy(&shape, &bytes[kFirstField], sizeof shape);
  return shape;
}

int32_t hostile_value(std::mt19937& random) {
  static const int32_t kValues[] = {0,
                                    1,
                                    -1,
                                    2,
                                    15,
                                    16,
                                    17,
                                    32,
                                    64,
                                    4096,
                                    4097,
                                    kWide - 1,
                                    kWide,
                                    kWide + 16,
                                    kMany,
                                    kMany + 1,
                                    1 << 30,
                                    (1 << 30) + 16,
                                    std::numeric_limits<int32_t>::max(),
                                    std::numeric_limits<int32_t>::max() - 15,
                                    std::numeric_limits<int32_t>::min()};
  constexpr size_t kCount = sizeof kValues / sizeof *kValues;
  const uint32_t drawn = random() % (kCount + 4);
  return drawn < kCount ? kValues[drawn] : drawn < kCount + 2 ? static_cast<int32_t>(random() % 40) : static_cast<int32_t>(random());
}

}  // namespace

TEST("encoder file: cut at any byte, or with bytes after its end, it is refused") {
  for (const WeightType type : {WeightType::kBfloat16, WeightType::kInt8}) {
    const Files files("cut", type);
    for (size_t bytes = 0; bytes < files.valid.size(); bytes += check::small() ? 7 : 1) {
      const std::string message = refusal(files, files.valid.substr(0, bytes));
      const std::string expected = bytes < kHeaderBytes ? "has no weights of an encoder" : "is truncated";
      if (message.find(expected) == std::string::npos || message.find("import the model again") == std::string::npos) {
        check::fail(__FILE__, __LINE__, "cut to " + std::to_string(bytes) + " bytes: " + message);
      }
    }
    for (const size_t more : {1, 63, 64, 65, 5000}) {
      CHECK(refusal(files, files.valid + std::string(more, '\1')).find("its header implies") != std::string::npos);
    }
    CHECK_EQUAL(refusal(files, files.valid), "");
  }
}

TEST("encoder file: with any header it is opened if its size is the one that the header implies, and else refused") {
  for (const WeightType type : {WeightType::kBfloat16, WeightType::kInt8}) {
    const Files files("header", type);
    std::mt19937 random(3);
    int opened = 0, too_large = 0;
    for (int i = 0; i < (check::small() ? 2'000 : 5'000); ++i) {
      std::string bytes = files.valid;
      for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
        const int32_t value = hostile_value(random);
        std::memcpy(&bytes[kFirstField + 4 * (random() % (kFields + 1))], &value, 4);
      }
      const BertShape shape = shape_in(bytes);
      const double expected = bert_files::file_bytes(shape, type);
      // Some have the size that their header implies.
      if (expected >= 0 && expected < 1e6 && random() % 2 == 0) bytes.resize(static_cast<size_t>(expected), '\2');
      const std::string message = refusal(files, bytes);
      const bool fits = static_cast<double>(bytes.size()) == expected;
      if (fits != message.empty()) check::fail(__FILE__, __LINE__, "case " + std::to_string(i) + ": " + message);
      if (expected > 1e9) ++too_large;
      if (!fits) continue;
      ++opened;
      bert_files::run_all_lengths(*files.open(bytes), random);
    }
    CHECK(opened > 10);
    CHECK(too_large > 10);
  }
}

TEST("encoder file: any epsilon but a finite number of at least 0, and heads that leave a rest of a layer, are refused") {
  const Files files("epsilon");
  std::string with_rest = files.valid;
  const int32_t hidden_and_heads[] = {17 * 16 + 16, 17};
  std::memcpy(&with_rest[kFirstField + 4], hidden_and_heads, sizeof hidden_and_heads);
  CHECK(refusal(files, with_rest).find("a header that no import writes") != std::string::npos);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float epsilon : {-1e-12f, -infinity, infinity, NAN, -NAN}) {
    std::string bytes = files.valid;
    std::memcpy(&bytes[kFirstField + 4 * kFields], &epsilon, 4);
    CHECK(refusal(files, bytes).find("a header that no import writes") != std::string::npos);
  }
}

TEST("encoder file: weights of any bits, infinite and not a number too, are computed with and do no harm") {
  for (const WeightType type : {WeightType::kBfloat16, WeightType::kInt8}) {
    const Files files("weights", type);
    std::mt19937 random(4);
    for (int i = 0; i < (check::small() ? 20 : 300); ++i) {
      std::string bytes = files.valid;
      const size_t changes = i % 3 == 0 ? bytes.size() : 1 + random() % 50;
      for (size_t change = 0; change < changes; ++change) {
        const size_t at = kHeaderBytes + random() % (bytes.size() - kHeaderBytes);
        bytes[at] = static_cast<char>(i % 2 == 0 ? 0xFF : random());
      }
      bert_files::run_all_lengths(*files.open(bytes), random);
    }
  }
}

TEST("encoder file: random bytes after the magic are refused") {
  for (const WeightType type : {WeightType::kBfloat16, WeightType::kInt8}) {
    const Files files("random", type);
    std::mt19937 random(6);
    for (int i = 0; i < (check::small() ? 50 : 1'000); ++i) {
      std::string bytes = files.valid.substr(0, i % 2 == 0 ? 8 : 12);
      const size_t size = random() % 3000;
      while (bytes.size() < size) bytes.push_back(static_cast<char>(random()));
      CHECK(!refusal(files, bytes).empty());
    }
  }
}
