# The emulated device for the tests that execute kernels: sourced. `emulator FOLDER` builds it there, with its header compiled beforehand: that alone takes half a second for each program.
# FOLDER is the LD_LIBRARY_PATH of commands that shall find the device.
emulator() {
  local flags
  cc -O1 -shared -fPIC tests/cuda/driver.c -o "$1/libcuda.so.1" && cc -O1 -shared -fPIC tests/cuda/nvrtc.c -o "$1/libnvrtc.so" || return 1
  flags=$(sed -nE 's/^#define FLAGS "(.*)"$/\1/p' tests/cuda/nvrtc.c)
  cp tests/cuda/emulate.h "$1" || return 1
  # shellcheck disable=SC2086
  c++ $flags -x c++-header "$1/emulate.h" -o "$1/emulate.h.gch" && export ISAMAP_EMULATE=$1
}
