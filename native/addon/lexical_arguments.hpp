// The names of the analysers in JavaScript.
#pragma once
#include <string>

#include "arguments.hpp"
#include "trawl/analyser.hpp"

namespace trawl_addon {

inline const char* analyser_name(trawl::lexical::Analyser analyser) {
  switch (analyser) {
    case trawl::lexical::Analyser::kEnglish: return "english";
    case trawl::lexical::Analyser::kStandard: return "standard";
    case trawl::lexical::Analyser::kWhitespace: return "whitespace";
    case trawl::lexical::Analyser::kCjk: return "cjk";
  }
  return "";
}

inline trawl::lexical::Analyser analyser_of(const Napi::Value& value) {
  using trawl::lexical::Analyser;
  const std::string name = string_of(value, "analyser");
  for (const Analyser known : {Analyser::kEnglish, Analyser::kStandard, Analyser::kWhitespace, Analyser::kCjk}) {
    if (name == analyser_name(known)) return known;
  }
  throw bad_argument(value, "analyser", "'english', 'standard', 'whitespace' or 'cjk'");
}

}  // namespace trawl_addon
