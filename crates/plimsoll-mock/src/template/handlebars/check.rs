//! Whether everything that a template names is known, and paths as the model of a request has them.
//!
//! WireMock's `request.query.x` is the first value where a text is wanted, and a list where one is: paths to the former
//! get an index.

use handlebars::template::{HelperTemplate, Parameter, Template, TemplateElement, TemplateMapping};
use handlebars::{Path, PathSeg};

use super::{ProgramError, helpers, output, with_json_texts};
use crate::template::Dialect;

/// Checks a template, and changes its paths; fails with what is not known.
pub(super) fn check(template: &mut Template, dialect: Dialect) -> Result<(), ProgramError> {
    Checker::new(dialect).template(template, false)
}

/// A template without the expressions that are a name alone which is not known, and these names. Handlebars writes nothing
/// in their place.
pub(crate) fn without_unknown_names(text: &str, dialect: Dialect) -> (String, Vec<String>) {
    let read = with_json_texts(text);
    let Ok(mut template) = Template::compile(&read) else {
        return (text.to_owned(), Vec::new());
    };
    let mut checker = Checker::new(dialect);
    checker.unknown = Some(Vec::new());
    // Other problems are those of the template that is made.
    checker.template(&mut template, false).ok();
    let mut without = String::with_capacity(text.len());
    let mut names = Vec::new();
    let mut rest = 0;
    for (place, name) in checker.unknown.into_iter().flatten() {
        // Texts in quotes have other lengths here than where the place was found, but every expression is in both.
        let number = opened_before(&read, &place);
        let Some((begin, _)) = text.match_indices("{{").nth(number) else {
            continue;
        };
        let inside = text.get(begin..).unwrap_or_default();
        let closing = if inside.starts_with("{{{") {
            "}}}"
        } else {
            "}}"
        };
        let Some(length) = inside.find(closing) else {
            continue;
        };
        without.push_str(text.get(rest..begin).unwrap_or_default());
        rest = begin + length + closing.len();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    without.push_str(text.get(rest..).unwrap_or_default());
    (without, names)
}

/// How many expressions begin before a place.
fn opened_before(text: &str, place: &TemplateMapping) -> usize {
    let (line, column) = (place.0, place.1);
    let mut lines = text.split('\n');
    let before = lines.by_ref().take(line.saturating_sub(1));
    let before: usize = before.map(|line| line.matches("{{").count()).sum();
    let beginning = lines.next().unwrap_or_default().chars();
    let beginning: String = beginning.take(column.saturating_sub(1)).collect();
    before + beginning.matches("{{").count()
}

struct Checker {
    dialect: Dialect,
    /// Names that the template gives values itself.
    assigned: Vec<String>,
    /// Names alone that are not known, with their places, if they are gathered instead of refused.
    unknown: Option<Vec<(TemplateMapping, String)>>,
    /// The place of the expression that is checked, unless it is within another one.
    place: Option<TemplateMapping>,
}

impl Checker {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            assigned: Vec::new(),
            unknown: None,
            place: None,
        }
    }

    /// - `is_inner`: whether names may be those of values that are gone through.
    fn template(&mut self, template: &mut Template, is_inner: bool) -> Result<(), ProgramError> {
        for (at, element) in template.elements.iter_mut().enumerate() {
            self.place = template.mapping.get(at).cloned();
            match element {
                TemplateElement::RawString(_) | TemplateElement::Comment(_) => {}
                TemplateElement::Expression(helper)
                | TemplateElement::HtmlExpression(helper)
                | TemplateElement::HelperBlock(helper) => self.helper(helper, is_inner)?,
                _ => return Err(ProgramError::Partials),
            }
        }
        Ok(())
    }

    fn helper(&mut self, helper: &mut HelperTemplate, is_inner: bool) -> Result<(), ProgramError> {
        let place = self.place.take();
        let is_plain = !helper.block && helper.params.is_empty() && helper.hash.is_empty();
        let name = match &helper.name {
            Parameter::Name(name) => Some(name.clone()),
            Parameter::Path(Path::Relative((segments, raw))) => {
                let is_single = matches!(segments.as_slice(), [PathSeg::Named(_)]);
                is_single.then(|| raw.clone())
            }
            _ => None,
        };
        let known = name
            .as_deref()
            .is_some_and(|it| helpers::is_known(it, self.dialect));
        if !known {
            if is_plain {
                let known = self.parameter(&mut helper.name, is_inner, false);
                return match (known, &mut self.unknown, place) {
                    (Err(_), Some(unknown), Some(place)) => {
                        unknown.push((place, path_of(&helper.name)));
                        Ok(())
                    }
                    (known, ..) => known,
                };
            }
            let name = name.unwrap_or_else(|| "it".to_owned());
            return Err(ProgramError::UnknownHelper(name));
        }
        let name = name.unwrap_or_default();
        match name.as_str() {
            "faker" => super::faker::check(helper)?,
            "jwt" => super::jwt::check(helper)?,
            _ => {}
        }
        self.assign(&name, helper);
        let takes_lists = helpers::takes_lists(&name);
        for parameter in &mut helper.params {
            self.parameter(parameter, is_inner, takes_lists)?;
        }
        for parameter in helper.hash.values_mut() {
            self.parameter(parameter, is_inner, false)?;
        }
        let opens = matches!(name.as_str(), "each" | "with" | "repeat");
        if let Some(template) = &mut helper.template {
            self.template(template, is_inner || opens)?;
            output::end_turn(template);
        }
        if let Some(template) = &mut helper.inverse {
            self.template(template, is_inner)?;
        }
        Ok(())
    }

    /// Notes the name that a helper gives a value.
    fn assign(&mut self, name: &str, helper: &HelperTemplate) {
        let given = match name {
            "assign" | "setVar" => helper.params.first(),
            "val" => helper.hash.get("assign"),
            name => helpers::name_at(name, self.dialect)
                .and_then(|at| at.checked_sub(usize::from(helper.block)))
                .and_then(|at| helper.params.get(at)),
        };
        if let Some(Parameter::Literal(serde_json::Value::String(name))) = given {
            self.assigned.push(name.clone());
        }
    }

    fn parameter(
        &mut self,
        parameter: &mut Parameter,
        is_inner: bool,
        takes_lists: bool,
    ) -> Result<(), ProgramError> {
        match parameter {
            Parameter::Subexpression(inner) => match inner.element.as_mut() {
                TemplateElement::Expression(helper) => self.helper(helper, is_inner),
                _ => Ok(()),
            },
            Parameter::Path(Path::Relative((segments, raw))) => {
                if let [PathSeg::Named(first), ..] = segments.as_slice() {
                    let is_root = match self.dialect {
                        Dialect::WireMock => matches!(first.as_str(), "request" | "parameters"),
                        Dialect::Mockoon => false,
                    };
                    if !is_root && !is_inner && !self.assigned.contains(first) {
                        return Err(ProgramError::UnknownName(raw.clone()));
                    }
                    if is_root && first == "request" {
                        of_request(segments, takes_lists)
                            .map_err(|()| ProgramError::UnknownName(raw.clone()))?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// A path as it is written.
fn path_of(name: &Parameter) -> String {
    match name {
        Parameter::Name(name) => name.clone(),
        Parameter::Path(Path::Relative((_, raw))) => raw.clone(),
        _ => String::new(),
    }
}

/// Makes a path below `request` lead to what the model has there.
fn of_request(segments: &mut Vec<PathSeg>, takes_lists: bool) -> Result<(), ()> {
    let named = |at: usize, segments: &[PathSeg]| match segments.get(at) {
        Some(PathSeg::Named(name)) => Some(name.clone()),
        _ => None,
    };
    // As WireMock 2 has it: the same without `requestLine`.
    if named(1, segments).as_deref() == Some("requestLine") {
        segments.remove(1);
    }
    let kind = named(1, segments).ok_or(())?;
    let known = [
        "id",
        "url",
        "path",
        "pathSegments",
        "query",
        "method",
        "host",
        "port",
        "scheme",
        "baseUrl",
        "headers",
        "cookies",
        "body",
        "bodyAsBase64",
        "clientIp",
        "formData",
        "multipart",
        "parts",
    ];
    if !known.contains(&kind.as_str()) {
        return Err(());
    }
    let set = |segments: &mut Vec<PathSeg>, at: usize, name: &str| {
        if let Some(segment) = segments.get_mut(at) {
            *segment = PathSeg::Named(name.to_owned());
        }
    };
    match (kind.as_str(), segments.len()) {
        ("parts", 5..) if named(3, segments).as_deref() == Some("headers") => {
            let name = named(4, segments).unwrap_or_default().to_ascii_lowercase();
            set(segments, 4, &name);
        }
        ("path", 2) => set(segments, 1, "pathText"),
        ("query" | "headers" | "cookies" | "formData", length) if length >= 3 => {
            if kind == "headers" {
                let name = named(2, segments).unwrap_or_default().to_ascii_lowercase();
                set(segments, 2, &name);
            }
            match named(3, segments).as_deref() {
                None if !takes_lists => segments.push(PathSeg::Named("0".to_owned())),
                Some("first") => set(segments, 3, "0"),
                Some("last") => {
                    set(segments, 1, &format!("{kind}Last"));
                    segments.truncate(3);
                }
                _ => {}
            }
        }
        _ => {}
    }
    Ok(())
}
