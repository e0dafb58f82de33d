//! Over a broker: Debian's nats-server, started by each test.

mod nats;
