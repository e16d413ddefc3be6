module github.com/proofrack/proofrack/worker-gpu

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/google/go-cmp v0.7.0
	github.com/proofrack/proofrack/cuda v0.0.0
	github.com/proofrack/proofrack/shared v0.0.0
	github.com/rs/zerolog v1.35.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.50.0
)

require (
	github.com/NVIDIA/go-nvml v0.13.4-1 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.9.0-default-no-op // indirect
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/nats-io/jwt/v2 v2.8.3 // indirect
	github.com/nats-io/nats-server/v2 v2.15.3 // indirect
	github.com/nats-io/nats.go v1.56.0 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace (
	github.com/proofrack/proofrack/cuda => ../cuda
	github.com/proofrack/proofrack/shared => ../shared
)
