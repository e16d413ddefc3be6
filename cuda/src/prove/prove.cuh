// Proving on a device: the plan of a circuit, its parameters (Circuit), its proofs (Proof).
#pragma once

#include "proof.cuh"
