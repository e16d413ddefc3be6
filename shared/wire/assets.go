package wire

import (
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// AdminAssets is the verb of operators for what the attempts of a node share.
const AdminAssets = "assets"

// What an AssetsRequest asks for, beside the list that "" asks for.
const (
	AssetsPreload = "preload" // book and load a circuit's assets on a node
	AssetsEvict   = "evict"   // give them back
	AssetsCopy    = "copy"    // have a node fetch a circuit's parameter file from another one
)

// Bounds of names in orders about assets.
const (
	circuitBytesMax = 64
	tokenBytesMax   = 128
	urlBytesMax     = 512
	digestBytesMax  = 128
)

// AssetsRequest lists assets, of all nodes or one, or changes those of a circuit on a node.
type AssetsRequest struct {
	Do      string   `json:"do,omitempty"`
	Node    job.Node `json:"node,omitempty"` // whose; of copy, which node is to have the file
	Circuit string   `json:"circuit,omitempty"`
	// From is the node that has the file; "" lets the coordinator choose.
	From job.Node `json:"from,omitempty"`
}

// Check implements Body.
func (r *AssetsRequest) Check() error {
	for _, n := range []job.Node{r.Node, r.From} {
		if n == "" {
			continue
		}
		if _, err := job.ParseNode(string(n)); err != nil {
			return fault.As(fault.Invalid, err)
		}
	}
	switch r.Do {
	case "":
		return nil
	case AssetsPreload, AssetsEvict, AssetsCopy:
	default:
		return fault.New(fault.Invalid, "assets: nothing is known of %q", r.Do)
	}
	if r.Node == "" || r.Circuit == "" || len(r.Circuit) > circuitBytesMax {
		return fault.New(fault.Invalid, "assets: %s needs a node and a circuit", r.Do)
	}
	if r.From != "" && (r.Do != AssetsCopy || r.From == r.Node) {
		return fault.New(fault.Invalid, "assets: %s of node %s from node %s", r.Do, r.Node, r.From)
	}
	return nil
}

// AssetsReply answers AssetsRequest.
type AssetsReply struct {
	Reply
	Nodes []NodeAssets `json:"nodes,omitempty"`
	// From is the node that a copy comes from.
	From job.Node `json:"from,omitempty"`
}

// NodeAssets are the assets of a node, and what its devices could load.
type NodeAssets struct {
	Node     job.Node       `json:"node"`
	Assets   []AssetView    `json:"assets"`
	Circuits []CircuitState `json:"circuits"`
}

// AssetView is one asset in the ledger's book of a node.
type AssetView struct {
	ledger.Asset
	// Users counts the reservations that use it; one of none can be evicted.
	Users int `json:"users"`
	// UsedAt is when one last began or ended.
	UsedAt time.Time `json:"used_at"`
	// Present tells that the node says that it holds it.
	Present bool `json:"present"`
}

// CircuitState is a circuit on a device.
type CircuitState struct {
	Device  job.Device `json:"device"`
	Circuit string     `json:"circuit"`
	Ready   bool       `json:"ready"`
	Missing string     `json:"missing,omitempty"`
	Digest  string     `json:"digest,omitempty"`
	Loading *Loading   `json:"loading,omitempty"`
}

// Loading is how far a load or copy is.
type Loading struct {
	What  string         `json:"what"` // "load" or "copy"
	Done  bytesize.Bytes `json:"done_bytes"`
	Total bytesize.Bytes `json:"total_bytes"`
}

// Transfer is one copy of a parameter file between two nodes, as both are told. The token is good for this file until
// it expires.
type Transfer struct {
	Circuit string    `json:"circuit"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
	// The rest is for the node that fetches: where from, and what the file must be.
	URL         string         `json:"url,omitempty"`
	Bytes       bytesize.Bytes `json:"bytes,omitempty"`
	Digest      string         `json:"digest,omitempty"`
	Development bool           `json:"development,omitempty"`
}

// check refuses what neither side can use.
func (t *Transfer) check(fetch bool) error {
	if t.Circuit == "" || len(t.Circuit) > circuitBytesMax || t.Token == "" || len(t.Token) > tokenBytesMax ||
		t.Expires.IsZero() {
		return fault.New(fault.Invalid, "transfer without a circuit, a token or its end")
	}
	if !fetch {
		return nil
	}
	if host, ok := strings.CutPrefix(t.URL, "http://"); !ok || host == "" || len(t.URL) > urlBytesMax {
		return fault.New(fault.Invalid, "transfer of circuit %s from %q", t.Circuit, t.URL)
	}
	if t.Bytes <= 0 || t.Digest == "" || len(t.Digest) > digestBytesMax {
		return fault.New(fault.Invalid, "transfer of circuit %s without size or digest", t.Circuit)
	}
	return nil
}
