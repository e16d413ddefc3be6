module github.com/proofrack/proofrack/cuda

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/google/go-cmp v0.7.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
