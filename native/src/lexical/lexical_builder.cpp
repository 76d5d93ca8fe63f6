#include "trawl/lexical_builder.hpp"

#include <algorithm>
#include <cstring>
#include <queue>

#include "base/cancel.hpp"
#include "base/mapped_file.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "lexical/inversion.hpp"
#include "lexical/lexical_writer.hpp"
#include "lexical/section_checksum.hpp"
#include "lexical/varint.hpp"
#include "trawl/error.hpp"

namespace trawl::lexical {
namespace {

// Bytes of text per part. It affects the number of runs, not the index file.
constexpr uint64_t kPartBytes = 16 << 20;

void write_file(const std::string& path, const std::vector<uint8_t>& bytes) {
  OutputFile file(path, OutputFile::Unfinished::kKeep);
  file.write_at(0, bytes.data(), static_cast<int64_t>(bytes.size()));
  file.close();
}

uint64_t checksum_of(const std::vector<uint8_t>& bytes) {
  SectionChecksum checksum;
  checksum.add(bytes.data(), bytes.size());
  return checksum.finish();
}

// A temporary file with the sorted terms of a part.
struct Run {
  std::string path;
  uint64_t checksum = 0;
};

// Reads a run term by term. Compares its checksum at its end, so a damaged run causes an error, never a wrong index.
class RunReader {
 public:
  RunReader(const Run& run, uint64_t rows)
      : path_(run.path),
        expected_(run.checksum),
        rows_(rows),
        file_(MappedFile::open(path_, 0, -1)),
        at_(file_->data()),
        summed_(at_),
        end_(at_ + file_->bytes()) {
    file_->advise(MappedFile::Pattern::kSequential);
    next();
  }

  bool done() const { return done_; }
  std::string_view term() const { return term_; }

  // Appends the term's postings and moves to the next term.
  void take_postings(std::vector<Posting>& postings) {
    const uint64_t count = read();
    if (count == 0) damaged();
    uint64_t next_row = 0;
    for (uint64_t i = 0; i < count; i++) {
      const uint64_t gap = read();
      if (gap >= rows_ - next_row) damaged();
      next_row += gap + 1;
      postings.push_back({static_cast<uint32_t>(next_row - 1), static_cast<uint32_t>(read() + 1)});
    }
    next();
  }

 private:
  void next() {
    done_ = at_ == end_;
    if (done_ || at_ - summed_ >= kSummedBytes) {
      checksum_.add(summed_, static_cast<size_t>(at_ - summed_));
      summed_ = at_;
    }
    if (done_) {
      if (checksum_.finish() != expected_) damaged();
      return;
    }
    const uint64_t size = read();
    if (size > static_cast<uint64_t>(end_ - at_)) damaged();
    term_ = {reinterpret_cast<const char*>(at_), static_cast<size_t>(size)};
    at_ += size;
  }

  uint64_t read() {
    uint64_t value;
    if (!read_varint(at_, end_, value)) damaged();
    return value;
  }

  [[noreturn]] void damaged() const {
    throw Error(ErrorCode::kBadFile, path_ +
                                         ": this temporary file differs from what was written to it. Check the disk, and run "
                                         "the same command again.");
  }

  static constexpr int64_t kSummedBytes = 1 << 20;
  std::string path_;
  uint64_t expected_;
  uint64_t rows_;
  SectionChecksum checksum_;
  std::shared_ptr<const MappedFile> file_;
  const uint8_t* at_;
  const uint8_t* summed_;
  const uint8_t* end_;
  std::string_view term_;
  bool done_ = false;
};

}  // namespace

struct LexicalBuilder::State {
  struct Part {
    std::string texts;
    std::vector<uint64_t> ends;
    uint32_t first_row;
  };

  std::string path;
  Analyser analyser;
  ThreadPool& pool;
  const std::atomic<bool>* cancel = nullptr;  // of the running call
  std::vector<Part> parts;                    // the full parts, and the part that is being filled
  uint64_t rows = 0;
  uint64_t tokens = 0;
  std::vector<uint8_t> length_codes;
  std::vector<Run> runs;

  State(std::string path, Analyser analyser, ThreadPool& pool) : path(std::move(path)), analyser(analyser), pool(pool) {}

  ~State() {
    for (const Run& run : runs) os::remove(run.path);
  }

  void add(std::string_view text) {
    if (rows == 0xFFFFFFFFull) {
      throw Error(ErrorCode::kBadArgument, path + ": a shard holds at most 4294967295 rows. Build it in more shards.");
    }
    if (parts.empty() || parts.back().texts.size() >= kPartBytes) {
      if (parts.size() >= static_cast<size_t>(pool.threads())) invert_parts();
      parts.push_back({{}, {}, static_cast<uint32_t>(rows)});
    }
    parts.back().texts.append(text);
    parts.back().ends.push_back(parts.back().texts.size());
    rows++;
  }

  void invert_parts() {
    check_cancelled(cancel);
    const size_t first_run = runs.size();
    std::vector<Inversion> inversions(parts.size());
    for (size_t i = 0; i < parts.size(); i++) runs.push_back({path + ".run-" + std::to_string(first_run + i)});
    pool.run(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const Part& part = parts[i];
      inversions[i] = invert(analyser, part.texts.data(), part.ends.data(), part.ends.size(), part.first_row);
      runs[first_run + i].checksum = checksum_of(inversions[i].run);
      write_file(runs[first_run + i].path, inversions[i].run);
      inversions[i].run = {};
    });
    for (const Inversion& inversion : inversions) {
      length_codes.insert(length_codes.end(), inversion.length_codes.begin(), inversion.length_codes.end());
      tokens += inversion.tokens;
    }
    parts.clear();
  }
};

LexicalBuilder::LexicalBuilder(std::string path, Analyser analyser, ThreadPool& pool)
    : state_(std::make_unique<State>(std::move(path), analyser, pool)) {}

LexicalBuilder::~LexicalBuilder() = default;

void LexicalBuilder::add(const char* texts, const uint64_t* ends, size_t count, const std::atomic<bool>* cancel) {
  state_->cancel = cancel;
  for (size_t i = 0; i < count; i++) {
    const uint64_t begin = i == 0 ? 0 : ends[i - 1];
    state_->add({texts + begin, static_cast<size_t>(ends[i] - begin)});
  }
}

LexicalBuildSummary LexicalBuilder::finish(const std::atomic<bool>* cancel) {
  State& state = *state_;
  state.cancel = cancel;
  if (!state.parts.empty()) state.invert_parts();
  std::vector<RunReader> readers;
  readers.reserve(state.runs.size());
  for (const Run& run : state.runs) readers.emplace_back(run, state.rows);
  // The smallest term comes first, and of equal terms the run with the smaller rows.
  const auto later = [&](size_t a, size_t b) {
    const int order = readers[a].term().compare(readers[b].term());
    return order != 0 ? order > 0 : a > b;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> next(later);
  for (size_t i = 0; i < readers.size(); i++) {
    if (!readers[i].done()) next.push(i);
  }
  LexicalBuildSummary summary;
  LexicalWriter writer(state.path, state.analyser, state.length_codes, state.tokens);
  std::vector<Posting> postings;
  std::string term;
  while (!next.empty()) {
    if (summary.terms % 4096 == 0) check_cancelled(state.cancel);
    term = readers[next.top()].term();
    postings.clear();
    while (!next.empty() && readers[next.top()].term() == term) {
      const size_t run = next.top();
      next.pop();
      readers[run].take_postings(postings);
      if (!readers[run].done()) next.push(run);
    }
    writer.add_term(term, postings);
    summary.terms++;
    summary.postings += postings.size();
  }
  writer.finish();
  summary.rows = state.rows;
  summary.documents = state.rows - std::count(state.length_codes.begin(), state.length_codes.end(), 0);
  summary.tokens = state.tokens;
  return summary;
}

}  // namespace trawl::lexical
