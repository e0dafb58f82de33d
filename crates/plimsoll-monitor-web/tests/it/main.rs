//! The monitor over real sockets and files.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod acknowledge;

mod admin;

mod agents;

mod api;

mod channels;

mod client;

mod definitions;

mod escalations;

mod failover;

mod faults;

mod gatus;

mod healthchecks;

mod life;

mod manage;

mod notices;

mod oidc;

mod organisations;

mod over_time;

mod pages;

mod readers;

mod secrets;

mod sharing;

mod stores;

mod subscriptions;
