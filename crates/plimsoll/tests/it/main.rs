//! The program as a user meets it: what it prints, which files it leaves, how it exits.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[cfg(feature = "monitor")]
mod accessible;
mod plimsoll;

mod served;

mod docs;

#[cfg(target_os = "linux")]
mod tutorials;

#[cfg(unix)]
mod action;

mod redirects;

mod nginx;

mod nginx_import;

mod kubernetes_import;

mod traefik_import;

mod caddy_import;

mod authorizing;

#[cfg(target_os = "linux")]
mod side_by_side;

mod mistakes;

mod mock;

mod mock_grpc;

mod mock_page;

mod gateway;

mod gateway_page;

mod cache_killed;

mod gateway_changes;

mod browser;
mod mock_record;

mod mock_websocket;

#[cfg(feature = "monitor")]
mod monitor;

#[cfg(feature = "monitor")]
mod monitor_admin;

mod monitor_keyboard;

mod lab;

#[cfg(target_os = "linux")]
mod matrix;

#[cfg(target_os = "linux")]
mod plans;

#[cfg(feature = "k6")]
mod k6;
#[cfg(feature = "k6")]
mod k6_grpc;

#[cfg(feature = "k6")]
mod k6_commands;

#[cfg(feature = "k6")]
mod dashboard;

#[cfg(feature = "fleet")]
mod fleet;

#[cfg(feature = "fleet")]
mod fleet_broker;

#[cfg(feature = "fleet")]
mod fleet_faults;

#[cfg(feature = "fleet")]
mod fleet_kinds;

#[cfg(feature = "fleet")]
mod fleet_process;

#[cfg(all(feature = "fleet", feature = "k6"))]
mod fleet_script_ends;

#[cfg(all(feature = "fleet", feature = "k6"))]
mod fleet_scripts;

mod live;

#[cfg(all(feature = "site", target_os = "linux"))]
mod observe;

#[cfg(all(feature = "site", target_os = "linux"))]
mod instrument_pages;

mod load;

mod numbers;
#[cfg(target_os = "linux")]
mod profile;

mod profile_store;

mod takeover;

#[cfg(target_os = "linux")]
mod confinement;

mod up;

mod acme;

mod ocsp;

mod pebble;

mod sessions;

mod sequences;

mod replay;

#[cfg(target_os = "linux")]
mod shortage;

mod site;

mod guarded;

mod sources;

mod by_request;

mod chaos;
mod check;

mod cost;

mod http2;

mod loadtest;

mod masking;

#[cfg(all(
    feature = "mcp",
    feature = "k6",
    feature = "monitor",
    target_os = "linux"
))]
mod mcp;

mod http3;

mod generated;

mod grpc;

mod tonic_server;

mod view;

mod push;

mod websocket;

mod events;
