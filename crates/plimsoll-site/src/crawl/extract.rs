//! The links in pages, style sheets and lists of pages.

use std::collections::HashSet;

use html5gum::{State, Token, Tokenizer};
use url::Url;

/// The links of a page, and the places within it that links can name.
#[derive(Debug, Default)]
pub struct PageLinks {
    /// In the order of the page, with their fragments.
    pub links: Vec<Url>,
    /// Values of `id`, and of `name` of `<a>`.
    pub anchors: HashSet<String>,
}

/// Links of a page: `href`, `src`, `srcset`, `poster`, `data`, and URLs in styles; relative to `<base>` where
/// there is one.
///
/// - `page`: where it lies.
pub fn html_links(html: &str, page: &Url) -> PageLinks {
    let mut base = page.clone();
    let mut links = Vec::new();
    let mut anchors = HashSet::new();
    let mut in_style = false;
    let mut tokens = Tokenizer::new(html);
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => {
                let name: &[u8] = &tag.name;
                // The contents of these elements are not markup.
                match name {
                    b"style" if !tag.self_closing => tokens.set_state(State::RawText),
                    b"script" if !tag.self_closing => tokens.set_state(State::ScriptData),
                    b"textarea" | b"title" if !tag.self_closing => {
                        tokens.set_state(State::RcData);
                    }
                    _ => {}
                }
                in_style = name == b"style";
                let get = |key: &[u8]| {
                    let value = tag.attributes.get(key)?;
                    Some(String::from_utf8_lossy(value).into_owned())
                };
                anchors.extend(get(b"id").filter(|id| !id.is_empty()));
                if name == b"a" {
                    anchors.extend(get(b"name").filter(|name| !name.is_empty()));
                }
                if name == b"base" {
                    let given = get(b"href").and_then(|href| page.join(href.trim()).ok());
                    base = given.unwrap_or(base);
                    continue;
                }
                let is_hint = name == b"link"
                    && get(b"rel").is_some_and(|rel| {
                        let rel = rel.to_ascii_lowercase();
                        ["preconnect", "dns-prefetch"].contains(&rel.trim())
                    });
                if is_hint {
                    continue;
                }
                let plain: &[&[u8]] = match name {
                    b"a" | b"area" | b"link" | b"image" | b"use" => &[b"href"],
                    b"object" => &[b"data"],
                    b"video" => &[b"src", b"poster"],
                    b"img" | b"script" | b"iframe" | b"source" | b"audio" | b"track" | b"embed"
                    | b"input" | b"frame" => &[b"src"],
                    _ => &[],
                };
                let values = plain.iter().filter_map(|key| get(key));
                // Elsewhere than in hyperlinks, a fragment alone names a part of a drawing.
                let joined = match name {
                    b"a" | b"area" => join_with_fragment,
                    _ => join,
                };
                links.extend(values.filter_map(|value| joined(&base, &value)));
                let others = [
                    get(b"xlink:href"),
                    refresh(name, &get),
                    form_target(name, &get),
                ];
                let others = others.into_iter().flatten();
                links.extend(others.filter_map(|value| join(&base, &value)));
                for key in [&b"srcset"[..], b"imagesrcset"] {
                    let value = get(key).unwrap_or_default();
                    links.extend(candidates(&value).filter_map(|value| join(&base, value)));
                }
                if let Some(style) = get(b"style") {
                    links.extend(css_links(&style, &base));
                }
            }
            Token::String(text) if in_style => {
                links.extend(css_links(&String::from_utf8_lossy(&text), &base));
            }
            Token::EndTag(_) => in_style = false,
            _ => {}
        }
    }
    PageLinks { links, anchors }
}

/// Target of `<meta http-equiv="refresh" content="5; url=…">`.
fn refresh(name: &[u8], get: &dyn Fn(&[u8]) -> Option<String>) -> Option<String> {
    let is_refresh = name == b"meta" && get(b"http-equiv")?.trim().eq_ignore_ascii_case("refresh");
    let content = get(b"content").filter(|_| is_refresh)?;
    let (_, target) = content.split_once([';', ','])?;
    let target = target.trim();
    let target = match target.split_once('=') {
        Some((key, value)) if key.trim().eq_ignore_ascii_case("url") => value.trim(),
        _ => target,
    };
    Some(target.trim_matches(['"', '\'']).to_owned())
}

/// Target of a form with method GET; forms with other methods are not followed.
fn form_target(name: &[u8], get: &dyn Fn(&[u8]) -> Option<String>) -> Option<String> {
    let is_get = get(b"method").is_none_or(|method| method.trim().eq_ignore_ascii_case("get"));
    get(b"action").filter(|_| name == b"form" && is_get)
}

/// The URLs of a `srcset`: each up to a blank, the candidates apart by commas.
fn candidates(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        let begin = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let end = begin.find(char::is_whitespace).unwrap_or(begin.len());
        let (url, after) = begin.split_at(end);
        let candidate = url.trim_end_matches(',');
        // Behind the URL come its conditions, up to the next comma.
        rest = if candidate.len() < url.len() {
            after
        } else {
            after.split_once(',').map_or("", |(_, next)| next)
        };
        (!candidate.is_empty()).then_some(candidate)
    })
}

/// `url(…)` and `@import "…"` of a style sheet.
///
/// - `sheet`: where it lies.
pub fn css_links(css: &str, sheet: &Url) -> Vec<Url> {
    let css = without_comments(css);
    let mut links = Vec::new();
    let mut rest = css.as_str();
    while let Some(at) = find_ignoring_case(rest, "url(") {
        rest = rest.get(at + 4..).unwrap_or_default().trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, after) = match quote {
            Some(quote) => {
                let inner = rest.get(1..).unwrap_or_default();
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            None => rest.split_once(')').unwrap_or((rest, "")),
        };
        links.extend(join(sheet, value));
        rest = after;
    }
    let mut rest = css.as_str();
    while let Some(at) = find_ignoring_case(rest, "@import") {
        rest = rest.get(at + 7..).unwrap_or_default().trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        if let Some(quote) = quote {
            let inner = rest.get(1..).unwrap_or_default();
            let (value, after) = inner.split_once(quote).unwrap_or((inner, ""));
            links.extend(join(sheet, value));
            rest = after;
        }
    }
    links
}

fn without_comments(css: &str) -> String {
    let mut kept = String::with_capacity(css.len());
    let mut rest = css;
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        kept.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes()
        .windows(needle.len())
        .position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// The `<loc>` of a list of pages, or of a list of such lists (sitemaps.org).
///
/// - `list`: where it lies.
pub fn sitemap_links(xml: &str, list: &Url) -> Vec<Url> {
    let mut links = Vec::new();
    let mut in_place = false;
    let mut tokens = Tokenizer::new(xml);
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => in_place = &**tag.name == b"loc",
            Token::String(text) if in_place => {
                links.extend(join(list, &String::from_utf8_lossy(&text)));
            }
            Token::EndTag(_) => in_place = false,
            _ => {}
        }
    }
    links
}

/// A link that can be followed: not one within the page, and none of another scheme.
fn join(base: &Url, link: &str) -> Option<Url> {
    join_with_fragment(base, link).filter(|_| !link.trim_start().starts_with('#'))
}

/// A link that can be followed, also one within the page; none of another scheme.
fn join_with_fragment(base: &Url, link: &str) -> Option<Url> {
    let link = link.trim();
    if link.is_empty() {
        return None;
    }
    let url = base.join(link).ok()?;
    ["http", "https"].contains(&url.scheme()).then_some(url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn paths(links: &[Url]) -> Vec<String> {
        let shown = links.iter().map(Url::as_str);
        shown
            .map(|url| url.replace("http://a.example", ""))
            .collect()
    }

    fn base() -> Url {
        Url::parse("http://a.example/d/page.html").unwrap()
    }

    #[test]
    fn pages_link_in_many_ways() {
        let html = r##"<!doctype html><base href="/e/"><title><a href="/not-this"></title><h1 id=one>1</h1>
            <link rel="stylesheet" href="style.css"><link rel=preconnect href="http://b.example">
            <script src=/app.js></script><script>"<a href='/nor-this'>"</script>
            <!-- <a href="/neither"> -->
            <a href="../up?q=1&amp;r=2#part">x</a><a href="#here" name=two>y</a><a href="mailto:a@b.example">z</a>
            <a href="javascript:void(0)">j</a><A HREF="http://b.example/other">o</A>
            <img src="one.png" srcset="two.png 2x, three,3.png 300w,four.png" style="background:url( 'five.png' )">
            <style>@import "six.css"; a { b: URL(seven.svg) } /* url(no.png) */</style>
            <svg><use xlink:href="sprite.svg#a"/><use href="#b"/><g id="b"/></svg><meta http-equiv=Refresh content="5; URL='later.html'">
            <form action="find"><input></form><form method=post action="no-page"></form>
            <video poster=eight.jpg><source src="nine.mp4"></video><object data=ten.pdf></object>"##;
        let page = html_links(html, &base());
        let mut anchors: Vec<_> = page.anchors.into_iter().collect();
        anchors.sort();
        assert_eq!(anchors, ["b", "one", "two"]);
        assert_eq!(
            paths(&page.links),
            [
                "/e/style.css",
                "/app.js",
                "/up?q=1&r=2#part",
                "/e/#here",
                "http://b.example/other",
                "/e/one.png",
                "/e/two.png",
                "/e/three,3.png",
                "/e/four.png",
                "/e/five.png",
                "/e/seven.svg",
                "/e/six.css",
                "/e/sprite.svg#a",
                "/e/later.html",
                "/e/find",
                "/e/eight.jpg",
                "/e/nine.mp4",
                "/e/ten.pdf",
            ]
        );
    }

    #[test]
    fn sheets_and_lists_link_too() {
        let css = "@import url(\"a.css\");@IMPORT 'b.css' screen;x{y:url(data:image/png;base64,AA)}z{w:url(c.woff2";
        assert_eq!(
            paths(&css_links(css, &base())),
            ["/d/a.css", "/d/c.woff2", "/d/b.css"]
        );
        let xml = "<?xml version=\"1.0\"?><urlset><url><loc> http://a.example/x?a=1&amp;b=2 </loc><lastmod>1</lastmod></url>\
                   <url><loc>/y</loc></url></urlset>";
        assert_eq!(paths(&sitemap_links(xml, &base())), ["/x?a=1&b=2", "/y"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            html_links(&text, &base());
            css_links(&text, &base());
            sitemap_links(&text, &base());
        }

        #[test]
        fn any_markup_is_read(parts in proptest::collection::vec("[<>/a-c =\"'(),@*&;:]|srcset=|href=|style|url\\(|@import|<base |/\\*", 0..60)) {
            let text = parts.concat();
            html_links(&text, &base());
            css_links(&text, &base());
            sitemap_links(&text, &base());
        }
    }
}
