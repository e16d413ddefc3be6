module github.com/proofrack/proofrack/deploy

go 1.26.8

require (
	github.com/compose-spec/compose-go/v2 v2.16.2
	github.com/nats-io/jwt/v2 v2.8.3
	github.com/nats-io/nats-server/v2 v2.15.3
	github.com/nats-io/nats.go v1.56.0
	github.com/nats-io/nkeys v0.4.17
	github.com/proofrack/proofrack/coordinator v0.0.0
	github.com/proofrack/proofrack/shared v0.0.0
	github.com/proofrack/proofrack/worker-gpu v0.0.0
	github.com/proofrack/proofrack/worker-synth v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/rs/zerolog v1.35.1
)

replace github.com/proofrack/proofrack/shared => ../shared

replace github.com/proofrack/proofrack/coordinator => ../coordinator

replace github.com/proofrack/proofrack/worker-gpu => ../worker-gpu

replace github.com/proofrack/proofrack/worker-synth => ../worker-synth
