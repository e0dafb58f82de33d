use proptest::prelude::*;

use super::*;

/// The tree with brackets around the content of each element.
fn shown(nodes: &[Node]) -> String {
    fn show(nodes: &[Node], place: usize, made: &mut String) {
        match &nodes[place].content {
            Content::Document => {}
            Content::Doctype(name) => *made += &format!("!{name} "),
            Content::Comment(text) => *made += &format!("#{text} "),
            Content::Text(text) => *made += &format!("'{text}' "),
            Content::Element { name, attributes } => {
                made.push_str(name);
                for (key, value) in attributes {
                    *made += &format!(" {key}={value}");
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
    check_body("<td>a</div>", "td('a' )");
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

proptest! {
    #[test]
    fn every_text_is_a_tree(text in "[a-d <>/=!'\"&;-]{0,80}|(</?(p|li|ul|td|tr|table|a|b|svg|option|select|title|head|body|html|br|script)( a=1)?/?>|x| ){0,30}") {
        let nodes = parse(&text);
        for (place, node) in nodes.iter().enumerate().skip(1) {
            prop_assert!(node.parent < place);
        }
        for name in ["html", "head", "body"] {
            let of_name = |node: &&Node| matches!(&node.content, Content::Element { name: it, .. } if it == name);
            prop_assert_eq!(nodes.iter().filter(of_name).count(), 1, "{}", name);
        }
    }
}
