//! The measuring client: resolve, connect, exchange with phase timings, judge.
