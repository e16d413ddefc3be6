// Command nats is a NATS server with JetStream that stores before it answers, as the shipped server settings say. Tests
// kill it and start it again on the same store.
package main
