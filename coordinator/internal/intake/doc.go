// Package intake turns a submit request into an accepted job, or into a refusal that says which field is wrong (design
// 2.1). Every coordinator does it, not only the leader.
//
//	request ─► limits ─► source (inline, object, path, URL) ─► kind.Open: parse and check everything
//	        ─► slices and public inputs into the object store ─► record and key entry, create-if-absent ─► job id
//
// Nothing is stored before the whole input was checked; what was stored for a request that is refused after all, or
// that turns out to exist already, is removed again, and the sweep of package store finds what a crash left behind.
//
// Paths and URLs are off unless the operator allows prefixes or hosts. A path is resolved before it is compared and
// must be a regular file; a URL is fetched without redirects and only from addresses that are public or listed.
//
// Tenants do not wait for each other. Each has requests, bytes in flight, jobs and room for slices of its own; turns to
// compute go round the tenants, and a request has none while it waits for bytes of its source.
//
// It does not plan, schedule or write records again: that is the leader's.
package intake
