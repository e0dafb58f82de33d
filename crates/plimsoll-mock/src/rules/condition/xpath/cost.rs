//! Which expressions cost the product of two texts or node sets, rather than their sum.

use xpath_eval::{Expr, FilterExpr, LocationPath, PathExpr, PrimaryExpr};

/// Whether an expression compares node sets with each other, or translates by a text of the document.
pub(super) fn is_product(expression: &Expr) -> bool {
    match expression {
        Expr::Equality(one, _, other) | Expr::Relational(one, _, other) => {
            is_product_of(one, other)
        }
        Expr::Or(one, other)
        | Expr::And(one, other)
        | Expr::Additive(one, _, other)
        | Expr::Multiplicative(one, _, other)
        | Expr::Union(one, other) => is_product(one) || is_product(other),
        Expr::Negate(inner) => is_product(inner),
        Expr::Path(PathExpr::Location(path)) => in_path(path),
        Expr::Path(PathExpr::Filter(filter)) => in_filter(filter),
        Expr::Path(PathExpr::FilterLocation(filter, path)) => in_filter(filter) || in_path(path),
    }
}

fn is_product_of(one: &Expr, other: &Expr) -> bool {
    (may_be_nodes(one) && may_be_nodes(other)) || is_product(one) || is_product(other)
}

fn may_be_nodes(expression: &Expr) -> bool {
    match expression {
        Expr::Path(PathExpr::Location(_) | PathExpr::FilterLocation(..)) | Expr::Union(..) => true,
        Expr::Path(PathExpr::Filter(filter)) => match &filter.primary {
            PrimaryExpr::Parenthesized(inner) => may_be_nodes(inner),
            PrimaryExpr::Function(call) => call.name.local == "id",
            PrimaryExpr::Literal(_) | PrimaryExpr::Number(_) => false,
            PrimaryExpr::Variable(_) => true,
        },
        _ => false,
    }
}

fn in_path(path: &LocationPath) -> bool {
    let mut predicates = path.steps.iter().flat_map(|step| &step.predicates);
    predicates.any(is_product)
}

fn in_filter(filter: &FilterExpr) -> bool {
    let in_primary = match &filter.primary {
        PrimaryExpr::Parenthesized(inner) => is_product(inner),
        PrimaryExpr::Function(call) => {
            let is_by_text =
                call.name.local == "translate" && !call.args.iter().skip(1).all(is_literal);
            is_by_text || call.args.iter().any(is_product)
        }
        _ => false,
    };
    in_primary || filter.predicates.iter().any(is_product)
}

fn is_literal(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Path(PathExpr::Filter(FilterExpr {
            primary: PrimaryExpr::Literal(_),
            ..
        }))
    )
}
