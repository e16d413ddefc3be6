package verb

import (
	"context"
	"math"
	"testing"
)

func TestUnitIsTheMedian(t *testing.T) {
	t.Parallel()
	result, err := measureUnit(context.Background(), 1<<8, 3)
	if err != nil {
		t.Fatal(err)
	}
	below, above := 0, 0
	for _, s := range result.Runs {
		if s < result.Unit {
			below++
		}
		if s > result.Unit {
			above++
		}
	}
	if len(result.Runs) != 3 || below > 1 || above > 1 || result.Rust != result.Unit*rustUnits {
		t.Fatalf("got %+v", result)
	}
}

func TestDeviationsAreFromTheMean(t *testing.T) {
	t.Parallel()
	r := benchCircuitsResult{Systems: []benchSystem{{Each: 9}, {Each: 10}, {Each: 14}}}
	r.compare()
	for i, want := range []float64{9.0/11 - 1, 10.0/11 - 1, 14.0/11 - 1} {
		if got := r.Systems[i].OffMean; math.Abs(got-want) > 1e-12 {
			t.Errorf("system %d: got %v, want %v", i, got, want)
		}
	}
	if r.Mean != 11 || math.Abs(r.Spread-3.0/11) > 1e-12 {
		t.Errorf("mean %v, spread %v", r.Mean, r.Spread)
	}
}
