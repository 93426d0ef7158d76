// A fast 64-bit digest of bytes, to find changes, not to resist anybody: the secret is when it is taken.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fib {

inline uint64_t digest_of(const char* data, size_t size, uint64_t value) {
  constexpr uint64_t kMix = 0x9FB21C651E98DF25ULL;
  uint64_t lanes[4] = {value, value ^ kMix, value + kMix, ~value};
  size_t at = 0;
  for (; at + 32 <= size; at += 32)
    for (int i = 0; i < 4; ++i) {
      uint64_t word;
      std::memcpy(&word, data + at + 8 * i, 8);
      lanes[i] = (lanes[i] ^ word) * kMix;
      lanes[i] ^= lanes[i] >> 29;
    }
  for (; at < size; ++at) lanes[0] = (lanes[0] ^ static_cast<uint8_t>(data[at])) * kMix;
  for (int i = 1; i < 4; ++i) lanes[0] = (lanes[0] ^ (lanes[i] >> 31) ^ lanes[i]) * kMix;
  return lanes[0] ^ size;
}

// The same piece by piece, as it is when the bytes come through a small buffer.
constexpr size_t kPieceBytes = size_t{1} << 16;

inline uint64_t digest_in_pieces(const char* data, size_t size, uint64_t value) {
  for (size_t at = 0; at < size; at += kPieceBytes)
    value = digest_of(data + at, size - at < kPieceBytes ? size - at : kPieceBytes, value);
  return value;
}

}  // namespace fib
