package workersynth

import (
	"net"

	"github.com/rs/zerolog"
)

// logAddress tells where health is asked for.
func logAddress(log zerolog.Logger) func(net.Addr) {
	return func(at net.Addr) { log.Info().Stringer("address", at).Msg("health is served") }
}
