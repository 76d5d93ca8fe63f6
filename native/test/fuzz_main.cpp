// Drives a fuzz target without libFuzzer: random inputs for as many seconds as the first argument says. Input i has seed i. The second
// argument, the number that a failed run prints, runs that input alone.
#include <sanitizer/common_interface_defs.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Every failure ends in a signal, of which print_input() hears.
extern "C" const char* __asan_default_options() { return "handle_abort=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1"; }

namespace {

unsigned long input = 0;

void print_input() { std::fprintf(stderr, "input %lu failed; run the program with the arguments 0 %lu\n", input, input); }

// Most inputs are short. The bytes have all values, or small ones, or those at which numbers end.
std::vector<uint8_t> input_of(unsigned long seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<uint8_t> bytes(random() % (uint32_t{16} << random() % 8));
  const uint32_t kind = random() % 3;
  const uint8_t ends[] = {0, 1, 15, 16, 127, 128, 254, 255};
  for (uint8_t& byte : bytes) {
    const uint32_t drawn = random();
    byte = static_cast<uint8_t>(kind == 0 ? drawn : kind == 1 ? drawn % 8 : ends[drawn % 8]);
  }
  return bytes;
}

void run(unsigned long seed) {
  input = seed;
  const std::vector<uint8_t> bytes = input_of(seed);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  __sanitizer_set_death_callback(print_input);
  try {
    if (argc > 2) {
      run(std::strtoul(argv[2], nullptr, 10));
      return 0;
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 60);
    for (unsigned long seed = 0; std::chrono::steady_clock::now() < end; ++seed) run(seed);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    print_input();
    return 1;
  }
  std::printf("%s: %lu inputs\n", argv[0], input + 1);
  return 0;
}
