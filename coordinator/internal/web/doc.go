// Package web is the page that a coordinator shows its operators: the rack at a glance, each job with the time line of
// its partitions, why something waits, dead letters, assets and audit records.
//
// It owns no truth. It asks the rack over the bus, as an operator's tool does, so every instance shows the same,
// whether it leads or not; an answer is used for Config.Poll by everybody who looks. What changes is pushed as
// server-sent events.
//
//	GET  /                              the page; it and its parts are embedded, nothing comes from another host
//	GET  /api/rack                      nodes, jobs, dead letters, buffers: one document
//	GET  /api/jobs?before=ID&state=S    older jobs
//	GET  /api/jobs/TENANT/ID            a job: record, liveness, why it waits, what it holds
//	GET  /api/jobs/TENANT/ID/proof      its proof; ?format=hex or base64 for text
//	GET  /api/letters | assets | audit  lists
//	GET  /events/rack, /events/jobs/TENANT/ID   the same documents whenever they change
//	POST /api/jobs/TENANT/ID/cancel     with the token only, as all that changes something
//	POST /api/letters/ID/replay
//
// Without a token it is read-only, and whoever reaches the address may read all of it: loopback is the default. What
// comes from outside (keys, names, reasons) reaches the page as text, never as markup, and the page may run no script
// but its own. Limits: StreamsMax streams at a time, answers of one second's age, 200 jobs in the overview.
package web
