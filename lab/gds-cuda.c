/* libcuda.so.1 of a machine without a GPU, for KvikIO's path through host memory: KvikIO opens it before it
 * asks whether memory is the host's. It has no device and knows no pointer. */
enum { not_initialized = 3, no_device = 100 };
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuInit(unsigned flags) { return (void)flags, no_device; }
int cuDriverGetVersion(int *version) { return *version = 12000, 0; }
#define NO(name) \
  int name(void); \
  int name(void) { return not_initialized; }
NO(cuCtxCreate_v2) NO(cuCtxDestroy_v2) NO(cuCtxGetCurrent) NO(cuCtxGetDevice) NO(cuCtxPopCurrent_v2) NO(cuCtxPushCurrent_v2)
NO(cuDeviceGet) NO(cuDeviceGetAttribute) NO(cuDeviceGetCount) NO(cuDevicePrimaryCtxRelease_v2) NO(cuDevicePrimaryCtxRetain)
NO(cuEventCreate) NO(cuEventDestroy_v2) NO(cuEventQuery) NO(cuEventRecord) NO(cuEventSynchronize)
NO(cuGetErrorName) NO(cuGetErrorString) NO(cuLaunchHostFunc)
NO(cuMemFreeHost) NO(cuMemGetAddressRange_v2) NO(cuMemHostAlloc) NO(cuMemHostRegister_v2) NO(cuMemHostUnregister)
NO(cuMemcpyAsync) NO(cuMemcpyDtoHAsync_v2) NO(cuMemcpyHtoDAsync_v2) NO(cuPointerGetAttribute) NO(cuPointerGetAttributes)
NO(cuStreamCreate) NO(cuStreamDestroy_v2) NO(cuStreamSynchronize)
