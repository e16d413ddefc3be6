// Package mailbox holds plain messages between a connection and one slow handler. It is bounded by count and bytes;
// what comes while it is full is dropped and counted, so that nothing upstream waits (field report B68). It owns no
// truth: messages in it are lost with the process.
package mailbox
