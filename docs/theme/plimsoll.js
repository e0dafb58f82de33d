// The copy button of a block with a terminal copies its commands, without `$ ` and without what they print.
document.addEventListener("click", (event) => {
    const button = event.target.closest(".clip-button");
    const text = button?.closest("pre")?.querySelector("code")?.textContent ?? "";
    if (!/^\$ /m.test(text) || !navigator.clipboard) return;
    event.stopImmediatePropagation();
    let continues = false;
    const commands = text.split("\n").filter((line) => {
        const belongs = continues || line.startsWith("$ ");
        continues = belongs && line.endsWith("\\");
        return belongs;
    });
    navigator.clipboard.writeText(commands.map((line) => line.replace(/^\$ /, "")).join("\n") + "\n").then(() => {
        button.firstElementChild.textContent = "Copied!";
        button.classList.add("tooltipped");
    });
}, true);

// Flags in running text and tables are not broken behind their hyphens.
for (const code of document.querySelectorAll(".content :not(pre) > code")) {
    if (code.childElementCount > 0) continue;
    const parts = code.textContent.split(/(?<![^\s[(|=])(--?[A-Za-z][\w-]*)/);
    if (parts.length === 1) continue;
    code.replaceChildren(...parts.map((part, index) => {
        if (index % 2 === 0) return part;
        const flag = document.createElement("span");
        flag.className = "flag";
        flag.textContent = part;
        return flag;
    }));
}
