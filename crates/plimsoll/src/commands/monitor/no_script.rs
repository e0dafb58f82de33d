//! Without k6 scripts there is no kind `script` of monitors.

use plimsoll_monitor::probe::SuppliedKinds;

pub(super) const SUPPLIED: SuppliedKinds = &[];
