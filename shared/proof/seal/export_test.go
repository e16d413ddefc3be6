package seal

import (
	"context"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// LabelsOnly gives the columns and tree C of a replica over zero data.
func LabelsOnly(ctx context.Context, config sdr.Config, replicaID [32]byte) (Opener, error) {
	s := &sealed{
		config: config, graph: config.Graph().Tabulated(), data: dataTree{make([][32]byte, config.Size.Nodes())},
	}
	if err := s.label(ctx, new(meter), &replicaID); err != nil {
		return nil, err
	}
	return s, s.commit(ctx, new(meter))
}
