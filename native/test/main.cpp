// Runs all tests, or only those whose name contains one of the arguments. With TRAWL_TEST_STOP, ends after the first that fails.
// TRAWL_TEST_PART=1/2 runs every second of them, TRAWL_TEST_PART=2/2 the others.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check.hpp"

std::vector<check::Test>& check::tests() {
  static std::vector<Test> list;
  return list;
}

int main(int argc, char** argv) {
  int failed = 0, run = 0;
  unsigned part = 1, parts = 1, found = 0;
  if (const char* wanted_part = std::getenv("TRAWL_TEST_PART")) {
    if (std::sscanf(wanted_part, "%u/%u", &part, &parts) != 2 || part < 1 || part > parts) {
      std::fprintf(stderr, "TRAWL_TEST_PART is \"%s\"; expected a part such as 1/2\n", wanted_part);
      return 2;
    }
  }
  for (const check::Test& test : check::tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= test.name.find(argv[i]) != std::string::npos;
    if (!wanted || found++ % parts != part - 1) continue;
    ++run;
    const auto start = std::chrono::steady_clock::now();
    std::string problem;
    try {
      test.body();
    } catch (const std::exception& error) {
      problem = error.what();
      ++failed;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%s %s (%.2f s)%s%s\n", problem.empty() ? "ok  " : "FAIL", test.name.c_str(), seconds, problem.empty() ? "" : "\n     ",
                problem.c_str());
    std::fflush(stdout);
    if (failed > 0 && std::getenv("TRAWL_TEST_STOP") != nullptr) break;
  }
  std::printf("%d tests, %d failed\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}
