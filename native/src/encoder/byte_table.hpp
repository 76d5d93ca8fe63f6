// The functions of an instruction set: lane_bytes.hpp says how.

namespace trawl::encoder {
namespace {

TRAWL_TARGET void to_bf16(const ByteTask& t, int64_t first, int64_t last, uint16_t* to) {
  multiply_panels(t, first, last, Write<uint16_t>{to});
}
TRAWL_TARGET void to_float(const ByteTask& t, int64_t first, int64_t last, float* to) { multiply_panels(t, first, last, Write<float>{to}); }
TRAWL_TARGET void to_activation(const ByteTask& t, int activation, int64_t first, int64_t last, uint16_t* to) {
  multiply_panels(t, first, last, Activate{activation, to});
}

const ByteProducts kTable = {TRAWL_NAME, to_bf16, to_float, to_activation, quantize, normalize, softmax};

}  // namespace
}  // namespace trawl::encoder
