// Package wire is what programs of the rack say to each other: subjects, message bodies and the names of stored things
// (design section 2). Bodies are JSON; each carries "v", the version of the wire it was written for.
//
// This build writes [Version] and reads [VersionMin] … [Version]: neighbours work together, so a rack is restarted node
// by node (coordinators first, then GPU workers, then synthesis workers). A reader ignores fields that it does not know
// and refuses versions outside its range. Every body is bounded by [BodyBytesMax] and checked before it is used; what
// fails is fault.Invalid.
//
// Subjects carry the node or the tenant, and permissions of credentials pin them; a reader compares the body with the
// subject, so that nobody can speak for somebody else.
package wire
