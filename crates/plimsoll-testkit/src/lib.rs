//! Test origins with faults, certificates and waiting helpers for plimsoll's tests.
