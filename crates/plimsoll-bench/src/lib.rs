//! Criterion benchmarks of what others embed; all of it is in `benches/`.
//!
//! A crate of its own, so that no other one's tests wait for what benchmarks need. Whole programs are
//! compared by `cargo xtask bench` instead.
