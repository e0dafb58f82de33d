import { parseHTML } from "k6/html";

const page = `<html><head><title>t</title></head><body><ul id="l"><li class="a">one</li><li>two</li></ul>
<form action="/x" method="post"><input name="i" value="v"><select name="s"><option value="1">a</option><option selected>b</option></select></form></body></html>`;

export default function () {
  const doc = parseHTML(page);
  console.log(doc.find("title").text(), doc.find("li").size(), doc.find("li.a").next().text(), doc.find("ul").attr("id"));
  console.log(doc.find("form").serialize(), doc.find("li").first().is(".a"), doc.find("li").last().html(), doc.find("select").val());
  console.log(doc.find("ul").get(0).nodeName(), doc.find("ul").get(0).querySelectorAll("li").length);
}
