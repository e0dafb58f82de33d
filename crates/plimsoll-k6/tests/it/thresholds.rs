//! Thresholds end runs.

use crate::fixture::run_script;

#[test]
fn a_threshold_that_aborts_ends_the_run_early() {
    let ran = run_script(
        "import { sleep, check } from 'k6';
         export const options = { duration: '1h', vus: 1, thresholds: { checks: [{ threshold: 'rate>0.9', abortOnFail: true }] } };
         export default () => { check(1, { no: () => false }); sleep(0.05) }",
        "",
    );
    assert_eq!(ran.code, 99, "{ran:#?}");
    assert!(
        ran.stdout.contains("✗ 'rate>0.9' rate=0.00%"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        ran.export["metrics"]["checks"]["thresholds"]["rate>0.9"],
        true
    );
}

#[test]
fn thresholds_that_are_met_or_never_measured_pass() {
    let ran = run_script(
        "import { Trend } from 'k6/metrics';
         const never = new Trend('never');
         export const options = { iterations: 3, thresholds: { iterations: ['count==3'], never: ['p(95)<1'], 'http_reqs{status:500}': ['count<1'] } };
         export default () => {}",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(
        ran.stdout.contains("✓ 'count==3' count=3"),
        "{}",
        ran.stdout
    );
    // At the end nothing is 0, but of a rate.
    for (kind, threshold, code) in [
        ("Counter", "rate>1", 99),
        ("Trend", "avg>1", 99),
        ("Rate", "rate>0.5", 0),
    ] {
        let text = "import { KIND } from 'k6/metrics'; const never = new KIND('never');
             export const options = { thresholds: { never: ['THRESHOLD'] } }; export default () => {}";
        let text = text.replace("KIND", kind).replace("THRESHOLD", threshold);
        let ran = run_script(&text, "");
        assert_eq!(ran.code, code, "{ran:#?}");
    }
}

#[test]
fn percentiles_that_the_summary_does_not_have_are_shown_with_their_thresholds() {
    let ran = run_script(
        "import { Trend } from 'k6/metrics'; const mine = new Trend('mine');
         export const options = { iterations: 4, thresholds: { mine: ['p(99) < 10', 'avg<10'], 'mine{kind:a}': ['p(50)<10'], 'iterations{scenario:default}': ['count==4'] } };
         export default () => { mine.add(__ITER, { kind: 'a' }) }",
        "",
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let expected = "
    iterations{scenario:default}
    ✓ 'count==4' count=4

    mine
    ✓ 'p(99) < 10' p(99)=2.97
    ✓ 'avg<10' avg=1.5

      {kind:a}
      ✓ 'p(50)<10' p(50)=1.5

";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    assert!(ran.export["metrics"]["mine"]["p(99)"].is_null());
}
