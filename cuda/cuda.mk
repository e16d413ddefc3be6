# The device library: host-compiled by g++ (cuda-host) and for GPUs by nvcc (cuda).

CUDA_BUILD = cuda/build
CUDA_SOURCES = $(sort $(wildcard cuda/src/*.cu cuda/src/*/*.cu))
# Files named test*.cu hold test entries; only the host-compiled library has them.
CUDA_DEVICE_SOURCES = $(filter-out cuda/src/test%.cu,$(foreach s,$(CUDA_SOURCES),$(if $(filter test%,$(notdir $s)),,$s)))

CUDA_HOST_LIBRARY = $(CUDA_BUILD)/libproofrack_cuda_host.so
CUDA_HOST_OBJECTS = $(patsubst cuda/src/%.cu,$(CUDA_BUILD)/host/%.o,$(CUDA_SOURCES))
CUDA_HOST_FLAGS = -std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -pthread -Wall -Wextra -Wno-unknown-pragmas -DPROOFRACK_HOST -DPROOFRACK_TEST -Icuda/include -Icuda/src

.PHONY: cuda-host
cuda-host: $(CUDA_HOST_LIBRARY) ## build the device library for the processor (tests of device code without a GPU)

$(CUDA_HOST_LIBRARY): $(CUDA_HOST_OBJECTS)
	$(CXX) -shared -pthread -Wl,-z,defs -o $@.new $^
	mv $@.new $@

$(CUDA_BUILD)/host/%.o: cuda/src/%.cu
	@mkdir -p $(@D)
	$(CXX) -x c++ $(CUDA_HOST_FLAGS) -MMD -MP -c -o $@ $<

-include $(CUDA_HOST_OBJECTS:.o=.d)

.PHONY: cuda-host-test
cuda-host-test: cuda-host ## test the host-compiled device library against gnark-crypto
	go test -timeout 10m github.com/proofrack/proofrack/cuda/...
