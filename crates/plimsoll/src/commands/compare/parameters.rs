//! Operands made of one by putting values in place of `{NAME}`, as hyperfine does.

use clap::ValueEnum as _;

use super::Driver;

/// More operands than this cannot be read in one table.
const MOST_VALUES: usize = 100;

/// A name, and the values that it takes one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    name: String,
    values: Vec<String>,
}

impl Parameter {
    /// From `NAME MIN MAX`, in steps of `step`.
    pub(super) fn scan(words: &[String], step: Option<&str>) -> Result<Self, String> {
        let [name, from, to] = words else {
            return Err("takes a name, the first and the last value".to_owned());
        };
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
                .ok_or_else(|| format!("`{text}` is not a number"))
        };
        let (first, last) = (number(from)?, number(to)?);
        let size = step.map_or(Ok(1.0), number)?;
        if size <= 0.0 {
            return Err("the step must be more than zero".to_owned());
        }
        if last < first {
            return Err(format!("{last} is below {first}"));
        }
        // Half a step more, against what rounding leaves out.
        let count = ((last - first) / size + 1e-9).floor() + 1.0;
        if count > MOST_VALUES as f64 {
            return Err(format!(
                "has {count} values, but at most {MOST_VALUES} can be compared"
            ));
        }
        let decimals = [Some(from.as_str()), Some(to.as_str()), step]
            .into_iter()
            .flatten()
            .map(decimals)
            .max()
            .unwrap_or(0);
        let values = (0_u32..)
            .map(|number| first + f64::from(number) * size)
            .take_while(|value| *value <= last + size * 1e-9)
            .map(|value| format!("{value:.decimals$}"));
        Self::new(name, values.collect())
    }

    /// From `NAME` and `VALUE,VALUE`.
    pub(super) fn list(words: &[String]) -> Result<Self, String> {
        let [name, list] = words else {
            return Err("takes a name and values with commas between them".to_owned());
        };
        Self::new(
            name,
            list.split(',')
                .map(|value| value.trim().to_owned())
                .collect(),
        )
    }

    /// `{NAME}`.
    fn place(&self) -> String {
        format!("{{{}}}", self.name)
    }

    fn new(name: &str, values: Vec<String>) -> Result<Self, String> {
        const TAKEN: [&str; 5] = ["seconds", "connections", "rate", "url", "port"];
        if TAKEN.contains(&name) {
            return Err(format!(
                "{{{name}}} has a meaning of its own; choose another name"
            ));
        }
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_name {
            return Err(format!(
                "`{name}` is not a name of letters, digits, `-` and `_`"
            ));
        }
        if values.len() > MOST_VALUES {
            return Err(format!(
                "has {} values, but at most {MOST_VALUES} can be compared",
                values.len()
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            values,
        })
    }
}

/// An operand of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// Where it stands on the command line.
    pub(super) position: usize,
    /// Command or URL.
    pub(super) text: String,
    /// Its name, if it has one.
    pub(super) name: Option<String>,
    /// `threads=4`.
    pub(super) values: String,
}

/// The operands with their names, each once for every combination of values.
///
/// - `names`: none, or one for each of `operands`.
pub(super) fn expanded(
    operands: &[String],
    names: &[String],
    parameters: &[Parameter],
) -> Result<Vec<Named>, String> {
    if !names.is_empty() && names.len() != operands.len() {
        return Err(format!(
            "--name: there are {} names for {} operands",
            names.len(),
            operands.len()
        ));
    }
    let mut all = Vec::new();
    for (position, text) in operands.iter().enumerate() {
        let mut of_one = vec![Named {
            position,
            text: text.clone(),
            name: names.get(position).cloned(),
            values: String::new(),
        }];
        for parameter in parameters {
            let place = parameter.place();
            if !text.contains(&place) {
                continue;
            }
            of_one = of_one
                .iter()
                .flat_map(|named| {
                    parameter.values.iter().map(|value| Named {
                        position,
                        text: named.text.replace(&place, value),
                        name: named.name.clone(),
                        values: join(&named.values, &format!("{}={value}", parameter.name)),
                    })
                })
                .collect();
        }
        all.extend(of_one);
    }
    for parameter in parameters {
        let place = parameter.place();
        if !operands.iter().any(|text| text.contains(&place)) {
            return Err(format!("no operand has the place {place}"));
        }
    }
    if all.len() > MOST_VALUES {
        return Err(format!(
            "the values make {} operands, but at most {MOST_VALUES} can be compared",
            all.len()
        ));
    }
    Ok(all)
}

impl Named {
    /// The operand's name in tables.
    ///
    /// - `label`: what it is called if no name was given.
    /// - `tools`: all that load it, if it is a URL.
    pub(super) fn label(&self, label: &str, tools: &[Driver]) -> String {
        let base = match &self.name {
            Some(name) if tools.len() > 1 && is_tool(label) => join(name, label),
            Some(name) => name.clone(),
            None => label.to_owned(),
        };
        join(&base, &self.values)
    }
}

fn is_tool(label: &str) -> bool {
    Driver::value_variants()
        .iter()
        .any(|driver| driver.label() == label)
}

fn join(one: &str, other: &str) -> String {
    match (one, other) {
        ("", text) | (text, "") => text.to_owned(),
        _ => format!("{one} {other}"),
    }
}

/// Digits behind the point.
fn decimals(number: &str) -> usize {
    number
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len().min(9))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_scan_has_its_ends_and_no_noise() {
        let values = |text, step| Parameter::scan(&words(text), step).map(|scan| scan.values);
        assert_eq!(values("n 1 4", None).unwrap(), ["1", "2", "3", "4"]);
        assert_eq!(
            values("n 0.1 0.5", Some("0.2")).unwrap(),
            ["0.1", "0.3", "0.5"]
        );
        assert_eq!(values("n 2 2", None).unwrap(), ["2"]);
        for (text, step) in [
            ("n 4 1", None),
            ("n 1 x", None),
            ("n 1 2", Some("0")),
            ("n 1 1000000", None),
            ("url 1 2", None),
            ("n! 1 2", None),
            ("n 1 inf", None),
        ] {
            assert!(values(text, step).is_err(), "{text}");
        }
    }

    #[test]
    fn every_combination_is_an_operand_with_its_own_label() {
        let operands = ["./a -t {t} -m {mode}".to_owned(), "./b".to_owned()];
        let parameters = [
            Parameter::scan(&words("t 1 2"), None).unwrap(),
            Parameter::list(&words("mode x,y")).unwrap(),
        ];
        let all = expanded(
            &operands,
            &["new".to_owned(), "old".to_owned()],
            &parameters,
        )
        .unwrap();
        let texts: Vec<&str> = all.iter().map(|named| named.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "./a -t 1 -m x",
                "./a -t 1 -m y",
                "./a -t 2 -m x",
                "./a -t 2 -m y",
                "./b"
            ]
        );
        let labels: Vec<String> = all.iter().map(|named| named.label("a", &[])).collect();
        assert_eq!(labels[3], "new t=2 mode=y");
        assert_eq!(labels[4], "old");
        assert!(expanded(&operands, &["one".to_owned()], &[]).is_err());
        let unused = [Parameter::list(&words("z 1,2")).unwrap()];
        assert!(expanded(&operands, &[], &unused).is_err());
    }
}
