// What referee and driver say to each other: packed little-endian records on a SOCK_SEQPACKET pair. The Python side of
// the same records is fib_core/device/wire.py; a test keeps the two alike.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fib {

constexpr uint32_t kVersion = 6;
constexpr int kMaxDims = 8;
constexpr int kMaxTensors = 48;
constexpr size_t kDetailBytes = 256;
constexpr size_t kPayloadBytes = 12288;
constexpr size_t kHandleBytes = 192;  // three times CUipcMemHandle

enum Type : uint32_t { kSetup = 1, kGo = 2, kEnd = 3, kDone = 4 };
enum Place : uint8_t { kStatic = 0, kFresh = 1, kOutput = 2, kInteger = 3, kFloat = 4, kBoolean = 5 };
enum Role : uint8_t { kReturned = 0, kBuffer = 1, kInPlace = 2 };
enum Result : uint32_t { kOk = 0, kRaised = 1, kProblem = 2, kModeActive = 3, kSkipped = 4, kBroken = 5 };
enum Problem : uint32_t {
  kNone = 0, kCount = 1, kTensorType = 2, kLayout = 3, kShape = 4, kDtype = 5, kInputAlias = 6, kStrides = 7,
  kNoTensor = 8, kUnreadable = 9
};

#pragma pack(push, 1)
// One tensor: where it lies (offset into its region or block), what DLPack calls its element, which torch dtype it is.
struct Tensor {
  uint8_t place;  // Place for arguments, Role for outputs
  uint8_t code, bits, dtype;
  uint32_t ndim;
  uint64_t offset;  // of a scalar: its 8 bytes
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
  uint64_t bytes;
};

// Sizes of the three regions: static inputs, fresh inputs, outputs. On the host their descriptors come along, on a CUDA
// device these handles open them.
struct Setup {
  uint32_t type, version, arguments, outputs;
  uint64_t static_bytes, fresh_bytes, output_bytes;
  char handles[kHandleBytes];
};

// `prime`: calls on contents that were seen before, neither timed nor judged, so that the next call meets warm code.
// `fresh_bytes`, `output_bytes`: a file comes along with the contents of the two blocks, one after the other, which the
// driver puts in place itself just before it starts the clock; 0 if they are there already.
struct Go {
  uint32_t type, call, count, prime;
  uint64_t fresh_base, output_base, output_stride, seed, soft_ns, fresh_bytes, output_bytes;
};

struct Done {
  uint32_t type, result, call, made;
  uint64_t elapsed_ns;
  // Of the last call: from the order (or from the moment at which the inputs began to be there) to the start, from the
  // end to this answer (less the time of copying), and a digest of the outputs that the candidate can still write to.
  uint64_t head_ns, tail_ns, digest;
  // CPU time of the driver's own: waiting for this order, copying inputs and outputs.
  uint64_t own_ns;
  uint32_t changed, problem, output, payload;
  // By the clocks of a CUDA device (0 on the host): a pair of events, CUPTI's span, from its end to the second event,
  // kernels in the call, and kernels and copies to the host between the last call and this one.
  int64_t event_ns, cupti_ns, idle_ns;
  int32_t kernels, strays;
  char detail[kDetailBytes];
  // then `payload` bytes, then a 64-bit tag over everything before it
};
#pragma pack(pop)

}  // namespace fib
