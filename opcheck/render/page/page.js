"use strict";
(() => {
  const $ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const box = document.getElementById("filter");
  const found = document.getElementById("found");
  const ops = $("details.op").map((node) => ({
    node,
    row: document.getElementById("row-" + node.id),
    head: node.dataset.words,
    verdict: node.dataset.verdict,
    open: node.open,
    cases: $(".cases li", node).map((item) => ({ item, text: item.textContent.toLowerCase() })),
    list: node.querySelector("details.all-cases"),
  }));
  let verdict = "";

  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const op of ops) {
      const rest = words.filter((word) => !op.head.includes(word));
      let matching = 0;
      for (const { item, text } of op.cases) {
        item.hidden = !rest.every((word) => text.includes(word));
        matching += !item.hidden;
      }
      const visible = (!verdict || op.verdict === verdict) && (!rest.length || matching > 0);
      op.node.hidden = !visible;
      if (op.row) op.row.hidden = !visible;
      if (op.list) op.list.open = rest.length > 0 && visible;
      op.node.open = rest.length > 0 || op.open;
      shown += visible;
    }
    found.textContent = words.length || verdict ? `${shown} of ${ops.length} ops` : "";
  };
  box.addEventListener("input", filter);

  for (const button of $("button[data-only]")) {
    button.addEventListener("click", () => {
      verdict = verdict === button.dataset.only ? "" : button.dataset.only;
      for (const other of $("button[data-only]")) {
        other.setAttribute("aria-pressed", String(other.dataset.only === verdict));
      }
      filter();
    });
  }

  const follow = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const details = target && target.closest("details");
    if (details) {
      details.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", follow);
  for (const link of $(".matrix a")) link.addEventListener("click", () => setTimeout(follow));
  follow();

  const root = document.documentElement;
  const dark = () => root.dataset.theme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  const keep = (value) => { try { localStorage.setItem("opcheck-theme", value); } catch { /* a file may have no storage */ } };
  try { root.dataset.theme = localStorage.getItem("opcheck-theme") || ""; } catch { /* as above */ }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep(root.dataset.theme);
  });

  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* a file may not be allowed to */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  for (const button of $("button.copy")) {
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code").textContent;
      button.textContent = (await copied(text)) ? "copied" : "select it by hand";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }
})();
