//! k6/html, and what responses do with pages.

use crate::fixture::check;
use crate::server::Server;

const PAGE: &str = r#"<html><head><title>Page</title></head><body>
<h1 id="top" class="big red" data-count="12" data-raw-text="1.0" data-list="[1,2]" data-is-on="true">Lorem <b>ipsum</b></h1>
<ul id="list"><li class="a">one</li><li class="b">two</li><li class="a c">three</li></ul>
<form id="f" action="/form?x=1#y" method="post"><input name="text" value="t &amp; u"><input type="checkbox" name="off"><input type="checkbox" name="on" checked>
<select name="one"><option value="1">a<option selected>b</select><select name="many" multiple><option selected>c<option selected>d</select>
<textarea name="area">x</textarea><input name="gone" disabled><button type="submit" name="go" value="now">Go</button></form>
<p>first</p><p lang="en">second <a href="../next?q=1" rel="a b">link</a></p></body></html>"#;

fn check_page(body: &str, expected: &[&str]) {
    let quoted = serde_json::Value::from(PAGE).to_string();
    let imports =
        format!("import {{ parseHTML }} from 'k6/html'; const doc = parseHTML({quoted});");
    check(&imports, body, "", expected);
}

#[test]
fn selectors_find_elements() {
    let counts = [
        ("li", 3),
        ("LI.a", 2),
        ("*", 26),
        ("ul > li.a.c", 1),
        ("body > li", 0),
        ("li + li", 2),
        (".a ~ li", 2),
        ("h1, p", 3),
        ("[data-count='12']", 1),
        ("[class~=red][class^=big][class$=red][class*='g r']", 1),
        ("[lang|=en]", 1),
        ("a[href*=NEXT i]", 1),
        ("input[type!=checkbox]", 2),
        ("li:first-child, li:last-child", 2),
        ("li:nth-child(odd)", 2),
        ("li:nth-child(2n)", 1),
        ("li:nth-child(-n+2)", 2),
        ("li:nth-last-child(1)", 1),
        ("p:first-of-type, p:nth-of-type(2)", 2),
        ("li:not(.a)", 1),
        ("ul:has(li), p:has(a)", 2),
        ("p:contains('SECOND')", 1),
        (":checked", 4),
        ("input:disabled", 1),
        (":root", 1),
        ("title:only-child", 1),
    ];
    for (selector, count) in counts {
        let body = format!(
            "console.log(doc.find({}).size())",
            serde_json::Value::from(selector)
        );
        check_page(&body, &[&count.to_string()]);
    }
    check_page(
        "for (const bad of ['li[', 'li:nope', '>', 'a b)', '']) { try { doc.find(bad); console.log('no error') } catch (error) { console.log(error.message) } }",
        &[
            "selector \"li[\": expected a name at character 4",
            "selector \"li:nope\": expected a pseudo-class that is supported at character 4",
            "selector \">\": expected a selector at character 1",
            "selector \"a b)\": expected a combinator or the end at character 4",
            "selector \"\": expected a selector at character 1",
        ],
    );
}

#[test]
fn selections_go_through_a_page() {
    check_page(
        "const li = doc.find('li');
         console.log(doc.size(), doc.children().get(0).nodeName(), doc.find('title').text(), doc.find('h1').html(), doc.find('nothing').html());
         console.log(li.eq(1).text(), li.eq(-1).text(), li.first().text(), li.last().text(), li.eq(9).size(), li.slice(1).size(), li.slice(0, 1).text());
         console.log(li.filter('.a').size(), li.filter((index) => index > 0).size(), li.not('.a').text(), li.is('.b'), li.has('b').size(), doc.find('h1').has('b').size());
         console.log(li.eq(1).next().text(), li.eq(1).prev().text(), li.eq(0).nextAll().size(), li.eq(2).prevAll('.a').size(), li.eq(0).nextUntil('.c').text(), li.eq(2).prevUntil(li.eq(0)).text());
         console.log(li.parent().attr('id'), li.eq(0).parents().size(), li.eq(0).parentsUntil('html').size(), li.eq(0).closest('body').size(), li.eq(0).siblings('.b').text());
         console.log(li.map((index, it) => `${index}${it.text()}`).join(), li.toArray().length, li.index(li.eq(2)), li.eq(1).index(), li.eq(2).index('.a'));
         console.log(li.add('p').size(), li.end().size(), li.find('x').end().size(), doc.find('ul').contents().size(), doc.find('ul').children('.a').size(), doc.single('li').text());
         const seen = []; console.log(li.each((index, element) => seen.push(element.textContent())).size(), seen.join());
         const h1 = doc.find('h1');
         console.log(h1.attr('id'), h1.attr('none'), h1.attr('none', 'otherwise'), JSON.stringify(h1.data()), h1.data('count') + 1, h1.data('rawText'));",
        &[
            "1 html Page Lorem <b>ipsum</b> undefined",
            "two three one three 0 2 one",
            "2 2 two true 0 1",
            "three one 2 1 two two",
            "list 3 2 1 two",
            "0one,1two,2three 3 2 1 1",
            "5 1 3 3 2 one",
            "3 one,two,three",
            "top undefined otherwise {\"count\":12,\"rawText\":\"1.0\",\"list\":[1,2],\"isOn\":true} 13 1.0",
        ],
    );
}

#[test]
fn forms_have_values() {
    check_page(
        "const form = doc.find('form');
         console.log(form.serialize());
         console.log(JSON.stringify(form.serializeObject()));
         console.log(form.serializeArray().length, doc.find('[name=on]').val(), doc.find('button').val(), doc.find('p').val());
         const [input, select] = [doc.find('input').get(0), doc.find('select').get(0)];
         console.log(input.name(), input.value(), input.disabled(), input.form().id(), select.options().length, select.selectedIndex(), select.type(), form.get(0).method());",
        &[
            "area=x&many=c&many=d&on=on&one=b&text=t+%26+u",
            "{\"text\":\"t & u\",\"on\":\"on\",\"one\":\"b\",\"many\":[\"c\",\"d\"],\"area\":\"x\"}",
            "5 on now undefined",
            "text t & u false f 2 1 select post",
        ],
    );
}

#[test]
fn elements_have_the_functions_of_the_dom() {
    check_page(
        "const h1 = doc.find('h1').get(0), link = doc.find('a').get(0), list = doc.find('ul').get(0);
         console.log(h1.nodeName(), h1.nodeType(), h1.id(), h1.className(), h1.classList().join(), h1.getAttribute('data-count'), h1.hasAttribute('x'), h1.attributes().id.value);
         console.log(h1.firstChild().nodeName(), h1.firstChild().nodeValue(), h1.lastChild().textContent(), h1.childNodes().length, h1.children().length, h1.innerHTML());
         console.log(list.firstElementChild().nextElementSibling().textContent(), list.lastElementChild().previousElementSibling().textContent(), list.childElementCount(), list.parentElement().nodeName());
         console.log(list.querySelector('.b').textContent(), list.querySelectorAll('li').length, list.getElementsByClassName('a').length, list.matches('#list'), list.contains(list.firstChild()), h1.isSameNode(doc.find('#top').get(0)));
         console.log(link.href(), link.rel(), link.relList().join(), link.text(), list.selection().find('li').size(), `${list.lastChild()}`, doc.find('p').get(1).lang());",
        &[
            "h1 1 top big red big,red 12 false top",
            "#text Lorem  ipsum 2 1 Lorem <b>ipsum</b>",
            "two two 3 body",
            "two 3 2 true true true",
            "../next?q=1 a b a,b link 3 <li class=\"a c\">three</li> en",
        ],
    );
}

#[test]
fn responses_are_pages() {
    let server = Server::start();
    check(
        "import http from 'k6/http';",
        "const page = http.get('URL/page/forms');
         console.log(page.html('title').text(), page.html().find('a').get(0).href() === 'URL/echo?link=1');
         console.log(page.submitForm({ formSelector: '[method]', fields: { extra: 'e' } }).body);
         page.submitForm({ formSelector: '#search', params: { headers: { 'X-Own': 'o' } } });
         page.clickLink();
         for (const act of [() => page.submitForm({ formSelector: '#none' }), () => page.clickLink({ selector: '#none' })]) { try { act() } catch (error) { console.log(error.message.split(' in ')[0]) } }
         try { http.get('URL/json', { responseType: 'none' }).html() } catch (error) { console.log(error.message.split(' - ')[0]) }",
        &server.url(),
        &[
            "Forms true",
            "user=ann&go=now&extra=e",
            "no form found for selector '#none'",
            "no element found for selector '#none'",
            "the body is null so we can't transform it to HTML",
        ],
    );
    let requests = server.requests();
    let sent: Vec<_> = requests
        .iter()
        .map(|it| format!("{} {}", it.method, it.target))
        .collect();
    assert_eq!(
        sent,
        [
            "GET /page/forms",
            "POST /echo",
            "GET /echo?q=a+b",
            "GET /echo?link=1",
            "GET /json"
        ]
    );
    assert!(requests[2].head.to_lowercase().contains("x-own: o"));
}
