// Package externalscaler is the gRPC client and server of the protocol of KEDA's external scalers. It is
// generated from externalscaler.proto, which is a copy of KEDA's.
package externalscaler

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative externalscaler.proto
