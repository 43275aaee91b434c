// Package node serves what only the agent on a node knows.
package node
