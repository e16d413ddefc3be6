package host

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
)

// NATS gives connections to NATS that tell the log what happens to them.
func NATS(config natsbus.Config, log zerolog.Logger) func(context.Context) (bus.Bus, error) {
	return func(ctx context.Context) (bus.Bus, error) {
		b, err := natsbus.Dial(ctx, config, natsbus.Options{Events: bus.Events{
			Connected:    func() { log.Info().Msg("connected to NATS") },
			Disconnected: func(err error) { log.Warn().Err(err).Msg("connection to NATS is lost") },
			Dropped: func(subject string, count uint64) {
				log.Warn().Str("subject", subject).Uint64("count", count).Msg("messages were dropped")
			},
			Trouble: func(err error) { log.Warn().Err(err).Msg("trouble with NATS") },
		}})
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}
