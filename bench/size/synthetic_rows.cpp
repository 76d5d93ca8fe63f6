// `synthetic-rows BASIS SEED FIRST COUNT` writes rows [FIRST, FIRST + COUNT) of SyntheticVectors (bench/vectors) to stdout as
// float16, row-major, little-endian: the same random numbers and sums in float32. JavaScript needs 45 µs a row of 768
// dimensions, a quarter of an hour for 21 million; this program a tenth of it.
//
// BASIS: uint32 dimension, count and terms; float32 deviation of the noise and scale of the terms; float32 mean[dimension];
// float32 centred[count × dimension]. All little-endian.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

/** sfc32, as src/base/random.ts. */
struct Random {
  uint32_t a, b, c, counter = 1;
  double spare = 0;
  bool has_spare = false;

  Random(uint32_t seed, uint32_t low, uint32_t high) : a(seed), b(low), c(high) {
    for (int i = 0; i < 15; i++) word();
  }

  uint32_t word() {
    const uint32_t sum = a + b + counter++;
    a = b ^ (b >> 9);
    b = c + (c << 3);
    c = ((c << 21) | (c >> 11)) + sum;
    return sum;
  }

  double uniform() { return (double(word()) + 1) / 4294967296.0; }

  uint32_t below(uint32_t limit) { return uint32_t(double(word()) / 4294967296.0 * limit); }

  double gaussian() {
    if (has_spare) {
      has_spare = false;
      return spare;
    }
    const double radius = std::sqrt(-2 * std::log(uniform()));
    const double angle = 2 * M_PI * uniform();
    spare = radius * std::sin(angle);
    has_spare = true;
    return radius * std::cos(angle);
  }
};

struct Basis {
  uint32_t dimension = 0, count = 0, terms = 0;
  float deviation = 0, scale = 0;
  std::vector<float> mean, centred;
};

[[noreturn]] void fail(const char *message) {
  std::fprintf(stderr, "synthetic-rows: %s\n", message);
  std::exit(1);
}

Basis read_basis(const char *path) {
  std::FILE *file = std::fopen(path, "rb");
  if (file == nullptr) fail("the basis cannot be opened");
  Basis basis;
  bool whole = std::fread(&basis.dimension, 4, 1, file) == 1 && std::fread(&basis.count, 4, 1, file) == 1 &&
               std::fread(&basis.terms, 4, 1, file) == 1 && std::fread(&basis.deviation, 4, 1, file) == 1 &&
               std::fread(&basis.scale, 4, 1, file) == 1;
  if (whole) {
    basis.mean.resize(basis.dimension);
    basis.centred.resize(size_t(basis.dimension) * basis.count);
    whole = std::fread(basis.mean.data(), 4, basis.mean.size(), file) == basis.mean.size() &&
            std::fread(basis.centred.data(), 4, basis.centred.size(), file) == basis.centred.size();
  }
  if (!whole) fail("the basis is shorter than its header says");
  std::fclose(file);
  return basis;
}

/** `row` must not overlap the basis: the loops are then vectorised. */
void make_row(const Basis &basis, Random random, float *__restrict row) {
  const uint32_t dimension = basis.dimension;
  const float rough = basis.deviation / std::sqrt((256.0f * 256.0f - 1) / 3);
  for (uint32_t j = 0; j < dimension; j++) {
    const uint32_t word = random.word();
    const int sum = (word & 255) + ((word >> 8) & 255) + ((word >> 16) & 255) + (word >> 24);
    row[j] = basis.mean[j] + rough * float(sum - 510);
  }
  for (uint32_t term = 0; term < basis.terms; term += 4) {
    const float *from[4];
    float weight[4];
    for (auto &pointer : from) pointer = &basis.centred[size_t(random.below(basis.count)) * dimension];
    for (auto &value : weight) value = basis.scale * float(random.gaussian());
    for (uint32_t j = 0; j < dimension; j++) {
      row[j] += weight[0] * from[0][j] + weight[1] * from[1][j] + (weight[2] * from[2][j] + weight[3] * from[3][j]);
    }
  }
  double square = 0;
  for (uint32_t j = 0; j < dimension; j++) square += double(row[j]) * double(row[j]);
  const float shrink = float(1 / std::sqrt(square));
  for (uint32_t j = 0; j < dimension; j++) row[j] *= shrink;
}

}  // namespace

int main(int count, char **words) {
  if (count != 5) fail("expected BASIS SEED FIRST COUNT");
  const Basis basis = read_basis(words[1]);
  const uint32_t seed = uint32_t(std::strtoull(words[2], nullptr, 10));
  const uint64_t first = std::strtoull(words[3], nullptr, 10);
  const uint64_t rows = std::strtoull(words[4], nullptr, 10);
  constexpr uint64_t block = 512;
  std::vector<float> row(basis.dimension);
  std::vector<_Float16> halves(block * basis.dimension);
  for (uint64_t done = 0; done < rows; done += block) {
    const uint64_t here = std::min(block, rows - done);
    for (uint64_t i = 0; i < here; i++) {
      const uint64_t number = first + done + i;
      make_row(basis, Random(seed, uint32_t(number), uint32_t(number >> 32)), row.data());
      for (uint32_t j = 0; j < basis.dimension; j++) halves[i * basis.dimension + j] = _Float16(row[j]);
    }
    if (std::fwrite(halves.data(), 2 * basis.dimension, here, stdout) != here) fail("the rows cannot be written");
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
