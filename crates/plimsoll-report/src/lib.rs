//! Encoders for what was measured: text, JSON, CSV, HdrHistogram log.
