// Package otlp receives spans by OpenTelemetry's protocol and counts them as calls, in the seconds in which they were.
//
// The way of a span: a request comes by HTTP or gRPC (handler), its body is read within bounds (body) and decoded as protobuf or JSON,
// of which only the fields that count are read (protobuf, json, attributes). A [receiver] passes over spans that it has seen (seen), names
// the others (names), weighs those that are sampled (sampling), and puts them into a timeline. A second is played, and so counted by a
// Collector, when the tolerance and a second are over after it. [Run] is the command: it serves what is counted.
//
// Of the protocol that much is written here which the receiver needs: whole messages by OpenTelemetry's own packages take several times as long to
// decode, and bring gRPC's library with them. Fields, statuses and what senders repeat are those of OTLP 1.11; attributes are those of the
// semantic conventions 1.43, and of those before they were stable.
package otlp
