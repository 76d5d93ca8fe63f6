// Everything the core offers. No Node, no FAISS, no global state but the one-time processor probe.
#pragma once
#include "trawl/codes_file.hpp"
#include "trawl/error.hpp"
#include "trawl/half.hpp"
#include "trawl/index.hpp"
#include "trawl/isa.hpp"
#include "trawl/metric.hpp"
#include "trawl/rows.hpp"
#include "trawl/screen_file.hpp"
#include "trawl/search.hpp"
#include "trawl/thread_pool.hpp"
#include "trawl/verify.hpp"
