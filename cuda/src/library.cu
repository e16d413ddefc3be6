// The C interface (include/proofrack_cuda.h).

#include <cstdlib>
#include <cstring>

#include "../include/proofrack_cuda.h"

extern "C" {

void prcuda_free(void *memory) { std::free(memory); }

prcuda_status prcuda_get_version(prcuda_version *out) {
	std::memset(out, 0, sizeof *out);
	out->abi = PRCUDA_ABI;
#ifdef PROOFRACK_HOST
	out->host = 1;
#endif
	return prcuda_status{PRCUDA_OK, nullptr};
}
}
