//! HTTP rules that several crates apply, kept in one place so that they cannot differ.

pub(crate) mod decimal;

mod field_list;

mod loopback;

mod name_filter;

mod nominated;

mod path;

mod trailers;

pub use plimsoll_model::{FieldClass, is_proxy_field, may_be_trailer};

pub use crate::http::decimal::Decimal;
pub use crate::http::field_list::{FieldList, Iter as FieldListIter};
pub use crate::http::loopback::names_loopback;
pub use crate::http::name_filter::NameFilter;
pub use crate::http::nominated::Nominated;
pub use crate::http::path::{NormalPath, PathRefusal, below, fold_case};
pub use crate::http::trailers::{announced_trailers, retain_trailers};
