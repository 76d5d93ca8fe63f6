// The headers of the standard library that most files use, which the Makefile precompiles and includes first. Every file still
// includes what it uses: some builds have no precompiled headers.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif
