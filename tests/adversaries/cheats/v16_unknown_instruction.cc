// Uses an instruction that this processor does not have, and does not ask before.
#include <tvm/ffi/c_api.h>

extern "C" int __tvm_ffi_run(void*, const TVMFFIAny* arguments, int32_t, TVMFFIAny*) {
  asm volatile(".byte 0x0f, 0x0b");
  return 0;
}
