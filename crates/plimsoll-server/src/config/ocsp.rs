//! `ocsp` of a `tls`: what its authority says of a certificate's revocation, shown in handshakes.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use plimsoll_wire::tls::MOST_OCSP_BYTES;

use crate::config::document::Table;
use crate::config::paths::{OutsideSandbox, PathUse};
use crate::config::{Context, OcspPlan};

/// The file that is shown, noted to be watched and, with `true`, to be fetched.
///
/// - `chain`: the certificate's file.
pub(super) fn compile(
    table: &mut Table<'_>,
    chain: Option<&Path>,
    context: &Context<'_>,
) -> Option<PathBuf> {
    let value = table.take_value("ocsp")?;
    if value.is_false() {
        return None;
    }
    if value.is_true() {
        let chain = chain?;
        let mut name = chain.as_os_str().to_owned();
        name.push(".ocsp");
        let plan = OcspPlan {
            chain: chain.to_owned(),
            file: PathBuf::from(name),
        };
        let file = plan.file.clone();
        if let Err(outside) = context.paths.note(&file, PathUse::WriteFile) {
            return value.wrong_with(outside, Some(OutsideSandbox::HINT.to_owned()));
        }
        context.certificates.borrow_mut().push(file.clone());
        let mut plans = context.ocsp.borrow_mut();
        if !plans.contains(&plan) {
            plans.push(plan);
        }
        return Some(file);
    }
    let file = context.certificate(&value)?;
    let mut bytes = Vec::new();
    let read =
        File::open(&file).and_then(|file| file.take(MOST_OCSP_BYTES + 1).read_to_end(&mut bytes));
    // Whether it fits and holds changes while it is served, so that is no mistake of the file.
    if let Err(error) = read {
        return value.wrong(format!("cannot read `{}`: {error}", file.display()));
    }
    if bytes.len() as u64 > MOST_OCSP_BYTES || bytes.first() != Some(&0x30) {
        return value.wrong(format!(
            "`{}` is no response of OCSP in DER",
            file.display()
        ));
    }
    Some(file)
}
