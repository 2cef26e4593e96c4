// Package mcp brings the tools of servers of the Model Context Protocol to an
// agent: servers that are started as a command and spoken to over their
// standard input and output, and servers that are reached over HTTP.
//
// A server is somebody else's program. It may hang, flood, send nonsense, die
// at any time; none of that ends or delays a turn. [Connect] returns at once
// and connects in the background; a tool call waits a bounded time for its
// server and else gives a result that says so. A call that was cut off gives a
// result that says that nobody knows whether it took effect, unless the server
// is trusted to know that the tool only reads: then it is made once again.
//
// # The states of a server
//
// Each server has one goroutine that owns its connection, and that alone
// connects, waits and gives up:
//
//	            connected                       died, broke, or stale and idle
//	connecting ──────────▶ ready ───────────────────────────────┐
//	    ▲ │                                                     │
//	    │ │ failed                                              │
//	    │ └──────────────▶ waiting ◀────────────────────────────┘
//	    │                   │   │ too often in a row
//	    └───────────────────┘   ▼
//	    ▲  after the backoff   down, or failed at once where trying again
//	    └────────────────────── cannot help (no such command, refused key)
//	       a call of its tool, for down only
//
// The backoff is half a second after the first failure, doubled for each
// further one in a row, at most a minute. A connection that held for half a
// minute ends the row. After ten failures the server is down: it is tried again
// only when one of its tools is called. Its tools stay listed all the while, so
// that the list that a model is shown does not flicker.
//
// "Stale" is an HTTP connection whose stream of notifications has ended: its
// calls still work, and it is replaced when none is under way.
package mcp
