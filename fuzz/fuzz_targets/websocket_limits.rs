//! The frames of WebSockets that the gateway follows: limited alike whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_fuzz::cut;
use plimsoll_gateway::contract;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

fuzz_target!(|data: &[u8]| {
    let Some(([message, pings], data)) = data.split_first_chunk() else {
        return;
    };
    let (pieces, _) = cut(data);
    let now = SystemClock.now();
    contract::websocket_frames(&pieces, u64::from(*message) << 4, u32::from(*pings), now);
});
