use proptest::prelude::*;

use super::*;

/// The tree with brackets around the content of each element.
fn shown(nodes: &[Node]) -> String {
    fn show(nodes: &[Node], place: usize, made: &mut String) {
        match &nodes[place].content {
            Content::Document => {}
            Content::Doctype(name) => made.extend(["!", name, " "]),
            Content::Comment(text) => made.extend(["#", text, " "]),
            Content::Text(text) => made.extend(["'", text, "' "]),
            Content::Element { name, attributes } => {
                made.push_str(name);
                for (key, value) in attributes {
                    made.extend([" ", key, "=", value]);
                }
                made.push('(');
            }
        }
        for (child, node) in nodes.iter().enumerate().skip(1) {
            if node.parent == place {
                show(nodes, child, made);
            }
        }
        if matches!(nodes[place].content, Content::Element { .. }) {
            made.push(')');
        }
    }
    let mut made = String::new();
    show(nodes, 0, &mut made);
    made
}

fn check(text: &str, expected: &str) {
    assert_eq!(shown(&parse(text)), expected, "{text}");
}

fn check_body(text: &str, expected: &str) {
    check(text, &format!("html(head()body({expected}))"));
}

#[test]
fn pages_have_a_head_and_a_body() {
    check("", "html(head()body())");
    check_body("a", "'a' ");
    check(
        "<!doctype html>\n<html lang=en>\n<head>\n<title>a &amp; <b></title></head>\n<body class='c'>d</body></html>\n",
        "!html html lang=en(head('\n' title('a & <b>' ))'\n' body class=c('d\n' ))",
    );
    check(
        "<title>a</title><p>b",
        "html(head(title('a' ))body(p('b' )))",
    );
    check(
        "<script>a</script><div></div><script>b</script>",
        "html(head(script('a' ))body(div()script('b' )))",
    );
}

#[test]
fn optional_end_tags_are_filled_in() {
    check_body("<p>a<p>b<div>c</div>", "p('a' )p('b' )div('c' )");
    check_body(
        "<ul><li>a<li>b<ul><li>c</ul><li>d</ul>",
        "ul(li('a' )li('b' ul(li('c' )))li('d' ))",
    );
    check_body("<dl><dt>a<dd>b<dt>c</dl>", "dl(dt('a' )dd('b' )dt('c' ))");
    check_body(
        "<select><option>a<option selected>b</select>c",
        "select(option('a' )option selected=('b' ))'c' ",
    );
    check_body(
        "<table><tr><td>a<td>b<tr><td>c</table>d",
        "table(tbody(tr(td('a' )td('b' ))tr(td('c' ))))'d' ",
    );
    check_body(
        "<table><td>a<table><td>b</table>c</table>",
        "table(tbody(tr(td('a' table(tbody(tr(td('b' ))))'c' ))))",
    );
    check_body("a<br>b<img src=c>d</br>", "'a' br()'b' img src=c()'d' br()");
    check_body("<div>a</span>b</div></div>c</p>d", "div('ab' )'c' p()'d' ");
    check_body("<td>a</div>", "'a' ");
    check_body(
        "<svg><path d=a /><g>b</g></svg>c<div/>d",
        "svg(path d=a()g('b' ))'c' div('d' )",
    );
    check_body(
        "<textarea><b></textarea><style>a<b</style><!--c-->",
        "textarea('<b>' )style('a<b' )#c ",
    );
    check_body("<a href=1>b<a href=2>c", "a href=1('b' )a href=2('c' )");
}

#[test]
fn misnested_formatting_and_texts_in_tables_move() {
    check_body("<b>a<i>b</b>c</i>", "b('a' i('b' ))i('c' )");
    check_body("<p><b>a<p>c", "p(b('a' ))p(b('c' ))");
    check_body(
        "<table>a<tr><td>b</table>",
        "'a' table(tbody(tr(td('b' ))))",
    );
    check_body(
        "<table><tr><td>a</td></tr><div>b</div>c</table>d",
        "div('b' )'c' table(tbody(tr(td('a' ))))'d' ",
    );
}

#[test]
fn foreign_elements_and_templates_keep_their_names_and_contents() {
    check_body(
        "<svg viewbox=a><lineargradient xlink:href=b /></svg>",
        "svg viewBox=a(linearGradient xlink:href=b())",
    );
    check(
        "<template><td>a</td></template>",
        "html(head(template(td('a' )))body())",
    );
}

#[test]
fn deep_pages_are_trees() {
    let depth = 2_000;
    let nodes = parse(&"<div>".repeat(depth));
    assert_eq!(nodes.len(), depth + 4);
}

proptest! {
    #[test]
    fn every_text_is_a_tree(text in "[a-d <>/=!'\"&;-]{0,80}|(</?(p|li|ul|td|tr|table|a|b|svg|option|select|title|head|body|html|br|script)( a=1)?/?>|x| ){0,30}") {
        let nodes = parse(&text);
        for (place, node) in nodes.iter().enumerate().skip(1) {
            prop_assert!(node.parent < place);
        }
        let root = nodes.iter().position(|node| matches!(&node.content, Content::Element { .. })).unwrap();
        let names: Vec<_> = nodes
            .iter()
            .filter(|node| node.parent == root)
            .filter_map(|node| match &node.content {
                Content::Element { name, .. } => Some(name.as_str()),
                _ => None,
            })
            .collect();
        prop_assert_eq!(names, ["head", "body"]);
    }
}
