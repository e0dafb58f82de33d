//! Experiments: interleaved comparisons with their statistics.
