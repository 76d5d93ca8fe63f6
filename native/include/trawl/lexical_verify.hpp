// Checks that a `.bm25` file is undamaged and that all its bounds hold.
#pragma once
#include <atomic>
#include <string>

namespace trawl::lexical {

// Reads the whole file and checks the sections' checksums, the order of the terms, every block of every list, and that the bounds
// of its block and list dominate each posting. Returns a message about the first problem, or an empty string. Throws kReadFailed
// or kBadFile if the file cannot be opened, kCancelled.
std::string verify_lexical(const std::string& path, const std::atomic<bool>* cancel = nullptr);

}  // namespace trawl::lexical
