package sizes_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

const mib = bytesize.MiB

func began() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func key(pool ledger.Pool) sizes.Key {
	return sizes.Key{Circuit: "c", Stage: job.Synthesizing, Kind: "H200", Pool: pool}
}

// observe has peaks measured one after the other, and gives the outcomes that tell of drift.
func observe(t *sizes.Table, k sizes.Key, computed bytesize.Bytes, peaks ...bytesize.Bytes) (told []sizes.Outcome) {
	for i, peak := range peaks {
		if out := t.Observe(began().Add(time.Duration(i)*time.Second), k, computed, peak); out.Told {
			told = append(told, out)
		}
	}
	return told
}

func TestFewSamplesAreBookedAsComputed(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	k := key(ledger.PoolSHM)
	told := observe(table, k, 70*mib, 100*mib, 100*mib, 100*mib, 100*mib)
	if len(told) > 0 || table.Surplus(k, 70*mib) != 0 {
		t.Errorf("after four: %+v, surplus %s", told, table.Surplus(k, 70*mib))
	}
	out := table.Observe(began(), k, 70*mib, 100*mib)
	want := sizes.Size{
		Key: k, Computed: 70 * mib, P50: 100 * mib, P99: 100 * mib, Samples: 5, Booked: 110 * mib, Over: true,
		MeasuredAt: began(),
	}
	if diff := cmp.Diff(sizes.Outcome{Size: want, Resized: true, Told: true}, out); diff != "" {
		t.Errorf("the fifth (-want +got):\n%s", diff)
	}
	if got := table.Surplus(k, 70*mib); got != 40*mib {
		t.Errorf("surplus %s", got)
	}
	if out := table.Observe(began(), k, 70*mib, 100*mib); out.Resized || out.Told {
		t.Errorf("told again: %+v", out)
	}
}

// A process's memory is no exact measure: a little more ram than computed changes nothing; files are exact.
func TestSlackIsForRAMAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pool  ledger.Pool
		stage job.Stage
		peak  bytesize.Bytes
		want  bytesize.Bytes
	}{
		{ledger.PoolRAM, job.Synthesizing, 42 * mib, 0},
		{ledger.PoolRAM, job.Synthesizing, 43 * mib, 33*mib + 4508876},
		{ledger.PoolSHM, job.Synthesizing, 10*mib + 160*1024, 0}, // a sixty-fourth
		{ledger.PoolSHM, job.Synthesizing, 20 * mib, 12 * mib},
		{sizes.VRAM, job.Proving, 20 * mib, 12 * mib},
		{ledger.PoolDisk, job.Synthesizing, 5 * mib, 0}, // never lower by itself
	} {
		table := sizes.New(sizes.DefaultConfig())
		k := sizes.Key{Circuit: "c", Stage: test.stage, Pool: test.pool}
		for range 7 {
			table.Observe(began(), k, 10*mib, test.peak)
		}
		if got := table.Surplus(k, 10*mib); got != test.want {
			t.Errorf("%s, peak %s: surplus %s, not %s", test.pool, test.peak, got, test.want)
		}
	}
}

func TestAnotherComputedSizeBeginsAnew(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	k := key(ledger.PoolSHM)
	many := []bytesize.Bytes{100 * mib, 100 * mib, 100 * mib, 100 * mib, 100 * mib}
	observe(table, k, 70*mib, many...)
	if got := table.Surplus(k, 100*mib); got != 0 {
		t.Errorf("learned beside 70 MiB, counts for 100 MiB: %s", got)
	}
	out := table.Observe(began(), k, 100*mib, 100*mib)
	if out.Size.Samples != 1 || out.Size.Over || out.Size.Booked != 100*mib {
		t.Errorf("began with %+v", out)
	}
}

func TestDriftIsToldWhenItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	k := key(ledger.PoolDisk)
	same := func(peak bytesize.Bytes, n int) (all []bytesize.Bytes) {
		for range n {
			all = append(all, peak)
		}
		return all
	}
	for _, step := range []struct {
		peak        bytesize.Bytes
		count, told int
		over, under bool
	}{
		{100 * mib, 8, 0, false, false}, {50 * mib, 250, 1, false, true}, {100 * mib, 2, 1, false, false},
		{200 * mib, 250, 1, true, false}, {100 * mib, 250, 1, false, false},
	} {
		told := observe(table, k, 100*mib, same(step.peak, step.count)...)
		row := table.Sizes()[0]
		if len(told) != step.told || row.Over != step.over || row.Under != step.under {
			t.Errorf("after %d of %s: told %d times, %+v", step.count, step.peak, len(told), row)
		}
		drifting := 0
		if step.over || step.under {
			drifting = 1
		}
		if got := table.Drifting(); got != drifting {
			t.Errorf("drifting: %d", got)
		}
	}
}

func TestPinHoldsWhateverIsMeasured(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	k := key(ledger.PoolRAM)
	if err := table.Pin(began(), k, 60*mib); err != nil {
		t.Fatal(err)
	}
	if got := table.Surplus(k, 100*mib); got != -40*mib {
		t.Errorf("lowered by a pin: %s", got)
	}
	told := observe(table, k, 100*mib, 200*mib, 200*mib, 200*mib, 200*mib, 200*mib, 200*mib)
	if len(told) != 1 || table.Surplus(k, 100*mib) != -40*mib || table.Sizes()[0].Booked != 60*mib {
		t.Errorf("told %d times, %+v", len(told), table.Sizes())
	}
	if err := table.Unpin(k); err != nil || table.Surplus(k, 100*mib) != 120*mib {
		t.Errorf("after unpin: %v, %s", err, table.Surplus(k, 100*mib))
	}
	if err := table.Unpin(k); fault.KindOf(err) != fault.NotFound {
		t.Errorf("unpin twice: %v", err)
	}
}

func TestPinRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	observe(table, key(ledger.PoolSHM), 100*mib, 100*mib)
	good := key(ledger.PoolRAM)
	for name, pin := range map[string]struct {
		edit  func(*sizes.Key)
		bytes bytesize.Bytes
	}{
		"nothing":             {func(*sizes.Key) {}, 0},
		"too much":            {func(*sizes.Key) {}, bytesize.Max + 1},
		"no circuit":          {func(k *sizes.Key) { k.Circuit = "" }, mib},
		"long circuit":        {func(k *sizes.Key) { k.Circuit = strings.Repeat("x", 97) }, mib},
		"long kind":           {func(k *sizes.Key) { k.Kind = strings.Repeat("x", 97) }, mib},
		"stage":               {func(k *sizes.Key) { k.Stage = job.Sealed }, mib},
		"pool":                {func(k *sizes.Key) { k.Pool = "vram:gpu0" }, mib},
		"less than a segment": {func(k *sizes.Key) { k.Pool = ledger.PoolSHM }, 99 * mib},
	} {
		k := good
		pin.edit(&k)
		if err := table.Pin(began(), k, pin.bytes); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The table stays within its bounds, pinned rows stay in it, and its largest form can be stored.
func TestTableIsBounded(t *testing.T) {
	t.Parallel()
	table := sizes.New(sizes.DefaultConfig())
	long := strings.Repeat("x", sizes.CircuitBytesMax-4)
	pinned := sizes.Key{Circuit: "pinned", Stage: job.Proving, Pool: sizes.VRAM}
	if err := table.Pin(began(), pinned, mib); err != nil {
		t.Fatal(err)
	}
	for i := range sizes.RowsMax + 10 {
		k := sizes.Key{
			Circuit: fmt.Sprintf("%s%04d", long, i), Stage: job.Synthesizing, Kind: strings.Repeat("k", sizes.KindBytesMax),
			Pool: ledger.PoolRAM,
		}
		for range sizes.SamplesMax + 1 {
			table.Observe(began().Add(time.Duration(i+1)*time.Second), k, bytesize.Max, bytesize.Max)
		}
	}
	rows := table.Sizes()
	if len(rows) != sizes.RowsMax || !rows[0].Pinned || !strings.HasSuffix(rows[1].Circuit, "0011") {
		t.Errorf("%d rows, first %+v, second %q", len(rows), rows[0], rows[1].Circuit)
	}
	for i := range sizes.SpeedsMax + 1 {
		table.SetSpeed(
			sizes.SpeedKey{Circuit: fmt.Sprintf("%s%04d", long, i), Node: "node-0123456789", Device: "gpu-12345678"},
			sizes.Speed{Synthesis: time.Hour, Proof: time.Hour, Samples: 1 << 30, At: began().Add(time.Duration(i))})
	}
	if got := table.Speeds(); len(got) != sizes.SpeedsMax*7/8+1 || !strings.HasSuffix(got[0].Circuit, "0384") {
		t.Errorf("%d speeds", len(got))
	}
	for i := range sizes.SpeedsMax / 8 {
		table.SetSpeed(sizes.SpeedKey{Circuit: fmt.Sprintf("%s%04d", long, i), Node: "n", Device: "d"}, sizes.Speed{})
	}
	if _, _, err := table.Encode(); err != nil {
		t.Error(err)
	}
}

func TestTableComesBackAsItWasStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := sizes.New(sizes.DefaultConfig())
		pools := []ledger.Pool{ledger.PoolRAM, ledger.PoolSHM, ledger.PoolDisk, sizes.VRAM}
		draw := func(what string) sizes.Key {
			return sizes.Key{
				Circuit: rapid.SampledFrom([]string{"a", "b"}).Draw(t, what+" circuit"),
				Stage:   rapid.SampledFrom([]job.Stage{job.Synthesizing, job.Proving}).Draw(t, what+" stage"),
				Kind:    rapid.SampledFrom([]string{"", "H200"}).Draw(t, what+" kind"),
				Pool:    rapid.SampledFrom(pools).Draw(t, what+" pool"),
			}
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "do") == 0 {
				_ = table.Pin(began(), draw("pin"), bytesize.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "bytes"))) // or not
				continue
			}
			table.Observe(began(), draw("row"), bytesize.Bytes(rapid.Int64Range(1, 2).Draw(t, "computed"))*64*mib,
				bytesize.Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "peak")))
		}
		table.SetSpeed(sizes.SpeedKey{Circuit: "a", Node: "n1", Device: "gpu0"},
			sizes.Speed{Proof: time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "proof")), Samples: 3, At: began()})
		rows, speeds, err := table.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := sizes.Decode(sizes.DefaultConfig(), rows, speeds)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(table.Sizes(), back.Sizes()) + cmp.Diff(table.Speeds(), back.Speeds()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		again, _, err := back.Clone().Encode()
		if err != nil || !bytes.Equal(rows, again) {
			t.Fatalf("stored again it is another: %v", err)
		}
	})
}

// What a later leader measured before it read the stored table counts on top of it.
func TestRecallPutsEarlierPeaksFirst(t *testing.T) {
	t.Parallel()
	before, now := sizes.New(sizes.DefaultConfig()), sizes.New(sizes.DefaultConfig())
	shm, disk := key(ledger.PoolSHM), key(ledger.PoolDisk)
	vram := sizes.Key{Circuit: "c", Stage: job.Proving, Pool: sizes.VRAM}
	observe(before, shm, 70*mib, 100*mib, 100*mib, 100*mib, 100*mib)
	observe(before, disk, 70*mib, 100*mib, 100*mib, 100*mib, 100*mib, 100*mib)
	if err := before.Pin(began(), vram, 5*mib); err != nil {
		t.Fatal(err)
	}
	slow := sizes.SpeedKey{Circuit: "c", Node: "n1", Device: "gpu0"}
	before.SetSpeed(slow, sizes.Speed{Proof: time.Minute})
	observe(now, shm, 70*mib, 90*mib)
	observe(now, disk, 80*mib, 80*mib) // another build
	now.Recall(before)
	if got := now.Surplus(shm, 70*mib); got != 40*mib {
		t.Errorf("surplus of shm %s: %+v", got, now.Sizes())
	}
	if got := now.Surplus(disk, 80*mib); got != 0 {
		t.Errorf("surplus of disk %s", got)
	}
	if got := now.Surplus(vram, 6*mib); got != -mib {
		t.Errorf("surplus of vram %s", got)
	}
	if now.Drifting() != 1 || now.Speed("c", "n1", "gpu0").Proof != time.Minute || now.Typical("c").Proof != time.Minute {
		t.Errorf("drifting %d, speeds %+v", now.Drifting(), now.Speeds())
	}
	if got := before.Sizes()[2].Samples; got != 4 {
		t.Errorf("the earlier table was changed: %d", got)
	}
}

func FuzzDecode(f *testing.F) {
	table := sizes.New(sizes.DefaultConfig())
	observe(table, key(ledger.PoolRAM), 70*mib, 100*mib, 101*mib)
	table.SetSpeed(sizes.SpeedKey{Circuit: "c", Node: "n1", Device: "gpu0"}, sizes.Speed{Proof: time.Second, Samples: 1})
	rows, speeds, err := table.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rows, speeds)
	f.Add([]byte(`{"v":2}`), []byte(`{"v":1,"speeds":[{"circuit":"c","node":"n1","device":"d","proof_ns":-1}]}`))
	f.Add([]byte(`{"v":1,"rows":[{"circuit":"c","stage":"proving","pool":"ram","peaks":[-1]}]}`), []byte(nil))
	f.Fuzz(func(t *testing.T, rows, speeds []byte) {
		table, err := sizes.Decode(sizes.DefaultConfig(), rows, speeds)
		if err != nil {
			if fault.KindOf(err) != fault.Corrupt {
				t.Errorf("kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		for _, s := range table.Sizes() {
			if s.Booked < s.Computed && !s.Pinned {
				t.Errorf("booked below what is computed: %+v", s)
			}
		}
		if _, _, err := table.Encode(); err != nil && fault.KindOf(err) != fault.Exhausted {
			t.Error(err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, bad := range []sizes.Config{{Margin: -1}, {DriftMax: 11}, {Slack: -1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
	good := sizes.DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
