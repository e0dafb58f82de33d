//! `plimsoll mcp`, by JSON-RPC over its standard input and output.

mod bounds;

mod client;

mod hostile;

mod runs;

mod tools;
