package keyring

import (
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

// InboxPrefix is where answers to a user arrive; nobody else may listen there. It goes into nats.inbox_prefix.
func InboxPrefix(kind Kind, name string) string { return "_INBOX." + string(kind) + "." + name }

// inbox is all below the prefix of a user.
func inbox(kind Kind, name string) string { return InboxPrefix(kind, name) + ".>" }

// consumer is what fetching from one durable consumer takes. Both its name and its filter are pinned.
func consumer(stream, name, filter string) []string {
	return []string{
		"$JS.API.CONSUMER.CREATE." + stream + "." + name + "." + filter,
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

// nodePermissions pin a node's workers to the node and its devices.
func nodePermissions(node job.Node, devices []job.Device) jwt.Permissions {
	n := string(node)
	publish := []string{
		wire.ResultSubject(node), wire.BeatSubject(node), wire.ReportSubject(node), wire.DLQSubject(rawLetters),
		// The fence stands in the job's record.
		"$JS.API.STREAM.INFO.KV_" + wire.BucketJobs, "$JS.API.STREAM.MSG.GET.KV_" + wire.BucketJobs,
		"$JS.API.DIRECT.GET.KV_" + wire.BucketJobs + ".$KV." + wire.BucketJobs + "." + wire.JobKeyPrefix + "*",
	}
	publish = append(publish, objectRead(wire.ObjectsSlices)...)
	publish = append(publish, consumer(wire.StreamSynth, "synth-"+n, wire.SynthSubject(node))...)
	for _, d := range devices {
		publish = append(publish, wire.ProveSubject(node, d))
		publish = append(publish, consumer(wire.StreamProve, "prove-"+n+"_"+string(d), wire.ProveSubject(node, d))...)
	}
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: publish},
		Sub: jwt.Permission{Allow: []string{wire.ControlSubject(node), inbox(KindNode, n)}},
	}
}

// tenantPermissions pin a client to its tenant.
func tenantPermissions(tenant job.Tenant) jwt.Permissions {
	in, proofs := wire.ObjectsIn(tenant), wire.ObjectsProofs(tenant)
	var publish []string
	for _, verb := range []string{wire.VerbSubmit, wire.VerbStatus, wire.VerbCancel, wire.VerbJobs, wire.VerbWhy} {
		publish = append(publish, wire.ClientSubject(verb, tenant))
	}
	publish = append(publish, objectRead(in)...)
	publish = append(publish, "$O."+in+".C.*", "$O."+in+".M.*", "$JS.API.STREAM.PURGE.OBJ_"+in)
	publish = append(publish, objectRead(proofs)...)
	// `nats object get` reads through a consumer of its own.
	publish = append(publish, "$JS.API.CONSUMER.CREATE.OBJ_"+proofs+".>", "$JS.API.CONSUMER.DELETE.OBJ_"+proofs+".*",
		"$JS.FC.OBJ_"+proofs+".>")
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: publish},
		Sub: jwt.Permission{Allow: []string{"c2.event." + string(tenant) + ".>", inbox(KindTenant, string(tenant))}},
	}
}

// operatorPermissions let people ask the leader, look at events and beats, and ping the services.
func operatorPermissions(name string) jwt.Permissions {
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: []string{"c2.admin.>", "$SRV.>"}},
		Sub: jwt.Permission{Allow: []string{wire.AllEvents, wire.AllBeats, wire.AllReports, inbox(KindOperator, name)}},
	}
}

// coordinatorPermissions are the rack's own: all of its subjects, streams and buckets, and answers to everybody.
func coordinatorPermissions(name string) jwt.Permissions {
	return jwt.Permissions{
		Pub: jwt.Permission{Allow: []string{"c2.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV.>", "$O.>", "_INBOX.>"}},
		Sub: jwt.Permission{Allow: []string{"c2.>", "$SRV.>", inbox(KindCoordinator, name)}},
	}
}
