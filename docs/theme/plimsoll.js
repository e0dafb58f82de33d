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
