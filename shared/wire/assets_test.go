package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

func fetching(change func(*wire.Transfer)) *wire.Control {
	t := &wire.Transfer{
		Circuit: "toy", Token: "t", Expires: time.Unix(1700000000, 0).UTC(), URL: "http://10.0.0.7:7001/", Bytes: 5,
		Digest: "0123", Development: true,
	}
	change(t)
	return &wire.Control{Node: "n2", Kind: wire.ControlFetch, Transfer: t}
}

func TestOrdersAboutAssetsComeBack(t *testing.T) {
	t.Parallel()
	for _, body := range []wire.Body{
		&wire.AssetsRequest{}, &wire.AssetsRequest{Node: "n1"},
		&wire.AssetsRequest{Do: wire.AssetsCopy, Node: "n2", From: "n1", Circuit: "toy"},
		&wire.Control{Node: "n1", Kind: wire.ControlPreload, Circuit: "toy"},
		fetching(func(*wire.Transfer) {}),
		&wire.Control{Node: "n1", Kind: wire.ControlShare, Transfer: &wire.Transfer{
			Circuit: "toy", Token: "t", Expires: time.Unix(1700000000, 0).UTC(),
		}},
	} {
		data, err := wire.Encode(body)
		if err != nil {
			t.Errorf("%+v: %v", body, err)
			continue
		}
		back := emptyLike(body)
		if err := wire.Decode(data, back); err != nil {
			t.Errorf("%s: %v", data, err)
		} else if diff := cmp.Diff(body, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("comes back changed: %s", diff)
		}
	}
}

func TestOrdersAboutAssetsThatNobodyWritesAreRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]wire.Body{
		"unknown verb":      &wire.AssetsRequest{Do: "burn", Node: "n1", Circuit: "toy"},
		"no node":           &wire.AssetsRequest{Do: wire.AssetsEvict, Circuit: "toy"},
		"no circuit":        &wire.AssetsRequest{Do: wire.AssetsPreload, Node: "n1"},
		"endless circuit":   &wire.AssetsRequest{Do: wire.AssetsEvict, Node: "n1", Circuit: strings.Repeat("x", 65)},
		"a path as node":    &wire.AssetsRequest{Node: "../n1"},
		"a path as source":  &wire.AssetsRequest{Do: wire.AssetsCopy, Node: "n1", Circuit: "toy", From: "a/b"},
		"from itself":       &wire.AssetsRequest{Do: wire.AssetsCopy, Node: "n1", From: "n1", Circuit: "toy"},
		"evict from":        &wire.AssetsRequest{Do: wire.AssetsEvict, Node: "n1", From: "n2", Circuit: "toy"},
		"preload of none":   &wire.Control{Node: "n1", Kind: wire.ControlPreload},
		"share of none":     &wire.Control{Node: "n1", Kind: wire.ControlShare},
		"no token":          fetching(func(t *wire.Transfer) { t.Token = "" }),
		"no end":            fetching(func(t *wire.Transfer) { t.Expires = time.Time{} }),
		"file URL":          fetching(func(t *wire.Transfer) { t.URL = "file:///etc/passwd" }),
		"no URL":            fetching(func(t *wire.Transfer) { t.URL = "" }),
		"no size":           fetching(func(t *wire.Transfer) { t.Bytes = 0 }),
		"no digest":         fetching(func(t *wire.Transfer) { t.Digest = "" }),
		"circuit of a file": fetching(func(t *wire.Transfer) { t.Circuit = "" }),
	} {
		if err := body.Check(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
