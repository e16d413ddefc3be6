// Cudalimits reads what nvcc printed about kernels (ptxas -v), prints registers, stack and spills of each as a table,
// and fails when a kernel takes more than cuda/limits.txt allows.
//
//	go run ./cudalimits -limits ../cuda/limits.txt LOG…
//
// A kernel's name is its functor's: launch.cuh has one entry function with the functor as template argument. Names are
// demangled by c++filt, which comes with every C++ compiler.
package main
