package keyring

import (
	"slices"

	"github.com/nats-io/jwt/v2"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Kind is what a credential is for.
type Kind string

const (
	// KindCoordinator is for one coordinator.
	KindCoordinator Kind = "coordinator"
	// KindNode is for all workers of a host.
	KindNode Kind = "node"
	// KindTenant is for the clients of a tenant.
	KindTenant Kind = "tenant"
	// KindOperator is for a person who runs the rack.
	KindOperator Kind = "operator"
)

// rawLetters is the kind of dead letter that workers write: messages that they cannot read.
const rawLetters = "message"

// InboxPrefix is where answers to a user arrive; nobody else may listen there. Programs read it from the credential.
func InboxPrefix(kind Kind, name string) string { return "_INBOX." + string(kind) + "." + name }

// accountInfo is where JetStream tells an account how full it is. Nobody has the permission to ask.
const accountInfo = "$JS.API.INFO"

// rights are what one user may reach of the rack. They are kept twice: as imports of the user's own account, beyond
// which nothing of it gets, not even an answer that it has sent elsewhere, and as permissions of the user.
type rights struct {
	// asks are subjects that it may publish to: requests, and messages for streams.
	asks []string
	// hears are subjects that it may listen to, beside its inbox.
	hears []string
}

// permissions are rights as NATS checks them at the user's connection.
func (r *rights) permissions(kind Kind, name string) jwt.Permissions {
	hears := append(slices.Clone(r.hears), InboxPrefix(kind, name)+".>")
	return jwt.Permissions{Pub: jwt.Permission{Allow: r.asks}, Sub: jwt.Permission{Allow: hears}}
}

// imports are rights as NATS confines the user's account to them.
func (r *rights) imports(rack string) (all jwt.Imports) {
	// An account that imports this uses the rack's JetStream and gets none of its own.
	for _, subject := range append([]string{accountInfo}, r.asks...) {
		all.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: rack, Type: jwt.Service})
	}
	for _, subject := range r.hears {
		all.Add(&jwt.Import{Name: subject, Subject: jwt.Subject(subject), Account: rack, Type: jwt.Stream})
	}
	return all
}

// exports are all that accounts of users may be given. Which account gets what of it is in that account's token, which
// only the ring's operator key can sign.
func exports() (all jwt.Exports) {
	for _, subject := range []string{
		"c2.submit.*", "c2.status.*", "c2.cancel.*", "c2.jobs.*", "c2.why.*", "c2.admin.*",
		wire.AllResult, wire.AllProve, wire.AllDLQ, wire.AllBeats, wire.AllReports,
		"$O.*.C.*", "$O.*.M.*", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.STREAM.PURGE.*",
		"$JS.API.DIRECT.GET.>", "$JS.API.CONSUMER.INFO.*.*", "$JS.ACK.>", accountInfo,
	} {
		all.Add(&jwt.Export{Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service})
	}
	for _, subject := range []string{"$JS.API.CONSUMER.MSG.NEXT.*.*", "$SRV.>"} { // answered more than once
		all.Add(&jwt.Export{
			Name: subject, Subject: jwt.Subject(subject), Type: jwt.Service, ResponseType: jwt.ResponseTypeStream,
		})
	}
	for _, subject := range []string{wire.AllEvents, "c2.ctl.*", wire.AllBeats, wire.AllReports} {
		all.Add(&jwt.Export{Name: "hear " + subject, Subject: jwt.Subject(subject), Type: jwt.Stream})
	}
	return all
}

// consumer is what fetching from one durable consumer takes. Coordinators make it: who could, could have it deliver to
// any subject.
func consumer(stream, name string) []string {
	return []string{
		"$JS.API.CONSUMER.INFO." + stream + "." + name,
		"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + name,
		"$JS.ACK." + stream + "." + name + ".>",
	}
}

// objectRead is what reading a bucket of objects takes. With one server messages are got directly, with three by way of
// the leader of the stream.
func objectRead(bucket string) []string {
	stream := "OBJ_" + bucket
	return []string{
		"$JS.API.STREAM.INFO." + stream, "$JS.API.STREAM.MSG.GET." + stream,
		"$JS.API.DIRECT.GET." + stream, "$JS.API.DIRECT.GET." + stream + ".>",
	}
}

// nodeRights pin a node's workers to the node and its devices.
func nodeRights(node job.Node, devices []job.Device) rights {
	asks := []string{
		wire.ResultSubject(node), wire.BeatSubject(node), wire.ReportSubject(node), wire.DLQSubject(rawLetters),
		// The fence stands in the job's record.
		"$JS.API.STREAM.INFO.KV_" + wire.BucketJobs, "$JS.API.STREAM.MSG.GET.KV_" + wire.BucketJobs,
		"$JS.API.DIRECT.GET.KV_" + wire.BucketJobs + ".$KV." + wire.BucketJobs + "." + wire.JobKeyPrefix + "*",
	}
	asks = append(asks, objectRead(wire.ObjectsSlices)...)
	asks = append(asks, consumer(wire.StreamSynth, wire.SynthConsumer(node))...)
	for _, d := range devices {
		asks = append(asks, wire.ProveSubject(node, d))
		asks = append(asks, consumer(wire.StreamProve, wire.ProveConsumer(node, d))...)
	}
	return rights{asks: asks, hears: []string{wire.ControlSubject(node)}}
}

// tenantRights pin a client to its tenant.
func tenantRights(tenant job.Tenant) rights {
	in, proofs := wire.ObjectsIn(tenant), wire.ObjectsProofs(tenant)
	var asks []string
	for _, verb := range []string{wire.VerbSubmit, wire.VerbStatus, wire.VerbCancel, wire.VerbJobs, wire.VerbWhy} {
		asks = append(asks, wire.ClientSubject(verb, tenant))
	}
	asks = append(asks, objectRead(in)...)
	asks = append(asks, "$O."+in+".C.*", "$O."+in+".M.*", "$JS.API.STREAM.PURGE.OBJ_"+in)
	asks = append(asks, objectRead(proofs)...)
	return rights{asks: asks, hears: []string{"c2.event." + string(tenant) + ".>"}}
}

// operatorRights let people ask the leader, look at events and beats, and ping the services.
func operatorRights() rights {
	return rights{
		asks:  []string{"c2.admin.*", "$SRV.>"},
		hears: []string{wire.AllEvents, wire.AllBeats, wire.AllReports},
	}
}

// coordinatorPermissions are the rack's own: all of its subjects, streams and buckets, and answers to everybody.
// Coordinators alone are in the rack's account.
func coordinatorPermissions(name string) jwt.Permissions {
	r := rights{
		asks:  []string{"c2.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>", "$O.>", "_INBOX.>", "_R_.>"},
		hears: []string{"c2.>", "$SRV.>"},
	}
	return r.permissions(KindCoordinator, name)
}
