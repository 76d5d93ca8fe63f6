// The whole public interface. It does not depend on Node.js or FAISS. Its only global state is the result of probing the processor.
#pragma once
#include "trawl/codes_file.hpp"
#include "trawl/error.hpp"
#include "trawl/f16.hpp"
#include "trawl/gpu_codes.hpp"
#include "trawl/index.hpp"
#include "trawl/isa.hpp"
#include "trawl/metric.hpp"
#include "trawl/prefilter_file.hpp"
#include "trawl/rows.hpp"
#include "trawl/search.hpp"
#include "trawl/thread_pool.hpp"
#include "trawl/verify.hpp"
