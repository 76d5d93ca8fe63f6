// Runs all tests, or only those whose name contains one of the arguments.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "check.hpp"

std::vector<check::Test>& check::tests() {
  static std::vector<Test> list;
  return list;
}

int main(int argc, char** argv) {
  int failed = 0, run = 0;
  for (const check::Test& test : check::tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= test.name.find(argv[i]) != std::string::npos;
    if (!wanted) continue;
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
    std::printf("%s %s (%.2f s)%s%s\n", problem.empty() ? "ok  " : "FAIL", test.name.c_str(), seconds,
                problem.empty() ? "" : "\n     ", problem.c_str());
    std::fflush(stdout);
  }
  std::printf("%d tests, %d failed\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}
