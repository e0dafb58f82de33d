//! Where a virtual user has sent requests last.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::address::{Address, AddressError};
use super::request::Target;

/// So many are kept: scripts ask for the same few URLs in each iteration, and each costs some hundred bytes for each virtual user.
const MOST: usize = 8;

/// URLs as the script wrote them with what was made of them, the last one first.
#[derive(Debug, Default)]
pub(crate) struct KnownTargets(RefCell<VecDeque<Known>>);

#[derive(Debug)]
struct Known {
    written: String,
    address: Rc<Address>,
    /// Once a request was sent there.
    target: Option<Rc<Target>>,
}

impl KnownTargets {
    /// The URL that a text stands for.
    pub(crate) fn address(&self, written: &str) -> Result<Rc<Address>, AddressError> {
        let mut known = self.0.borrow_mut();
        if let Some(found) = known.iter().find(|known| known.written == written) {
            return Ok(Rc::clone(&found.address));
        }
        let address = Rc::new(Address::parse(written)?);
        known.truncate(MOST - 1);
        known.push_front(Known {
            written: written.to_owned(),
            address: Rc::clone(&address),
            target: None,
        });
        Ok(address)
    }

    /// Where a request for this URL is sent.
    pub(crate) fn target(&self, address: &Rc<Address>) -> Result<Rc<Target>, (u16, String)> {
        let mut known = self.0.borrow_mut();
        let mut found = known
            .iter_mut()
            .find(|known| Rc::ptr_eq(&known.address, address));
        if let Some(target) = found.as_ref().and_then(|known| known.target.as_ref()) {
            return Ok(Rc::clone(target));
        }
        let target = Rc::new(Target::new(Rc::clone(address))?);
        if let Some(known) = &mut found {
            known.target = Some(Rc::clone(&target));
        }
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let known = KnownTargets::default();
        let first = known.address("http://a.test/0").unwrap();
        let target = known.target(&first).unwrap();
        assert!(Rc::ptr_eq(
            &known.address("http://a.test/0").unwrap(),
            &first
        ));
        assert!(Rc::ptr_eq(&known.target(&first).unwrap(), &target));
        for number in 1..=MOST {
            known.address(&format!("http://a.test/{number}")).unwrap();
        }
        assert_eq!(known.0.borrow().len(), MOST);
        let again = known.address("http://a.test/0").unwrap();
        assert!(!Rc::ptr_eq(&again, &first));
        assert_eq!(again, first);
        // One that is not kept any more has a target all the same.
        assert_eq!(known.target(&first).unwrap().url, target.url);
    }

    #[test]
    fn what_is_no_url_is_not_kept() {
        let known = KnownTargets::default();
        assert!(known.address("http://a.test/%zz").is_err());
        assert!(known.0.borrow().is_empty());
        let elsewhere = known.address("ftp://a.test/").unwrap();
        assert!(known.target(&elsewhere).is_err());
    }
}
