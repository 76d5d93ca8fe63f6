// A small test library. A test has a sentence as its name. CHECK throws an error with file, line and values.
#pragma once
#include <cstdlib>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace check {

struct Test {
  std::string name;
  std::function<void()> body;
};
std::vector<Test>& tests();
struct Register {
  Register(const char* name, std::function<void()> body) { tests().push_back({name, std::move(body)}); }
};
// With TRAWL_TEST_SMALL, tests run fewer and smaller cases, for emulators and the thread sanitizer.
inline bool small() { return std::getenv("TRAWL_TEST_SMALL") != nullptr; }

[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + what);
}

}  // namespace check

#define CHECK_JOIN2(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN2(a, b)
#define TEST(sentence)                                                                                  \
  static void CHECK_JOIN(test_body_, __LINE__)();                                                       \
  static const check::Register CHECK_JOIN(test_, __LINE__)(sentence, CHECK_JOIN(test_body_, __LINE__)); \
  static void CHECK_JOIN(test_body_, __LINE__)()
#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition); \
  } while (0)
#define CHECK_EQUAL(actual, expected)                                         \
  do {                                                                        \
    const auto check_a = (actual);                                            \
    const auto check_b = (expected);                                          \
    if (!(check_a == check_b)) {                                              \
      std::ostringstream check_text;                                          \
      check_text.precision(17);                                               \
      check_text << #actual << " is " << check_a << ", expected " << check_b; \
      check::fail(__FILE__, __LINE__, check_text.str());                      \
    }                                                                         \
  } while (0)
// The statement must throw trawl::Error with this code and a message that contains this text.
#define CHECK_REFUSED(statement, wanted_code, wanted_text)                                                          \
  do {                                                                                                              \
    bool check_thrown = false;                                                                                      \
    try {                                                                                                           \
      statement;                                                                                                    \
    } catch (const trawl::Error& error) {                                                                           \
      check_thrown = true;                                                                                          \
      if (error.code != (wanted_code)) check::fail(__FILE__, __LINE__, std::string("wrong code: ") + error.what()); \
      if (std::string(error.what()).find(wanted_text) == std::string::npos) {                                       \
        check::fail(__FILE__, __LINE__, std::string("wrong message: ") + error.what());                             \
      }                                                                                                             \
    }                                                                                                               \
    if (!check_thrown) check::fail(__FILE__, __LINE__, "not refused: " #statement);                                 \
  } while (0)
