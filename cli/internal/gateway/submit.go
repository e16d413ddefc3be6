package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// submissions are those on their way to the rack, by key. One is made once however often it is asked for.
type submissions struct {
	config *Config
	rack   *rack
	kind   circuit.Kind
	log    zerolog.Logger
	meters *meters

	ctx    context.Context //nolint:containedctx // submissions outlive the calls that began them
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu    sync.Mutex
	byKey map[string]*submission
}

// submission is one on its way. Its results are valid once done is closed.
type submission struct {
	done  chan struct{}
	trace string // that the job's goes on from
	job   job.ID
	err   error
}

func newSubmissions(config *Config, r *rack, kind circuit.Kind, m *meters) *submissions {
	ctx, cancel := context.WithCancel(context.Background())
	return &submissions{
		config: config, rack: r, kind: kind, log: config.Log, meters: m, ctx: ctx, cancel: cancel,
		byKey: map[string]*submission{},
	}
}

// end gives up what is on its way; its clients are told to send it again.
func (s *submissions) end() {
	s.cancel()
	s.all.Wait()
}

// count is how many are on their way.
func (s *submissions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}

// submit has the rack accept a request and gives its job. The request's input is let go once that is done; turn ends
// then too, also when ctx ends before.
func (s *submissions) submit(ctx context.Context, r *cuzkv1.SubmitProofRequest, t *turn) (job.ID, error) {
	checked := callOf(ctx).begin(telemetry.SpanCheckInput, telemetry.Internal)
	input, err := s.check(ctx, r)
	checked.end(err)
	if err != nil {
		t.end()
		return "", err
	}
	hash := input.Hash()
	key := keyOf(r.GetRequestId(), hash)
	number := input.SectorNumber()
	request := client.Request{
		Key: key, Kind: s.kind.Name(), Miner: strconv.FormatUint(r.GetMinerId(), 10), SectorNumber: &number,
		Priority: priorityOf(r.GetPriority()), WaitForNode: true,
	}
	text := r.GetVanillaProof()
	r.VanillaProof = nil
	one := s.begin(callOf(ctx), key, &request, text, t)
	select {
	case <-one.done:
		callOf(ctx).about(telemetry.String(telemetry.KeyJobID, one.job))
		callOf(ctx).link(one.trace)
		return one.job, one.err
	case <-ctx.Done():
		return "", fmt.Errorf("submit: %w", context.Cause(ctx))
	}
}

// begin starts a submission for a call, or joins the one of the same key. The job's trace goes on from the call that
// was first.
func (s *submissions) begin(c *tracedCall, key string, request *client.Request, text []byte, t *turn) *submission {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.byKey[key]; ok {
		t.end()
		return one
	}
	span := c.begin(telemetry.SpanSubmit, telemetry.Client, telemetry.String(telemetry.KeyMinerID, request.Miner),
		telemetry.Int(telemetry.KeySectorNumber, *request.SectorNumber))
	request.TraceParent = span.context()
	one := &submission{done: make(chan struct{}), trace: request.TraceParent}
	s.byKey[key] = one
	s.all.Go(func() {
		defer t.end()
		one.job, one.err = s.run(request, text)
		span.about(telemetry.String(telemetry.KeyJobID, one.job))
		span.end(one.err)
		s.mu.Lock()
		delete(s.byKey, key)
		s.mu.Unlock()
		close(one.done)
	})
	return one
}

// Pauses between tries of a submission that the rack does not take: they double.
const (
	holdPauseMin = 250 * time.Millisecond
	holdPauseMax = 30 * time.Second
)

// brokenMax bounds tries that ended with what should not be.
const brokenMax = 3

// run makes a submission, trying until the rack takes it.
func (s *submissions) run(request *client.Request, text []byte) (job.ID, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.config.Gateway.HoldMax)
	defer cancel()
	log := s.log.With().Str("key", request.Key).Str(telemetry.KeyMinerID, request.Miner).
		Uint64(telemetry.KeySectorNumber, *request.SectorNumber).EmbedObject(telemetry.InTrace(request.TraceParent)).
		Logger()
	broken, why := 0, error(nil) // why it is held
	for pause := holdPauseMin; ; pause = min(2*pause, holdPauseMax) {
		submitted, err := s.once(ctx, request, text)
		switch kind := fault.KindOf(err); {
		case err == nil:
			s.meters.accepted.Inc(strconv.FormatBool(submitted.Existing))
			log.Info().Str(telemetry.KeyJobID, string(submitted.Job)).Bool("existing", submitted.Existing).
				Str("state", string(submitted.State)).Msg("job is accepted")
			return submitted.Job, nil
		case s.ctx.Err() != nil:
			return "", errLeaving()
		case ctx.Err() != nil:
			if why == nil {
				why = err
			}
			return "", fault.As(fault.Exhausted, fmt.Errorf("held for %s: %w", s.config.Gateway.HoldMax, why))
		case kind == fault.Invalid, kind == fault.NotFound, kind == fault.Conflict:
			log.Warn().EmbedObject(telemetry.Fault{Err: err}).Msg("the rack refuses a request")
			return "", err
		case kind != fault.Transient && kind != fault.Exhausted:
			if broken++; broken >= brokenMax {
				return "", err
			}
		}
		if why == nil {
			log.Warn().EmbedObject(telemetry.Fault{Err: err}).Msg("the rack cannot take a request now; it is held")
		}
		why = err
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (s *submissions) once(ctx context.Context, request *client.Request, text []byte) (*client.Submitted, error) {
	c, err := s.rack.wait(ctx)
	if err != nil {
		return nil, err
	}
	attempt := *request
	attempt.Input = bytes.NewReader(text)
	return c.Submit(ctx, attempt)
}

// check parses and checks a request's input whole, and holds what the request says of it against it.
func (s *submissions) check(ctx context.Context, r *cuzkv1.SubmitProofRequest) (circuit.Input, error) {
	text := r.GetVanillaProof()
	switch {
	case len(text) == 0 && len(r.GetVanillaProofs()) > 0:
		return nil, fault.New(fault.Invalid, "vanilla_proofs: a PoRep has its input in vanilla_proof")
	case len(text) == 0:
		return nil, fault.New(fault.Invalid, "vanilla_proof: is empty")
	case len(r.GetRequestId()) > requestIDBytesMax:
		return nil, fault.New(fault.Invalid, "request_id: has %d bytes, the limit is %d", len(r.GetRequestId()),
			requestIDBytesMax)
	}
	claim := circuit.Claim{ProverID: sdr.ProverID(r.GetMinerId())}
	if number := r.GetSectorNumber(); number != 0 || !isEnvelope(text) {
		claim.SectorNumber = &number
	}
	input, err := s.kind.Open(ctx, bytes.NewReader(text), claim)
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("vanilla_proof: %w", err))
	}
	if p, ok := input.(*porep.Input); ok {
		if err := agrees(r, p); err != nil {
			return nil, err
		}
	}
	if input.ForAggregation() {
		return nil, fault.New(fault.Invalid, "vanilla_proof: is non-interactive; the chain takes its proofs only "+
			"aggregated, and there is no aggregator yet")
	}
	return input, nil
}

// agrees holds what a request says beside its input against it; 0 is not said.
func agrees(r *cuzkv1.SubmitProofRequest, in *porep.Input) error {
	registered := in.Output().RegisteredProof
	if size := r.GetSectorSize(); size != 0 && size != uint64(registered.Size()) {
		return fault.New(fault.Invalid, "sector_size: is %d, the input is of %s (%d)", size, registered,
			uint64(registered.Size()))
	}
	if number := r.GetRegisteredProof(); number != 0 && number != uint64(registered) {
		said := strconv.FormatUint(number, 10)
		if number < sdr.RegisteredProofCount {
			said = sdr.RegisteredProof(number).String()
		}
		return fault.New(fault.Invalid, "registered_proof: is %d (%s), the input is of %d (%s)", number, said,
			registered, registered)
	}
	return nil
}

// isEnvelope guesses whether an input brings its sector's number: the name is in its first or last bytes, beside the
// long text.
func isEnvelope(text []byte) bool {
	const look = 4 << 10
	name := []byte(`"SectorNum"`)
	return bytes.Contains(text[:min(len(text), look)], name) || bytes.Contains(text[max(0, len(text)-look):], name)
}

// requestIDBytesMax bounds the client's name of a request.
const requestIDBytesMax = 4 << 10

// keyOf is the rack's key of a request: readable where the client's name is, and different for every input.
func keyOf(requestID string, hash [32]byte) string {
	suffix := ":" + hex.EncodeToString(hash[:])
	printable := !strings.ContainsFunc(requestID, func(c rune) bool { return c < ' ' || c > '~' })
	if !printable || len("id:"+requestID+suffix) > job.KeyBytesMax {
		sum := sha256.Sum256([]byte(requestID))
		return "sha256:" + hex.EncodeToString(sum[:]) + suffix
	}
	return "id:" + requestID + suffix
}

// priorityOf is a priority of the protocol as the rack counts.
func priorityOf(p cuzkv1.Priority) int {
	switch p {
	case cuzkv1.Priority_LOW:
		return -50
	case cuzkv1.Priority_HIGH:
		return 50
	case cuzkv1.Priority_CRITICAL:
		return 100
	case cuzkv1.Priority_PRIORITY_UNSPECIFIED, cuzkv1.Priority_NORMAL:
	}
	return 0
}
