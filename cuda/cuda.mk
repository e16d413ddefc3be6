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

# nvcc comes from pinned packages that are kept in a cache folder, unless NVCC names another one.
CUDA_TOOLS = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/proofrack/nvcc-$(shell cksum < cuda/nvcc.txt | cut -d ' ' -f 1)
ifeq ($(origin NVCC),undefined)
NVCC = $(CUDA_TOOLS)/nvidia/cu13/bin/nvcc
CUDA_NVCC_READY = $(CUDA_TOOLS)/complete
endif

# Compute capabilities to make code for: a short list, which continuous integration builds, and all.
CUDA_ARCHS ?= 80 90
CUDA_ARCHS_RELEASE = 75 80 86 89 90 100 120
CUDA_STD ?= c++20
CUDA_NVCC_FLAGS ?=

space := $(subst ,, )
CUDA_GPU_BUILD = $(CUDA_BUILD)/gpu-$(subst $(space),-,$(strip $(CUDA_ARCHS)))
CUDA_GPU_LIBRARY = $(CUDA_BUILD)/libproofrack_cuda.so
CUDA_GPU_OBJECTS = $(patsubst cuda/src/%.cu,$(CUDA_GPU_BUILD)/%.o,$(CUDA_DEVICE_SOURCES))
CUDA_GPU_FLAGS = -std=$(CUDA_STD) -O3 -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wno-unknown-pragmas \
	-Icuda/include -Icuda/src '-DPROOFRACK_ARCHS="$(strip $(CUDA_ARCHS))"' \
	$(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) $(CUDA_NVCC_FLAGS)

$(CUDA_TOOLS)/complete: cuda/nvcc.txt
	rm -rf $(CUDA_TOOLS)
	python3 -m pip install --quiet --root-user-action ignore --no-deps --target $(CUDA_TOOLS) -r cuda/nvcc.txt
	touch $@

.PHONY: cuda
cuda: $(CUDA_GPU_BUILD)/libproofrack_cuda.so ## build the device library for GPUs with nvcc and hold its kernels against cuda/limits.txt
	cp $< $(CUDA_GPU_LIBRARY)
	cd tools && go run ./cudalimits -limits ../cuda/limits.txt $(addprefix ../,$(CUDA_GPU_OBJECTS:.o=.log))

.PHONY: cuda-release
cuda-release: ## the same for every compute capability from 7.5 to 12.0
	$(MAKE) cuda CUDA_ARCHS='$(CUDA_ARCHS_RELEASE)'

$(CUDA_GPU_BUILD)/libproofrack_cuda.so: $(CUDA_GPU_OBJECTS)
	$(NVCC) -shared -cudart static -Xlinker -z,defs -o $@.new $^
	mv $@.new $@

$(CUDA_GPU_BUILD)/%.o: cuda/src/%.cu $(CUDA_NVCC_READY)
	@mkdir -p $(@D)
	$(NVCC) $(CUDA_GPU_FLAGS) -MMD -MP -c -o $@ $< >$(@:.o=.log) 2>&1 || (cat $(@:.o=.log) >&2; exit 1)

-include $(CUDA_GPU_OBJECTS:.o=.d)
