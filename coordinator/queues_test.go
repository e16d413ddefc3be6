package coordinator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// queuesWorld is a bus with the rack's streams and something that makes queues.
func queuesWorld(t *testing.T) (*membus.Server, *queues, func(c bus.Consumer) error) {
	t.Helper()
	server := membus.New(membus.Config{})
	b := server.Connect(bus.Events{})
	t.Cleanup(b.Close)
	streams := DefaultStreams()
	if err := b.Setup(t.Context(), streams.Topology()); err != nil {
		t.Fatal(err)
	}
	q := newQueues(b, 20*time.Millisecond, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); q.run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return server, q, func(c bus.Consumer) error {
		c.Existing = true
		_, err := b.Queue(t.Context(), c)
		return err
	}
}

func gpuBeat(node job.Node, ackWait time.Duration, devices ...job.Device) *wire.Beat {
	b := &wire.Beat{Node: node, Role: wire.RoleGPU, State: wire.StateReady, AckWaitMS: ackWait.Milliseconds()}
	for _, d := range devices {
		b.Devices = append(b.Devices, wire.DeviceState{Device: d})
	}
	return b
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestQueuesAreMadeAtTheFirstBeatAndAgain: one for the synthesis of a node, one per device; made again when lost.
func TestQueuesAreMadeAtTheFirstBeatAndAgain(t *testing.T) {
	t.Parallel()
	server, q, there := queuesWorld(t)
	synth := &wire.Beat{Node: "n1", Role: wire.RoleSynth, State: wire.StateReady, AckWaitMS: 3000}
	gpu := gpuBeat("n1", 3*time.Second, "cpu", "gpu-1a2b3c4d")
	want := []bus.Consumer{
		{Stream: wire.StreamSynth, Name: "synth-n1", Subject: "c2.synth.n1"},
		{Stream: wire.StreamProve, Name: "prove-n1_cpu", Subject: "c2.prove.n1.cpu"},
		{Stream: wire.StreamProve, Name: "prove-n1_gpu-1a2b3c4d", Subject: "c2.prove.n1.gpu-1a2b3c4d"},
	}
	for _, c := range want {
		if err := there(c); fault.KindOf(err) != fault.NotFound {
			t.Fatalf("%s before any beat: %v", c.Name, err)
		}
	}
	made := func() bool {
		q.want(synth, time.Now())
		q.want(gpu, time.Now())
		for _, c := range want {
			if there(c) != nil {
				return false
			}
		}
		return true
	}
	until(t, "queues are made", made)
	server.Wipe() // all disks are lost
	streams := DefaultStreams()
	if err := q.bus.Setup(t.Context(), streams.Topology()); err != nil {
		t.Fatal(err)
	}
	until(t, "queues are made again", made)
}

// TestQueuesOfOneNodeAreBounded: a node that calls itself the owner of ever new devices gets no more.
func TestQueuesOfOneNodeAreBounded(t *testing.T) {
	t.Parallel()
	_, q, there := queuesWorld(t)
	for i := range 3 * devicesMax {
		q.want(gpuBeat("bad", time.Second, job.Device(fmt.Sprintf("d%d", i))), time.Now())
		if i%32 == 0 {
			until(t, "the queue of wants is short", func() bool { return len(q.wanted) == 0 })
		}
	}
	good := bus.Consumer{Stream: wire.StreamProve, Name: "prove-good_cpu", Subject: "c2.prove.good.cpu"}
	until(t, "another node gets its queue", func() bool {
		q.want(gpuBeat("good", time.Second, "cpu"), time.Now())
		return there(good) == nil
	})
	if n := q.of["bad"]; n != devicesMax+1 {
		t.Errorf("%d queues of one node", n)
	}
}

// TestOlderWorkersMakeTheirOwn: a beat that asks for none gets none.
func TestOlderWorkersMakeTheirOwn(t *testing.T) {
	t.Parallel()
	if got := consumersOf(gpuBeat("n1", 0, "cpu")); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
