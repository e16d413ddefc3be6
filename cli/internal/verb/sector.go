package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/sparse"
)

// sectorCommand holds the verbs that make test sectors.
func (a *app) sectorCommand() *cobra.Command {
	return a.group("sector", "make test sectors and their C1 outputs", a.sectorSealCommand(), a.sectorSparseCommand())
}

// sectorFlags are what both kinds of test sectors take.
type sectorFlags struct {
	size   sizeFlag
	family familyFlag
	miner  minerFlag
	number sectorNumberFlag
	seed   string
	out    string
}

// register adds the flags to a command.
func (f *sectorFlags) register(c *cobra.Command, families string) {
	f.family.proofFamily = proofFamilies()[1]
	f.miner = minerFlag{id: 1000, set: true}
	f.number = sectorNumberFlag{number: 4243, set: true}
	flags := c.Flags()
	flags.Var(&f.size, "sector", "sector size, such as 2KiB")
	flags.Var(&f.family, "proof", "proof family: "+families)
	flags.Var(&f.miner, "miner", "miner actor id")
	flags.Var(&f.number, "sector-number", "number of the sector")
	flags.StringVar(&f.seed, "seed", "proofrack", "text that decides data, ticket and seed")
	flags.StringVar(&f.out, "out", "", "folder for c1.json and sector.json; made if absent")
}

// request makes the sealing request that the flags describe.
func (f *sectorFlags) request(c *cobra.Command) (*seal.Request, error) {
	if err := required(c, "sector", "out"); err != nil {
		return nil, err
	}
	proof, err := sdr.FindRegisteredProof(f.size.size, f.family.version, f.family.family)
	if err != nil {
		return nil, err
	}
	request := seal.NewRequest(proof.Config(), f.miner.id, f.number.number, f.seed)
	return &request, nil
}

// sectorResult says what was made.
type sectorResult struct {
	RegisteredProof string  `json:"registered_proof"`
	SectorBytes     uint64  `json:"sector_bytes"`
	Miner           uint64  `json:"miner"`
	Sector          uint64  `json:"sector"`
	Partitions      int     `json:"partitions"`
	CommR           hex32   `json:"comm_r"`
	CommD           hex32   `json:"comm_d"`
	CommRCID        string  `json:"comm_r_cid"`
	CommDCID        string  `json:"comm_d_cid"`
	C1              string  `json:"c1"`
	Info            string  `json:"sector_info"`
	Seconds         float64 `json:"seconds"`
}

func (r *sectorResult) human(w io.Writer) {
	row(w, "proof", "%s, %d partition(s)", r.RegisteredProof, r.Partitions)
	row(w, "sector", "%d of miner %d", r.Sector, r.Miner)
	row(w, "comm_r", "%x", r.CommR.value)
	row(w, "", "%s", r.CommRCID)
	row(w, "comm_d", "%x", r.CommD.value)
	row(w, "", "%s", r.CommDCID)
	row(w, "C1 output", "%s", r.C1)
	row(w, "description", "%s", r.Info)
	row(w, "time", "%.2f s", r.Seconds)
}

// sectorSealCommand really seals a small sector.
func (a *app) sectorSealCommand() *cobra.Command {
	var flags sectorFlags
	c := &cobra.Command{
		Use:   "seal --sector SIZE --out DIR",
		Short: "seal a small sector of pseudo-random data (2KiB or 8MiB)",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			request, err := flags.request(c)
			if err != nil {
				return err
			}
			if flags.size.size > seal.SizeMax {
				return fail(usage, `use "proofrack sector sparse" for larger sectors`,
					"sector seal keeps everything in memory: at most %s, not %s", seal.SizeMax, flags.size.size)
			}
			return a.makeSector(c.Context(), &flags, func(ctx context.Context) (*c1.Output, error) {
				meter := a.startMeter("sealing")
				defer meter.stop()
				return seal.Seal(ctx, request, func(done, total uint64) { meter.set(int64(done), int64(total)) })
			})
		},
	}
	flags.register(c, "v1, v1_1, synthetic or non-interactive")
	return c
}

// sectorSparseCommand makes a C1 output without a sector.
func (a *app) sectorSparseCommand() *cobra.Command {
	var flags sectorFlags
	c := &cobra.Command{
		Use:   "sparse --sector SIZE --out DIR",
		Short: "make the C1 output of a sector of any size without its data, for benchmarks",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			request, err := flags.request(c)
			if err != nil {
				return err
			}
			if flags.family.family != sdr.Interactive {
				return misuse("a %s proof hashes comm_r into its challenges, so its sector can't be sparse: use v1 or v1_1",
					flags.family.name)
			}
			return a.makeSector(c.Context(), &flags, func(ctx context.Context) (*c1.Output, error) {
				return sparse.Make(ctx, request)
			})
		},
	}
	flags.register(c, "v1 or v1_1")
	return c
}

// makeSector makes a sector and writes both files; if one can't be written, neither is there.
func (a *app) makeSector(ctx context.Context, f *sectorFlags, build func(context.Context) (*c1.Output, error)) error {
	start := time.Now()
	out, err := build(ctx)
	if err != nil {
		return fmt.Errorf("make sector %d: %w", f.number.number, err)
	}
	undo, err := makeFolder(f.out)
	if err != nil {
		return err
	}
	c1Path, infoPath := filepath.Join(f.out, "c1.json"), filepath.Join(f.out, "sector.json")
	if err := a.writeSector(out, describe(out, f.miner.id, f.number.number), c1Path, infoPath); err != nil {
		undo()
		return err
	}
	return a.emit(&sectorResult{
		RegisteredProof: out.RegisteredProof.String(),
		SectorBytes:     uint64(f.size.size),
		Miner:           f.miner.id,
		Sector:          f.number.number,
		Partitions:      len(out.VanillaProofs),
		CommR:           hex32{value: out.CommR},
		CommD:           hex32{value: out.CommD},
		CommRCID:        sdr.ReplicaCommitment.CID(out.CommR),
		CommDCID:        sdr.DataCommitment.CID(out.CommD),
		C1:              c1Path,
		Info:            infoPath,
		Seconds:         seconds(time.Since(start)),
	}, false)
}

// writeSector writes both files or none.
func (a *app) writeSector(out *c1.Output, info *sectorInfo, c1Path, infoPath string) error {
	c1File, err := a.stageOutput(c1Path, func(w io.Writer) error { return c1.WriteJSON(w, out) })
	if err != nil {
		return err
	}
	defer c1File.Close()
	infoFile, err := a.stageOutput(infoPath, info.write)
	if err != nil {
		return err
	}
	defer infoFile.Close()
	if err := c1File.commit(); err != nil {
		return err
	}
	if err := infoFile.commit(); err != nil {
		return errors.Join(err, os.Remove(c1Path))
	}
	return nil
}
