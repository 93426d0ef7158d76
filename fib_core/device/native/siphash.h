// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit tag, so that nobody without the key can write a result.
#pragma once
#include <cstdint>
#include <cstring>

namespace fib {

inline uint64_t rotated(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

inline void sip_round(uint64_t v[4]) {
  v[0] += v[1]; v[1] = rotated(v[1], 13); v[1] ^= v[0]; v[0] = rotated(v[0], 32);
  v[2] += v[3]; v[3] = rotated(v[3], 16); v[3] ^= v[2];
  v[0] += v[3]; v[3] = rotated(v[3], 21); v[3] ^= v[0];
  v[2] += v[1]; v[1] = rotated(v[1], 17); v[1] ^= v[2]; v[2] = rotated(v[2], 32);
}

inline uint64_t siphash(const uint8_t key[16], const uint8_t* data, size_t size) {
  uint64_t k[2];
  std::memcpy(k, key, 16);
  uint64_t v[4] = {k[0] ^ 0x736f6d6570736575ULL, k[1] ^ 0x646f72616e646f6dULL, k[0] ^ 0x6c7967656e657261ULL,
                   k[1] ^ 0x7465646279746573ULL};
  const uint8_t* end = data + (size & ~size_t{7});
  for (; data != end; data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
  }
  uint64_t last = static_cast<uint64_t>(size) << 56;
  for (size_t i = 0; i < (size & 7); ++i) last |= static_cast<uint64_t>(end[i]) << (8 * i);
  v[3] ^= last;
  sip_round(v);
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace fib
