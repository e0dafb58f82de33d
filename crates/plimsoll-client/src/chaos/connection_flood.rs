//! Connection flood: connections without a request.

use std::time::Duration;

use super::door::Speaks;
use super::ground::Ground;

/// Interval at which a flooding client checks whether the attack is over.
const STEP: Duration = Duration::from_secs(1);

pub(super) async fn attack(ground: &Ground<'_>) {
    let Some(mut stream) = ground.open(Speaks::Http1, None).await else {
        return;
    };
    ground.tally.sent(1);
    let mut buffer = [0; 1024];
    while ground.goes_on() {
        if ground.read(&mut stream, &mut buffer, STEP).await == Some(0) {
            return ground.tally.ended();
        }
    }
}
